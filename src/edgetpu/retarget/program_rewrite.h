// The values of other scales and zero points put into a program.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reef/base/result.h"
#include "reef/edgetpu/requantisation.h"

namespace reef::edgetpu {

/// What one tensor instruction holds and is to hold.
struct Replacement {
    std::size_t word = 0;             ///< of the instruction, in the stream
    const Requantisation* from = {};  ///< null: not known
    const Requantisation* to = {};
    /// Of a sum: whether the program takes the operator's second input first; nothing: the factors
    /// of `from` tell.
    std::optional<bool> second_first;
};

/// A fill among the input of a layer whose zero point changes.
struct BorderFill {
    std::size_t word = 0;                     ///< of the instruction, in the stream
    std::size_t op = 0;                       ///< of the layer
    std::int32_t old_zero = 0, new_zero = 0;  ///< of the layer's input
};

/// Changes the instructions, and the constants that the program fills memory with for them:
/// borders of padded windows, factors of sums. Gives the number of changed instructions. Errors:
/// those of decode(), and unsupported, with the instruction, when such constants are not as known.
[[nodiscard]] Result<std::size_t> rewrite_program(MutableBytes stream,
                                                  const std::vector<Replacement>& replacements,
                                                  const std::vector<BorderFill>& borders);

}  // namespace reef::edgetpu

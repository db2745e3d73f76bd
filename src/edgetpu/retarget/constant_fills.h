// Constants that a program writes into narrow memory itself, and who reads them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "edgetpu/program/instruction.h"
#include "reef/base/result.h"
#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/requantisation.h"

namespace reef::edgetpu {

/// Indices in the program.
struct ConstantFill {
    std::size_t fill = 0;    ///< a mesh instruction that fills
    std::size_t reader = 0;  ///< the first later mac or narrow_to_wide that reads those words
};

/// Fills that nobody reads are left out.
[[nodiscard]] std::vector<ConstantFill> constant_fills(
    const std::vector<program::TypedInstruction>& program);

/// The parameters of an addition: four rows of 4 words, in which each operand's factor stands once
/// for every lane in either half of a word. The program writes them with fills.
struct SumMatrix {
    struct Entry {
        std::size_t fill = 0;  ///< index in the program
        unsigned shift = 0;    ///< of the factor in the word
    };
    /// By operand, in the order of the rows.
    std::array<std::vector<Entry>, 2> factors;
};

/// The matrix that the mac at `sum` reads. Errors: unsupported when the program does not make it in
/// the known way, with the place from `names`, the same program.
[[nodiscard]] Result<SumMatrix> sum_matrix(const std::vector<Instruction>& names,
                                           const std::vector<program::TypedInstruction>& program,
                                           const std::vector<ConstantFill>& fills, std::size_t sum);

}  // namespace reef::edgetpu

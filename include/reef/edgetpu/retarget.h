// A compiled program re-emitted for another plain model of the same architecture.
//
// The vendor's compiler puts weights, biases and per-channel scales into the parameter blob and the
// rest of the quantisation into the tensor instructions: the factor, the clamp and three zero
// points, per operator; and into constants that the program fills memory with: the borders of
// padded windows, and the factors of ADD's operands. All are rewritten; loops, transfers and
// addresses stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

struct RetargetOptions {
    /// The caching token of changed packages; nothing: made from the parameters.
    std::optional<std::uint64_t> token;
    /// What the plain models are called in front of the places of errors; empty: nothing.
    std::string source_name{}, target_name{};
};

struct Retargeted {
    model::Model model;
    std::size_t changed_instructions = 0;
    std::size_t changed_parameter_bytes = 0;
    /// Of a segment of a pipeline: which of the target's operators is its first.
    std::optional<std::size_t> first_operator{};
};

/// `compiled` was compiled from `source`; the result computes `target`. Retargeting to the source
/// gives the compiled model back. Errors: unsupported, with the operator and the reason, when the
/// architectures differ, the program lacks a needed vector, or an instruction's values are not
/// understood; bad_input as for CompiledParameters::open().
[[nodiscard]] Result<Retargeted> retarget(const model::Model& compiled, const model::Model& source,
                                          const model::Model& target,
                                          const RetargetOptions& options);

/// The same without the source. Where each operator's values are follows from the architecture:
/// instructions and parameters are in the order of the model's operators, and an instruction's
/// loops say how many products make a result. Errors: as above, and unsupported when that leaves
/// more than one reading of the program; the source decides then.
[[nodiscard]] Result<Retargeted> retarget(const model::Model& compiled, const model::Model& target,
                                          const RetargetOptions& options);

}  // namespace reef::edgetpu

// A compiled program re-emitted for another plain model of the same architecture.
//
// The vendor's compiler puts weights, biases and per-channel scales into the parameter blob and the
// rest of the quantisation into the tensor instructions: the factor, the clamp and three zero
// points, per operator. Both are rewritten; loops, transfers and addresses stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reef/base/result.h"
#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/parameter_plan.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

/// The quantisation that one operator puts into tensor instructions. Fields without a value are not
/// looked at and not written. Zero points are in the uint8 domain.
struct Requantisation {
    /// Opcodes of the tensor instructions.
    static constexpr std::uint8_t multiply = 1, maximum = 2;

    std::size_t op = 0;  ///< index in the plain model's first subgraph
    std::string role;    ///< "layer", "max", "exp", ...
    std::uint8_t opcode = multiply;
    std::optional<float> scale, clamp_min, clamp_max;
    std::optional<std::int32_t> weight_zero, in_zero, out_zero, initial;
    friend bool operator==(const Requantisation&, const Requantisation&) = default;
};

/// What the operators on the chip put into instructions, in their order: layers, average pools,
/// RESHAPE, CONCATENATION, MUL and SOFTMAX. Two models of one architecture give lists of the same
/// length. `parts` say which layers hold factors and zero points in the blob.
[[nodiscard]] std::vector<Requantisation> requantisations(const model::Model& plain,
                                                          const std::vector<bool>& on_chip,
                                                          const std::vector<ParameterPart>& parts);

/// Whether a tensor instruction holds these values.
[[nodiscard]] bool holds(const Instruction& instruction, const Requantisation& values);

struct RetargetOptions {
    /// The caching token of changed packages; nothing: made from the parameters.
    std::optional<std::uint64_t> token;
};

struct Retargeted {
    model::Model model;
    std::size_t changed_instructions = 0;
    std::size_t changed_parameter_bytes = 0;
};

/// `compiled` was compiled from `source`; the result computes `target`. Retargeting to the source
/// gives the compiled model back. Errors: unsupported, with the operator and the reason, when the
/// architectures differ, the program lacks a needed vector, or an instruction's values are not
/// understood; bad_argument as for CompiledParameters::open().
[[nodiscard]] Result<Retargeted> retarget(const model::Model& compiled, const model::Model& source,
                                          const model::Model& target,
                                          const RetargetOptions& options);

}  // namespace reef::edgetpu

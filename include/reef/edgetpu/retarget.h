// A compiled program re-emitted for another plain model of the same architecture.
//
// The vendor's compiler puts weights, biases and per-channel scales into the parameter blob and the
// rest of the quantisation into the tensor instructions: the factor, the clamp and three zero
// points, per operator; and into constants that the program fills memory with: the borders of
// padded windows, and the factors of ADD's operands. All are rewritten; loops, transfers and
// addresses stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
    /// What the instruction does for the operator.
    enum class Form : std::uint8_t {
        layer,        ///< products with weights: convolutions and fully connected layers
        average,      ///< an average pool
        product,      ///< of two tensors
        sum,          ///< of two tensors
        sigmoid,      ///< LOGISTIC
        copy,         ///< other scale or place: QUANTIZE, RESHAPE, CONCATENATION, logits
        maximum,      ///< of SOFTMAX
        difference,   ///< logit - maximum
        exponential,  ///< exp((logit - maximum) * scale)
    };

    std::size_t op = 0;  ///< index in the plain model's first subgraph
    Form form = Form::layer;
    ActivationLimits activation = ActivationLimits::none;
    /// Steps of the reduction for one result, which follow from shapes; 0: not looked at.
    std::uint64_t steps = 0;
    bool depthwise = false;  ///< of a layer: 4 lanes
    /// Of a layer: the weights' zero points lie in parameter rows; of a product: the scales do.
    bool per_channel = false;
    bool unscaled = false;  ///< of a copy: both sides have one quantisation
    /// Of a copy for a CONCATENATION along another axis than channels: which computed input.
    std::optional<std::size_t> operand;
    std::optional<float> scale, clamp_min, clamp_max;
    std::optional<std::int32_t> weight_zero, in_zero, out_zero, initial;
    /// Of a sum: the factors of the operator's inputs, which parameters hold.
    std::optional<SumFactors> factors;
    friend bool operator==(const Requantisation&, const Requantisation&) = default;

    /// The program computes the operator in an instruction of this form and no other.
    [[nodiscard]] bool required() const {
        return form == Form::layer || form == Form::average || form == Form::product ||
               form == Form::sum || form == Form::sigmoid;
    }
};

/// What the operators on the chip put into instructions, in their order: layers, average pools,
/// ADD, MUL, RESHAPE, CONCATENATION and SOFTMAX. Two models of one architecture give lists of the
/// same length. `parts` say which layers hold factors and zero points in the blob.
[[nodiscard]] std::vector<Requantisation> requantisations(const model::Model& plain,
                                                          const std::vector<bool>& on_chip,
                                                          const std::vector<ParameterPart>& parts);

/// Whether a tensor instruction has the form and holds the values.
[[nodiscard]] bool holds(const Instruction& instruction, const Requantisation& values);

/// Whether a tensor instruction has the form in what no scale enters: opcode, modes, and the loops
/// as far as shapes decide them.
[[nodiscard]] bool has_shape_of(const Instruction& instruction, const Requantisation& values);

/// A value that an instruction holds and another that an operator puts there.
struct ValueDifference {
    std::string_view field;  ///< of the instruction
    double held = 0, wanted = 0;
    friend bool operator==(const ValueDifference&, const ValueDifference&) = default;
};
/// In the order scale, limits, zero points, first sum. Fields that the instruction lacks are left
/// out.
[[nodiscard]] std::vector<ValueDifference> differing_values(const Instruction& instruction,
                                                            const Requantisation& values);

/// Whether a tensor instruction has the form, with the values of any scales and zero points.
[[nodiscard]] bool has_form_of(const Instruction& instruction, const Requantisation& values);

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

/// The same without the source. Where each operator's values are follows from the architecture:
/// instructions and parameters are in the order of the model's operators, and an instruction's
/// loops say how many products make a result. Errors: as above, and unsupported when that leaves
/// more than one reading of the program; the source decides then.
[[nodiscard]] Result<Retargeted> retarget(const model::Model& compiled, const model::Model& target,
                                          const RetargetOptions& options);

}  // namespace reef::edgetpu

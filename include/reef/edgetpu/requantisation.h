// The quantisation that operators put into a program's instructions, outside its parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

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
        window,       ///< an average pool, MEAN or SUM by the identity, as Reef's compiler has it
        largest,      ///< of a window, as Reef's compiler has it
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
    /// Of a copy: no other instruction can do its work.
    bool apart = false;
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
               form == Form::sum || form == Form::sigmoid || form == Form::window ||
               form == Form::largest || apart;
    }
};

/// What the operators on the chip put into instructions, in their order: layers, average pools,
/// ADD, MUL, RESHAPE, CONCATENATION and SOFTMAX. Two models of one architecture give lists of the
/// same length. `parts` say which layers hold factors and zero points in the blob. `own`: of Reef's
/// compiler, which has other instructions for some of them, and known ones for more.
[[nodiscard]] std::vector<Requantisation> requantisations(const model::Model& plain,
                                                          const std::vector<bool>& on_chip,
                                                          const std::vector<ParameterPart>& parts,
                                                          bool own = false);

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

}  // namespace reef::edgetpu

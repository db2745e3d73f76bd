// The quantisation of a plain model's operators as tensor instructions hold it.
#include <algorithm>
#include <bit>

#include "reef/edgetpu/retarget.h"

namespace reef::edgetpu {
namespace {

using model::Activation;
using model::Model;
using model::Op;
using model::Operator;
using model::Tensor;
using model::TensorIndex;

struct Scale {
    float scale = 0;
    std::int32_t zero = 0;  ///< uint8 domain
};

/// exp(x) is cut off where it is below a 16-bit step: TFLite's and the chip's -13.0381.
constexpr float exp_cutoff = -13.038098335266113F;

class Roles {
  public:
    Roles(const Model& plain, const std::vector<ParameterPart>& parts)
        : graph_(plain.subgraphs.front()), parts_(parts) {}

    void add(std::size_t index) {
        op_ = index;
        const Operator& op = graph_.operators[index];
        const auto in = scale_of(op.inputs, 0);
        const auto out = scale_of(op.outputs, 0);
        if (!in || !out) return;
        switch (op.code.builtin) {
            case Op::conv_2d:
            case Op::depthwise_conv_2d:
            case Op::fully_connected:
                return add_layer(op, *in, *out);
            case Op::average_pool_2d:
                return add_pool(op, *in, *out);
            case Op::mul:
                return add_mul(op, *in, *out);
            case Op::reshape:
                return add_rescaling("reshape", *in, *out, limits(*out, Activation::none));
            case Op::concatenation:
                return add_concatenation(op, *out);
            case Op::softmax:
                return add_softmax(*in);
            default:
                return;
        }
    }

    [[nodiscard]] std::vector<Requantisation> take() { return std::move(roles_); }

  private:
    std::optional<Scale> scale_of(const std::vector<TensorIndex>& list, std::size_t at) const {
        if (at >= list.size() || list[at] == model::absent_tensor) return std::nullopt;
        const Tensor& tensor = graph_.tensors[static_cast<std::size_t>(list[at])];
        const bool is_signed = tensor.type == ElementType::int8;
        if (!is_signed && tensor.type != ElementType::uint8) return std::nullopt;
        if (!tensor.quantization || !tensor.quantization->quantized()) return std::nullopt;
        const auto& zero = tensor.quantization->zero_point;
        return Scale{
            tensor.quantization->scale.front(),
            (zero.empty() ? 0 : static_cast<std::int32_t>(zero.front())) + (is_signed ? 128 : 0)};
    }

    static ClampLimits limits(const Scale& out, Activation activation) {
        const auto kind = activation == Activation::relu    ? ActivationLimits::relu
                          : activation == Activation::relu6 ? ActivationLimits::relu6
                                                            : ActivationLimits::none;
        return clamp_limits(out.scale, out.zero, 0, 255, kind);
    }

    Requantisation& add_role(std::string name, float scale, const ClampLimits& clamp) {
        return roles_.emplace_back(Requantisation{.op = op_,
                                                  .role = std::move(name),
                                                  .opcode = Requantisation::multiply,
                                                  .scale = scale,
                                                  .clamp_min = clamp.min,
                                                  .clamp_max = clamp.max,
                                                  .weight_zero = {},
                                                  .in_zero = {},
                                                  .out_zero = {},
                                                  .initial = {}});
    }

    static Activation activation_of(const Operator& op) {
        return std::visit(
            [](const auto& options) {
                if constexpr (requires { options.activation; }) return options.activation;
                return Activation::none;
            },
            op.options);
    }

    void add_layer(const Operator& op, const Scale& in, const Scale& out) {
        const auto part = std::ranges::find_if(parts_, [this](const ParameterPart& candidate) {
            return candidate.op == op_ && candidate.kind == PartKind::layer;
        });
        const auto weights = scale_of(op.inputs, 1);
        if (part == parts_.end() || !weights) return;
        const LayerVectors& vectors = part->layout.vectors;
        const float factor =
            vectors.multipliers ? 1.0F : layer_multiplier(in.scale, weights->scale, out.scale);
        Requantisation& role = add_role("layer", factor, limits(out, activation_of(op)));
        role.weight_zero = vectors.zero_points ? 0 : weights->zero;
        role.in_zero = in.zero;
        role.out_zero = out.zero;
    }

    void add_pool(const Operator& op, const Scale& in, const Scale& out) {
        const auto* pool = std::get_if<model::Pool2dOptions>(&op.options);
        if (pool == nullptr) return;
        const auto area = static_cast<float>(pool->filter_h) * static_cast<float>(pool->filter_w);
        const float factor = in.scale * (1.0F / area) * (1.0F / out.scale);
        Requantisation& role = add_role("average", factor, limits(out, pool->activation));
        role.in_zero = in.zero;
        role.out_zero = out.zero;
    }

    void add_mul(const Operator& op, const Scale& in, const Scale& out) {
        const auto other = scale_of(op.inputs, 1);
        if (!other) return;
        Requantisation& role =
            add_role("product", layer_multiplier(in.scale, other->scale, out.scale),
                     limits(out, activation_of(op)));
        role.weight_zero = other->zero;
        role.in_zero = in.zero;
        role.out_zero = out.zero;
    }

    /// A copy through a matrix of ones.
    void add_rescaling(std::string name, const Scale& in, const Scale& out,
                       const ClampLimits& clamp) {
        Requantisation& role = add_role(std::move(name), in.scale * (1.0F / out.scale), clamp);
        role.weight_zero = 0;
        role.in_zero = in.zero;
        role.out_zero = out.zero;
    }

    void add_concatenation(const Operator& op, const Scale& out) {
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            if (const auto in = scale_of(op.inputs, i)) {
                add_rescaling("concatenation", *in, out, limits(out, activation_of(op)));
            }
        }
    }

    /// max, then x - max, then exp((x - max) * scale); from there on nothing depends on the scale.
    void add_softmax(const Scale& in) {
        const ClampLimits clamp = limits(in, Activation::none);
        Requantisation& max = add_role("max", 1.0F, clamp);
        max.opcode = Requantisation::maximum;
        max.weight_zero = in.zero;
        max.out_zero = in.zero;
        max.initial = -in.zero;
        add_rescaling("logits", in, in, clamp);
        const float span = in.scale * 255.0F * (1.0F / in.scale);
        for (const auto& [weight_zero, in_zero] : {std::pair{1, 0}, std::pair{0, 255}}) {
            Requantisation& difference = add_role("difference", 1.0F, {-span, 0});
            difference.weight_zero = weight_zero;
            difference.in_zero = in_zero;
            difference.out_zero = 255;
        }
        const auto* options = std::get_if<model::SoftmaxOptions>(&graph_.operators[op_].options);
        const float beta = options == nullptr ? 1.0F : options->beta;
        // A softmax with a table has the factor there, one for each lane.
        const bool in_table = std::ranges::any_of(parts_, [this](const ParameterPart& part) {
            return part.op == op_ && part.kind == PartKind::softmax_table;
        });
        Requantisation& exp = add_role("exp", in_table ? 1.0F : in.scale * beta, {exp_cutoff, 0});
        exp.in_zero = 255;
        exp.out_zero = 0;
    }

    const model::Subgraph& graph_;
    const std::vector<ParameterPart>& parts_;
    std::size_t op_ = 0;
    std::vector<Requantisation> roles_;
};

bool same_float(const Instruction& instruction, std::string_view field,
                const std::optional<float>& value) {
    if (!value) return true;
    const auto bits = instruction.value(field);
    if (!bits) return false;
    // The compiler writes zeros of either sign.
    const float held = std::bit_cast<float>(static_cast<std::uint32_t>(*bits));
    return std::bit_cast<std::uint32_t>(held) == std::bit_cast<std::uint32_t>(*value) ||
           (held == 0 && *value == 0);
}

bool same_number(const Instruction& instruction, std::string_view field,
                 const std::optional<std::int32_t>& value) {
    return !value || instruction.value(field) == *value;
}

}  // namespace

std::vector<Requantisation> requantisations(const Model& plain, const std::vector<bool>& on_chip,
                                            const std::vector<ParameterPart>& parts) {
    Roles roles(plain, parts);
    for (std::size_t i = 0; i < on_chip.size(); ++i) {
        if (on_chip[i]) roles.add(i);
    }
    return roles.take();
}

bool holds(const Instruction& instruction, const Requantisation& values) {
    return instruction.info != nullptr && instruction.info->space == Space::tile &&
           instruction.info->opcode == values.opcode &&
           same_float(instruction, "scale", values.scale) &&
           same_float(instruction, "clamp_min", values.clamp_min) &&
           same_float(instruction, "clamp_max", values.clamp_max) &&
           same_number(instruction, "par_zero", values.weight_zero) &&
           same_number(instruction, "in_zero", values.in_zero) &&
           same_number(instruction, "out_zero", values.out_zero) &&
           same_number(instruction, "initial", values.initial);
}

}  // namespace reef::edgetpu

// The quantisation of a plain model's operators as tensor instructions hold it.
#include "reef/edgetpu/requantisation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "edgetpu/program/codec.h"
#include "edgetpu/retarget/program_alignment.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {
namespace {

using model::Activation;
using model::Model;
using model::Op;
using model::Operator;
using model::Tensor;
using model::TensorIndex;
using Form = Requantisation::Form;

struct Scale {
    float scale = 0;
    std::int32_t zero = 0;  ///< uint8 domain
};

class Roles {
  public:
    Roles(const Model& plain, const std::vector<ParameterPart>& parts, bool own)
        : plain_(plain), graph_(plain.subgraphs.front()), parts_(parts), own_(own) {}

    void add(std::size_t index) {
        op_ = index;
        const Operator& op = graph_.operators[index];
        const auto in = scale_of(op.inputs, input_of(op));
        const auto out = scale_of(op.outputs, 0);
        if (!in || !out) return;
        if (own_ && add_own(op, *in, *out)) return;
        switch (op.code.builtin) {
            case Op::conv_2d:
            case Op::depthwise_conv_2d:
            case Op::fully_connected:
                return add_layer(op, *in, *out);
            case Op::average_pool_2d:
                return add_pool(op, *in, *out);
            case Op::add:
                return add_sum(op, *in, *out);
            case Op::mul:
                return add_mul(op, *in, *out);
            case Op::logistic:
                return add_sigmoid(*in);
            case Op::quantize:
                // One number for both is no instruction.
                if (in->scale == out->scale && in->zero == out->zero) return;
                add_copy(*in, *out, Activation::none);
                return;
            case Op::reshape:
                add_copy(*in, *out, Activation::none).unscaled =
                    in->scale == out->scale && in->zero == out->zero;
                return;
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
    /// Of those that Reef's compiler has instructions of its own for.
    bool add_own(const Operator& op, const Scale& in, const Scale& out) {
        switch (op.code.builtin) {
            case Op::average_pool_2d:
            case Op::mean:
            case Op::sum:
                return add_window(op, in, out), true;
            case Op::max_pool_2d:
                return add_largest(op, in, out), true;
            case Op::tanh:
                return add_sigmoid({2 * in.scale, in.zero}), true;
            case Op::relu:
                return add_apart(in, out, Activation::relu), true;
            case Op::relu6:
                return add_apart(in, out, Activation::relu6), true;
            case Op::quantize:
                if (in.scale != out.scale || in.zero != out.zero)
                    add_apart(in, out, Activation::none);
                return true;
            case Op::softmax:
                return add_exponential(in), true;
            case Op::transpose_conv:
                return add_layer(op, in, out), true;
            case Op::mul:
            case Op::add:
            case Op::sub:
                return add_constant(op, in, out);
            // They move bytes as they are.
            case Op::reshape:
                return true;
            default:
                return false;
        }
    }

    void add_apart(const Scale& in, const Scale& out, Activation activation) {
        add_copy(in, out, activation).apart = true;
    }

    /// A pooled window's values times the identity.
    void add_window(const Operator& op, const Scale& in, const Scale& out) {
        const auto* pool = std::get_if<model::Pool2dOptions>(&op.options);
        const Tensor& image = tensor_of(op.inputs[0]);
        std::int64_t height = 1, width = 1;
        if (pool != nullptr) {
            height = pool->filter_h;
            width = pool->filter_w;
        } else if (image.shape.size() == 4) {
            height = image.shape[1];
            width = image.shape[2];
        }
        const auto pixels = static_cast<float>(height * width);
        const float of_one = op.code.builtin == Op::sum ? in.scale : in.scale * (1.0F / pixels);
        const bool as_layer = has_part(PartKind::ones);
        Requantisation& role =
            add_limited(as_layer ? Form::layer : Form::window, of_one * (1.0F / out.scale), out,
                        pool == nullptr ? Activation::none : pool->activation);
        role.depthwise = as_layer;
        role.steps = static_cast<std::uint64_t>(height * width);
        role.weight_zero = 0;
        role.in_zero = in.zero;
    }

    void add_largest(const Operator& op, const Scale& in, const Scale& out) {
        const auto* pool = std::get_if<model::Pool2dOptions>(&op.options);
        if (pool == nullptr) return;
        Requantisation& role = add_limited(Form::largest, 1.0F, out, pool->activation);
        role.steps = static_cast<std::uint64_t>(std::int64_t{pool->filter_h} * pool->filter_w);
        role.in_zero = in.zero;
        role.initial = -in.zero;
    }

    /// Maximum and differences are the same for all numbers; so is what follows.
    void add_exponential(const Scale& in) {
        const auto* options = std::get_if<model::SoftmaxOptions>(&graph_.operators[op_].options);
        const float beta = options == nullptr ? 1.0F : options->beta;
        Requantisation& exp =
            add_role(Form::exponential, in.scale * beta,
                     {spec::exponential_65536.least, spec::exponential_65536.most});
        exp.in_zero = 255;
        exp.out_zero = 0;
    }

    /// A constant is a layer of one pixel: factors are weights or multipliers of ones, what is
    /// added is the biases of ones.
    bool add_constant(const Operator& op, const Scale& in, const Scale& out) {
        const auto part = std::ranges::find_if(
            parts_, [this](const ParameterPart& one) { return one.op == op_ && one.is_layer(); });
        if (part == parts_.end()) return false;
        const bool of_ones =
            part->kind == PartKind::subtrahend || part->kind == PartKind::multipliers;
        const Tensor& constant = tensor_of(part->weights);
        const auto number = scale_of({part->weights}, 0);
        if (!number) return false;
        const bool in_rows = part->layout.vectors.multipliers;
        float by = of_ones ? 1.0F : number->scale;
        // One for all channels of an image that has one.
        if (part->kind == PartKind::multipliers && !in_rows) {
            const auto byte = std::to_integer<std::int32_t>(plain_.constant(constant)[0]);
            const std::int32_t flip = constant.type == ElementType::int8 ? 128 : 0;
            by = number->scale * static_cast<float>((byte ^ flip) - number->zero);
        }
        Requantisation& role =
            add_limited(Form::layer, in_rows ? 1.0F : layer_multiplier(in.scale, by, out.scale),
                        out, activation_of(op));
        constexpr std::int32_t middle = 128;
        role.depthwise = part->layout.shape.is_diagonal();
        role.per_channel = part->layout.vectors.zero_points;
        role.steps = 1;
        role.weight_zero = in_rows ? 0 : of_ones ? middle : number->zero;
        role.in_zero = in.zero;
        return true;
    }

    bool has_part(PartKind kind) const {
        return std::ranges::any_of(
            parts_, [&](const ParameterPart& part) { return part.op == op_ && part.kind == kind; });
    }

    /// What it computes with: of a TRANSPOSE_CONV the third input, of a constant and a tensor the
    /// other one.
    std::size_t input_of(const Operator& op) const {
        if (op.code.builtin == Op::transpose_conv) return 2;
        const bool pair = op.inputs.size() == 2 && op.inputs[0] != model::absent_tensor;
        return pair && own_ && !plain_.constant(tensor_of(op.inputs[0])).empty() ? 1 : 0;
    }

    const Tensor& tensor_of(TensorIndex index) const {
        return graph_.tensors[static_cast<std::size_t>(index)];
    }

    std::optional<Scale> scale_of(const std::vector<TensorIndex>& list, std::size_t at) const {
        if (at >= list.size() || list[at] == model::absent_tensor) return std::nullopt;
        const Tensor& tensor = tensor_of(list[at]);
        const bool is_signed = tensor.type == ElementType::int8;
        if (!is_signed && tensor.type != ElementType::uint8) return std::nullopt;
        if (!tensor.quantization || !tensor.quantization->quantized()) return std::nullopt;
        const auto& zero = tensor.quantization->zero_point;
        return Scale{
            tensor.quantization->scale.front(),
            (zero.empty() ? 0 : static_cast<std::int32_t>(zero.front())) + (is_signed ? 128 : 0)};
    }

    static ActivationLimits kind_of(Activation activation) {
        return activation == Activation::relu    ? ActivationLimits::relu
               : activation == Activation::relu6 ? ActivationLimits::relu6
                                                 : ActivationLimits::none;
    }

    static ClampLimits limits(const Scale& out, Activation activation) {
        return clamp_limits(out.scale, out.zero, 0, 255, kind_of(activation));
    }

    Requantisation& add_role(Form form, float scale, const ClampLimits& clamp) {
        Requantisation& role = roles_.emplace_back();
        role.op = op_;
        role.form = form;
        role.scale = scale;
        role.clamp_min = clamp.min;
        role.clamp_max = clamp.max;
        return role;
    }

    /// Limited to the output's range and the activation's.
    Requantisation& add_limited(Form form, float scale, const Scale& out, Activation activation) {
        Requantisation& role = add_role(form, scale, limits(out, activation));
        role.activation = kind_of(activation);
        role.out_zero = out.zero;
        return role;
    }

    static Activation activation_of(const Operator& op) {
        return std::visit(
            [](const auto& options) {
                if constexpr (requires { options.activation; }) return options.activation;
                return Activation::none;
            },
            op.options);
    }

    /// One for each part: of a TRANSPOSE_CONV, each phase.
    void add_layer(const Operator& op, const Scale& in, const Scale& out) {
        const auto weights = scale_of(op.inputs, 1);
        if (!weights) return;
        for (const ParameterPart& part : parts_)
            if (part.op == op_ && part.kind == PartKind::layer)
                add_part(op, part, in, *weights, out);
    }

    void add_part(const Operator& op, const ParameterPart& part, const Scale& in,
                  const Scale& weights, const Scale& out) {
        const LayerVectors& vectors = part.layout.vectors;
        const float factor =
            vectors.multipliers ? 1.0F : layer_multiplier(in.scale, weights.scale, out.scale);
        Requantisation& role = add_limited(Form::layer, factor, out, activation_of(op));
        const LayerShape& shape = part.layout.shape;
        role.depthwise = shape.is_diagonal();
        role.per_channel = vectors.zero_points;
        role.steps = shape.taps() * (role.depthwise ? 1 : (shape.in_channels + 3) / 4);
        role.weight_zero = vectors.zero_points ? 0 : weights.zero;
        role.in_zero = in.zero;
    }

    void add_pool(const Operator& op, const Scale& in, const Scale& out) {
        const auto* pool = std::get_if<model::Pool2dOptions>(&op.options);
        if (pool == nullptr) return;
        const auto area = static_cast<float>(pool->filter_h) * static_cast<float>(pool->filter_w);
        const float factor = in.scale * (1.0F / area) * (1.0F / out.scale);
        Requantisation& role = add_limited(Form::average, factor, out, pool->activation);
        // The window's values are the parameters; what they are multiplied with are ones.
        role.weight_zero = in.zero;
        role.in_zero = 0;
    }

    void add_mul(const Operator& op, const Scale& in, const Scale& out) {
        const auto other = scale_of(op.inputs, 1);
        // A product with one number is another instruction.
        if (!other || tensor_of(op.inputs[1]).element_count() < 2) return;
        const bool as_layer = std::ranges::any_of(parts_, [this](const ParameterPart& part) {
            return part.op == op_ && part.kind == PartKind::layer;
        });
        if (as_layer) return add_layer(op, in, out);
        const bool by_channel = std::ranges::any_of(parts_, [this](const ParameterPart& part) {
            return part.op == op_ && part.kind == PartKind::multipliers;
        });
        if (by_channel) {
            Requantisation& role = add_limited(Form::product, 1.0F, out, activation_of(op));
            role.per_channel = true;
            role.weight_zero = 0;
            role.in_zero = in.zero;
            return;
        }
        Requantisation& role =
            add_limited(Form::product, layer_multiplier(in.scale, other->scale, out.scale), out,
                        activation_of(op));
        role.weight_zero = other->zero;
        role.in_zero = in.zero;
    }

    /// 16-bit factors on the diagonals of the parameters, in two halves for each operand.
    void add_sum(const Operator& op, const Scale& in, const Scale& out) {
        const auto other = scale_of(op.inputs, 1);
        if (!other || tensor_of(op.inputs[1]).shape != tensor_of(op.inputs[0]).shape) return;
        const SumFactors factors = sum_factors(in.scale, other->scale);
        Requantisation& role = add_limited(Form::sum, sum_multiplier(in.scale, factors, out.scale),
                                           out, activation_of(op));
        role.steps = 4;
        role.weight_zero = 0;
        role.in_zero = 0;
        role.initial = -(in.zero * factors.first + other->zero * factors.second);
        role.factors = factors;
    }

    /// The table gives 256 * sigmoid(x), in steps of TFLite's fixed scale 1/256.
    void add_sigmoid(const Scale& in) {
        Requantisation& role =
            add_role(Form::sigmoid, in.scale, {spec::sigmoid_256.least, spec::sigmoid_256.most});
        role.weight_zero = 0;
        role.in_zero = in.zero;
        role.out_zero = 0;
    }

    /// A copy through a matrix of ones.
    Requantisation& add_copy(const Scale& in, const Scale& out, Activation activation) {
        Requantisation& role =
            add_limited(Form::copy, in.scale * (1.0F / out.scale), out, activation);
        role.weight_zero = 0;
        role.in_zero = in.zero;
        return role;
    }

    void add_concatenation(const Operator& op, const Scale& out) {
        // One instruction may make pixels of channels of several inputs.
        const auto* options = std::get_if<model::ConcatenationOptions>(&op.options);
        const auto rank = static_cast<std::int32_t>(tensor_of(op.outputs[0]).shape.size());
        const bool apart = options != nullptr && options->axis != -1 && options->axis != rank - 1;
        std::size_t operand = 0;
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            const auto in = scale_of(op.inputs, i);
            const bool computed = op.inputs[i] != model::absent_tensor &&
                                  plain_.constant(tensor_of(op.inputs[i])).empty();
            if (in) {
                Requantisation& role = add_copy(*in, out, activation_of(op));
                if (computed && apart) role.operand = operand;
                // Else what makes the operand may put it into its place.
                role.apart = own_ && (in->scale != out.scale || in->zero != out.zero);
            }
            if (computed) ++operand;
        }
    }

    /// max, then x - max, then exp((x - max) * scale); from there on nothing depends on the scale.
    void add_softmax(const Scale& in) {
        Requantisation& max = add_limited(Form::maximum, 1.0F, in, Activation::none);
        max.weight_zero = in.zero;
        max.initial = -in.zero;
        add_copy(in, in, Activation::none);
        const float span = in.scale * 255.0F * (1.0F / in.scale);
        for (const auto& [weight_zero, in_zero] : {std::pair{1, 0}, std::pair{0, 255}}) {
            Requantisation& difference = add_role(Form::difference, 1.0F, {-span, 0});
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
        Requantisation& exp =
            add_role(Form::exponential, in_table ? 1.0F : in.scale * beta,
                     {spec::exponential_65536.least, spec::exponential_65536.most});
        exp.in_zero = 255;
        exp.out_zero = 0;
    }

    const Model& plain_;
    const model::Subgraph& graph_;
    const std::vector<ParameterPart>& parts_;
    bool own_;
    std::size_t op_ = 0;
    std::vector<Requantisation> roles_;
};

/// The members of the instruction that a form needs; nothing of other instructions.
std::optional<program::Tensor> tensor_for(Form form, const Instruction& instruction) {
    const bool max = form == Form::maximum || form == Form::largest;
    const auto op = max ? spec::op::max : spec::op::mac;
    if (instruction.info != &spec::instructions[op]) return std::nullopt;
    return typed_tensor(instruction);
}

/// Passes of the loops that make one result.
std::uint64_t steps_of(const program::Tensor& tensor) {
    if (const auto steps = tensor.steps_of_result(); steps != 0) return steps;
    std::uint64_t steps = 1;
    for (unsigned i = 0; i < tensor.loops.dimensions; ++i)
        if ((tensor.reduction_mask >> i & 1) != 0) steps *= tensor.loops.count[i];
    return steps;
}

/// A member that holds a value of an operator, by the field's name.
template <typename Value>
struct HeldValue {
    std::string_view field;
    Value program::Tensor::*held;
    std::optional<Value> Requantisation::*of;
    bool in_resize = false;  ///< a resize has the field, too
};
constexpr auto real_values = std::to_array<HeldValue<float>>(
    {{"scale", &program::Tensor::scale, &Requantisation::scale, true},
     {"clamp_min", &program::Tensor::clamp_min, &Requantisation::clamp_min},
     {"clamp_max", &program::Tensor::clamp_max, &Requantisation::clamp_max}});
constexpr auto whole_values = std::to_array<HeldValue<std::int32_t>>(
    {{"par_zero", &program::Tensor::par_zero, &Requantisation::weight_zero, true},
     {"in_zero", &program::Tensor::in_zero, &Requantisation::in_zero, true},
     {"out_zero", &program::Tensor::out_zero, &Requantisation::out_zero},
     {"initial", &program::Tensor::initial, &Requantisation::initial}});

/// The compiler writes zeros of either sign.
bool same(float held, const std::optional<float>& value) {
    return !value || std::bit_cast<std::uint32_t>(held) == std::bit_cast<std::uint32_t>(*value) ||
           (held == 0 && *value == 0);
}

bool same(std::int32_t held, const std::optional<std::int32_t>& value) {
    return !value || held == *value;
}

/// Precondition: tensor_for() the form.
bool has_shape_of(const program::Tensor& t, const Requantisation& values) {
    if (values.steps != 0 && steps_of(t) != values.steps) return false;
    switch (values.form) {
        case Form::layer:
            return !t.in_16bit && !t.par_16bit && !t.single &&
                   t.par_zero_rows == values.per_channel && (t.lanes == 4 || !values.depthwise);
        case Form::average:
            return t.in_16bit && !t.par_16bit && t.single;
        case Form::product:
            if (values.per_channel) return !t.in_16bit && !t.par_16bit && !t.single && t.lane_scale;
            return !t.in_16bit && !t.par_16bit && t.single && t.in_bytewise;
        case Form::sum:
            return !t.in_16bit && t.par_16bit && !t.single && !t.table && !t.out_16bit;
        case Form::copy:
        case Form::window:
            return !t.in_16bit && !t.par_16bit && !t.single && !t.table && !t.out_16bit;
        case Form::sigmoid:
        case Form::exponential:
            return t.table && !t.table_normalised && !t.table_odd;
        case Form::maximum:
        case Form::largest:
        case Form::difference:
            break;
    }
    return true;
}

}  // namespace

bool has_shape_of(const Instruction& instruction, const Requantisation& values) {
    const auto tensor = tensor_for(values.form, instruction);
    return tensor && has_shape_of(*tensor, values);
}

namespace {

bool nearly(float held, float wanted) {
    return std::abs(held - wanted) <= 0.01F;
}

/// The clamp is that of some scale: real limits times its inverse, up to rounding.
bool has_limits_of(const program::Tensor& tensor, ActivationLimits activation) {
    const auto zero = static_cast<float>(tensor.out_zero);
    const float min = tensor.clamp_min, max = tensor.clamp_max;
    switch (activation) {
        case ActivationLimits::none:
            return nearly(min, -zero) && nearly(max, 255 - zero);
        case ActivationLimits::relu:
            return min == 0 && nearly(max, 255 - zero);
        case ActivationLimits::relu6:
            break;
    }
    // Nothing is left above a zero point of 255.
    return min == 0 && max >= 0 && max < 255.01F - zero;
}

}  // namespace

std::vector<Requantisation> requantisations(const Model& plain, const std::vector<bool>& on_chip,
                                            const std::vector<ParameterPart>& parts, bool own) {
    Roles roles(plain, parts, own);
    for (std::size_t i = 0; i < on_chip.size(); ++i) {
        if (on_chip[i]) roles.add(i);
    }
    return roles.take();
}

bool holds(const Instruction& instruction, const Requantisation& values) {
    const auto tensor = tensor_for(values.form, instruction);
    const auto held = [&](const auto& value) {
        return same((*tensor).*value.held, values.*value.of);
    };
    return tensor && has_shape_of(*tensor, values) && std::ranges::all_of(real_values, held) &&
           std::ranges::all_of(whole_values, held);
}

std::vector<ValueDifference> differing_values(const Instruction& instruction,
                                              const Requantisation& values) {
    std::vector<ValueDifference> list;
    const auto operation = program::decode(instruction).operation;
    const auto* resize = std::get_if<program::Resize>(&operation);
    program::Tensor tensor;
    if (resize != nullptr)
        static_cast<program::TensorLoops&>(tensor) = *resize;
    else if (const auto* held = std::get_if<program::Tensor>(&operation))
        tensor = *held;
    else
        return list;
    const auto add = [&](const auto& value) {
        const auto& wanted = values.*value.of;
        if (same(tensor.*value.held, wanted) || (resize != nullptr && !value.in_resize)) return;
        list.push_back(
            {value.field, static_cast<double>(tensor.*value.held), static_cast<double>(*wanted)});
    };
    std::ranges::for_each(real_values, add);
    std::ranges::for_each(whole_values, add);
    return list;
}

bool has_form_of(const Instruction& instruction, const Requantisation& values) {
    const auto tensor = tensor_for(values.form, instruction);
    if (!tensor || !has_shape_of(*tensor, values)) return false;
    const program::Tensor& t = *tensor;
    switch (values.form) {
        case Form::layer:
            if (values.per_channel && t.par_zero != 0) return false;
            break;
        case Form::copy:
            if (t.par_zero != 0) return false;
            if (values.unscaled && (t.in_zero != t.out_zero || std::abs(t.scale - 1) > 1e-6F))
                return false;
            break;
        case Form::maximum:
            if (t.par_zero != t.out_zero || t.initial != -t.out_zero) return false;
            break;
        case Form::window:
            if (t.par_zero != 0) return false;
            break;
        case Form::largest:
            if (t.in_zero != t.out_zero || t.initial != -t.out_zero) return false;
            break;
        case Form::average:
        case Form::product:
        case Form::sum:
            break;
        case Form::difference:
            return same(t.par_zero, values.weight_zero) && same(t.in_zero, values.in_zero) &&
                   same(t.out_zero, values.out_zero) && nearly(t.clamp_min, -255) &&
                   t.clamp_max == 0;
        case Form::sigmoid:
            return same(t.clamp_min, values.clamp_min) && same(t.clamp_max, values.clamp_max);
        case Form::exponential:
            return same(t.in_zero, values.in_zero) && same(t.out_zero, values.out_zero) &&
                   same(t.clamp_min, values.clamp_min) && same(t.clamp_max, values.clamp_max);
    }
    return has_limits_of(t, values.activation);
}

}  // namespace reef::edgetpu

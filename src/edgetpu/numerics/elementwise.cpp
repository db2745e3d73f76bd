// ADD, SUB, MUL, MAXIMUM, MINIMUM, QUANTIZE, RELU and RELU6.
#include "cpu/reference/elementwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/unary.h"
#include "edgetpu/numerics/byte_operators.h"
#include "edgetpu/numerics/closest_ratio.h"
#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/refusals.h"
#include "edgetpu/numerics/requantisation.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

Result<Broadcast> check_bytes(const OperatorView& op) {
    return check_binary(op, {ElementType::uint8, ElementType::int8});
}

/// ADD: both inputs in units of one fraction of their scales.
template <typename T>
struct WeightedSum {
    FloatRequantisation requantise;
    float scale = 1;
    Ratio weights;            ///< of a and of b
    std::int32_t offset = 0;  ///< less the weighted zero points
    T operator()(T a, T b) const {
        return static_cast<T>(
            requantise(a * weights.numerator + b * weights.denominator + offset, scale));
    }
};

/// Of the first, and of the second or, for a difference, of its mirror image.
template <typename T>
PreparedKernel sum_kernel(const OperatorView& op, const char* name, Broadcast broadcast,
                          model::Activation activation, std::int32_t sign = 1) {
    constexpr std::int32_t largest_weight = 32767;
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const bool constants = !op.constant(0).empty() || !op.constant(1).empty();
    if (constants || op.input(0).shape != op.input(1).shape)
        return unknown_on_edgetpu(op.op().code.name() +
                                  " of a constant, or of tensors of different shapes");
    const double ratio = static_cast<double>(a.scale) / static_cast<double>(b.scale);
    if (!(ratio >= 1.0 / largest_weight && ratio <= largest_weight))
        return unknown_on_edgetpu(op.op().code.name() +
                                  " of tensors whose scales are so far apart");
    WeightedSum<T> sum;
    sum.weights = closest_ratio(ratio, largest_weight);
    const std::int32_t first = sum.weights.numerator;
    sum.weights.denominator *= sign;
    sum.offset = -(a.zero_point * sum.weights.numerator + b.zero_point * sum.weights.denominator);
    sum.requantise = REEF_TRY(float_requantisation(activation, op.output(0)));
    sum.scale = REEF_TRY(float_scale(a.scale / static_cast<float>(first), out));
    return binary_kernel<T>(name, std::move(broadcast), sum);
}

/// SUB of a constant, which the chip adds as a whole number of the input's steps. How it
/// rounds that number was seen in one operator only, where it is 127.5 and becomes 128. ADD of one,
/// which no known program has, is taken to be the same with the other sign.
template <typename T>
struct Shift {
    FloatRequantisation requantise;
    float scale = 1;
    std::int32_t zero_a = 0, zero_b = 0;
    double steps = 1;  ///< of a per step of b, which ADD adds
    T operator()(T a, T b) const {
        const auto constant = static_cast<std::int32_t>(std::nearbyint((b - zero_b) * steps));
        return static_cast<T>(requantise(a - zero_a + constant, scale));
    }
};

/// The second operand in front.
template <typename Operation>
struct Swapped {
    Operation operation;
    template <typename T>
    T operator()(T a, T b) const {
        return operation(b, a);
    }
};

/// Which input is the constant: the second, unless the first alone is one.
std::size_t constant_at(const OperatorView& op) {
    return op.constant(1).empty() && !op.constant(0).empty() ? 0 : 1;
}

template <typename T, typename Operation>
PreparedKernel with_constant(std::size_t at, const char* name, Broadcast broadcast,
                             const Operation& operation) {
    if (at == 0) return binary_kernel<T>(name, std::move(broadcast), Swapped<Operation>{operation});
    return binary_kernel<T>(name, std::move(broadcast), operation);
}

/// `sign`: of the constant, which is input `at`.
template <typename T>
PreparedKernel shift_kernel(const OperatorView& op, const char* name, Broadcast broadcast,
                            model::Activation activation, std::size_t at, std::int32_t sign) {
    const std::string operation = op.op().code.name();
    const auto a = REEF_TRY(per_tensor_parameters(op.input(1 - at)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(at)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (op.input(1 - at).shape != op.output(0).shape)
        return unknown_on_edgetpu(operation + " of a constant that has more elements");
    if (a.scale != out.scale) return unknown_on_edgetpu(operation + " to another scale");
    const double steps = static_cast<double>(b.scale) / static_cast<double>(a.scale);
    if (!(steps < 0x1p20)) return fail(Cause::bad_input, "the constant's scale is too large");
    return with_constant<T>(
        at, name, std::move(broadcast),
        Shift<T>{REEF_TRY(float_requantisation(activation, op.output(0))),
                 REEF_TRY(float_scale(a.scale, out)), a.zero_point, b.zero_point, sign * steps});
}

template <typename T>
struct Product {
    FloatRequantisation requantise;
    float scale = 1;
    std::int32_t zero_a = 0, zero_b = 0;
    T operator()(T a, T b) const {
        return static_cast<T>(requantise((a - zero_a) * (b - zero_b), scale));
    }
};

/// A constant per channel, which the chip has as the scales of its lanes: 1104 of 1104 that could
/// be told apart are bit-equal to this.
template <typename T>
struct ChannelProduct {
    FloatRequantisation requantise;
    float scale_a = 1, scale_b = 1, per_step = 1;
    std::int32_t zero_a = 0, zero_b = 0;
    T operator()(T a, T b) const {
        const float factor = scale_b * static_cast<float>(b - zero_b);
        return static_cast<T>(requantise(a - zero_a, scale_a * factor * per_step));
    }
};

template <typename T>
PreparedKernel channel_product_kernel(const OperatorView& op, Broadcast broadcast,
                                      model::Activation activation, std::size_t at) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(1 - at)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(at)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    (void)REEF_TRY(float_scale(a.scale * b.scale, out));  // finite
    return with_constant<T>(
        at, "mul reference", std::move(broadcast),
        ChannelProduct<T>{REEF_TRY(float_requantisation(activation, op.output(0))), a.scale,
                          b.scale, 1.0F / out.scale, a.zero_point, b.zero_point});
}

/// MAXIMUM: the second operand, and twice the half of what the first is above it, a whole number.
/// Where the difference is odd the chip is one off. The half is taken with the scale by its
/// reciprocal, which need not be one.
template <typename T>
struct HalvedMaximum {
    float half_scale = 0.5F;
    float most = 128;
    T operator()(T a, T b) const {
        const float half = std::clamp(static_cast<float>(a - b) * half_scale, 0.0F, most);
        const std::int32_t above = 2 * round_half_even(half);
        return static_cast<T>(std::min(b + above, std::int32_t{std::numeric_limits<T>::max()}));
    }
};

/// MINIMUM: the same downwards. No known program has one.
template <typename T>
struct HalvedMinimum {
    float half_scale = 0.5F;
    float most = 128;
    T operator()(T a, T b) const {
        const float half = std::clamp(static_cast<float>(b - a) * half_scale, 0.0F, most);
        const std::int32_t below = 2 * round_half_even(half);
        return static_cast<T>(std::max(b - below, std::int32_t{std::numeric_limits<T>::min()}));
    }
};

template <typename T, template <typename> typename Halved>
PreparedKernel halved_kernel(const OperatorView& op, const char* name, Broadcast broadcast) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const bool constants = !op.constant(0).empty() || !op.constant(1).empty();
    if (constants || op.input(0).shape != op.input(1).shape)
        return unknown_on_edgetpu(op.op().code.name() +
                                  " of a constant, or of tensors of different shapes");
    if (a != out || b != out)
        return unknown_on_edgetpu(op.op().code.name() + " of several quantisations");
    const float unit = REEF_TRY(float_scale(a.scale, out));
    return binary_kernel<T>(name, std::move(broadcast),
                            Halved<T>{0.5F * unit, 128 * out.scale * (1.0F / out.scale)});
}

template <typename T>
PreparedKernel product_kernel(const OperatorView& op, Broadcast broadcast,
                              model::Activation activation) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const std::size_t at = constant_at(op);
    const auto &image = op.input(1 - at), &other = op.input(at);
    if (is_by_channel(op, at) && image.element_count() != image.shape.back())
        return channel_product_kernel<T>(op, std::move(broadcast), activation, at);
    const std::int64_t size = op.output(0).element_count();
    if (image.element_count() != size ||
        (other.element_count() != size && other.element_count() != 1))
        return unknown_on_edgetpu(
            "MUL with a broadcast other than of one factor for all, or of a constant per channel");
    return binary_kernel<T>(
        "mul reference", std::move(broadcast),
        Product<T>{REEF_TRY(float_requantisation(activation, op.output(0))),
                   REEF_TRY(float_scale(a.scale * b.scale, out)), a.zero_point, b.zero_point});
}

/// A copy to another quantisation.
template <typename In, typename Out>
struct FloatRescale {
    FloatRequantisation requantise;
    float scale = 1;
    std::int32_t zero_in = 0;
    Out operator()(In value) const {
        return static_cast<Out>(requantise(std::int32_t{value} - zero_in, scale));
    }
};

template <typename In, typename Out>
PreparedKernel rescale_kernel(const OperatorView& op, const char* name,
                              model::Activation activation, KernelSet set) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    return unary_kernel<In, Out>(
        name, op, set,
        FloatRescale<In, Out>{REEF_TRY(float_requantisation(activation, op.output(0))),
                              REEF_TRY(float_scale(in.scale, out)), in.zero_point});
}

template <typename In>
PreparedKernel quantize_from(const OperatorView& op, KernelSet set) {
    if (op.output(0).type == ElementType::uint8)
        return rescale_kernel<In, std::uint8_t>(op, "quantize", model::Activation::none, set);
    return rescale_kernel<In, std::int8_t>(op, "quantize", model::Activation::none, set);
}

}  // namespace

PreparedKernel add(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 2);
    if (!is_byte(type)) return prepare_add(op, options);
    const auto given = REEF_TRY(op.options<model::AddOptions>());
    auto broadcast = REEF_TRY(check_bytes(op));
    constexpr auto name = "add reference";
    const std::size_t at = constant_at(op);
    if (!op.constant(at).empty())
        return type == ElementType::uint8
                   ? shift_kernel<std::uint8_t>(op, name, std::move(broadcast), given.activation,
                                                at, 1)
                   : shift_kernel<std::int8_t>(op, name, std::move(broadcast), given.activation, at,
                                               1);
    return type == ElementType::uint8
               ? sum_kernel<std::uint8_t>(op, name, std::move(broadcast), given.activation)
               : sum_kernel<std::int8_t>(op, name, std::move(broadcast), given.activation);
}

PreparedKernel sub(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 2);
    if (!is_byte(type)) return prepare_sub(op, options);
    const auto given = REEF_TRY(op.options<model::SubOptions>());
    auto broadcast = REEF_TRY(check_bytes(op));
    constexpr auto name = "sub reference";
    if (!op.constant(1).empty())
        return type == ElementType::uint8
                   ? shift_kernel<std::uint8_t>(op, name, std::move(broadcast), given.activation, 1,
                                                -1)
                   : shift_kernel<std::int8_t>(op, name, std::move(broadcast), given.activation, 1,
                                               -1);
    return type == ElementType::uint8
               ? sum_kernel<std::uint8_t>(op, name, std::move(broadcast), given.activation, -1)
               : sum_kernel<std::int8_t>(op, name, std::move(broadcast), given.activation, -1);
}

PreparedKernel mul(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 2);
    if (!is_byte(type)) return prepare_mul(op, options);
    const auto given = REEF_TRY(op.options<model::MulOptions>());
    auto broadcast = REEF_TRY(check_bytes(op));
    return type == ElementType::uint8
               ? product_kernel<std::uint8_t>(op, std::move(broadcast), given.activation)
               : product_kernel<std::int8_t>(op, std::move(broadcast), given.activation);
}

PreparedKernel maximum(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 2);
    if (!is_byte(type)) return prepare_maximum(op, options);
    auto broadcast = REEF_TRY(check_bytes(op));
    constexpr auto name = "maximum reference";
    return type == ElementType::uint8
               ? halved_kernel<std::uint8_t, HalvedMaximum>(op, name, std::move(broadcast))
               : halved_kernel<std::int8_t, HalvedMaximum>(op, name, std::move(broadcast));
}

PreparedKernel minimum(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 2);
    if (!is_byte(type)) return prepare_minimum(op, options);
    auto broadcast = REEF_TRY(check_bytes(op));
    constexpr auto name = "minimum reference";
    return type == ElementType::uint8
               ? halved_kernel<std::uint8_t, HalvedMinimum>(op, name, std::move(broadcast))
               : halved_kernel<std::int8_t, HalvedMinimum>(op, name, std::move(broadcast));
}

PreparedKernel quantize(const OperatorView& op, const PrepareOptions& options) {
    const bool bytes = op.input_count() == 1 && op.output_count() == 1 && op.has_input(0) &&
                       is_byte(op.input(0).type) && is_byte(op.output(0).type);
    if (!bytes) return prepare_quantize(op, options);
    return op.input(0).type == ElementType::uint8 ? quantize_from<std::uint8_t>(op, options.kernels)
                                                  : quantize_from<std::int8_t>(op, options.kernels);
}

PreparedKernel relu(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 1);
    constexpr auto activation = model::Activation::relu;
    if (!is_byte(type)) return prepare_relu(op, options);
    return type == ElementType::uint8
               ? rescale_kernel<std::uint8_t, std::uint8_t>(op, "relu", activation, options.kernels)
               : rescale_kernel<std::int8_t, std::int8_t>(op, "relu", activation, options.kernels);
}

PreparedKernel relu6(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 1);
    constexpr auto activation = model::Activation::relu6;
    if (!is_byte(type)) return prepare_relu6(op, options);
    return type == ElementType::uint8
               ? rescale_kernel<std::uint8_t, std::uint8_t>(op, "relu6", activation,
                                                            options.kernels)
               : rescale_kernel<std::int8_t, std::int8_t>(op, "relu6", activation, options.kernels);
}

}  // namespace reef::edgetpu::numerics

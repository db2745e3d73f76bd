// ADD and SUB.
#include "cpu/reference/add.h"

#include <algorithm>
#include <cmath>

#include "cpu/closest_ratio.h"
#include "cpu/float_requantisation.h"
#include "cpu/kernels.h"
#include "cpu/reference/elementwise.h"

namespace reef::cpu {
namespace {

/// TFLite's QuantizeMultiplierSmallerThanOneExp: the factor must be below one.
Result<Multiplier> fraction(double real) {
    const Multiplier multiplier = REEF_TRY(checked_multiplier(real));
    if (real >= 1 || multiplier.shift > 0)
        return fail(Cause::bad_input, "the output's scale is too small for the inputs' scales");
    return multiplier;
}

Result<SumParameters> sum_parameters(const OperatorView& op, model::Activation activation,
                                     int sign) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const double common = 2.0 * std::max(a.scale, b.scale);
    SumParameters p;
    p.zero_a = a.zero_point;
    p.zero_b = b.zero_point;
    p.zero_out = out.zero_point;
    p.a = REEF_TRY(fraction(a.scale / common));
    p.b = REEF_TRY(fraction(b.scale / common));
    p.b.multiplier *= sign;
    p.out = REEF_TRY(
        fraction(common / std::ldexp(static_cast<double>(out.scale), SumParameters::spare_bits)));
    p.clamp = REEF_TRY(quantized_activation_range(activation, op.output(0)));
    return p;
}

/// The Edge TPU's ADD: both inputs in units of one fraction of their scales.
template <typename T>
struct EdgetpuSum {
    FloatRequantisation requantise;
    float scale = 1;
    Ratio weights;            ///< of a and of b
    std::int32_t offset = 0;  ///< less the weighted zero points
    T operator()(T a, T b) const {
        return static_cast<T>(
            requantise(a * weights.numerator + b * weights.denominator + offset, scale));
    }
};

template <typename T>
PreparedKernel edgetpu_sum(const OperatorView& op, Broadcast broadcast,
                           model::Activation activation) {
    constexpr std::int32_t largest_weight = 32767;
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const bool constants = !op.constant(0).empty() || !op.constant(1).empty();
    if (constants || op.input(0).shape != op.input(1).shape)
        return unknown_on_edgetpu("ADD of a constant, or of tensors of different shapes");
    const double ratio = static_cast<double>(a.scale) / static_cast<double>(b.scale);
    if (!(ratio >= 1.0 / largest_weight && ratio <= largest_weight))
        return unknown_on_edgetpu("ADD of tensors whose scales are so far apart");
    EdgetpuSum<T> sum;
    sum.weights = closest_ratio(ratio, largest_weight);
    sum.offset = -(a.zero_point * sum.weights.numerator + b.zero_point * sum.weights.denominator);
    sum.requantise = REEF_TRY(float_requantisation(activation, op.output(0)));
    sum.scale = REEF_TRY(float_scale(a.scale / static_cast<float>(sum.weights.numerator), out));
    return binary_kernel<T>("add reference", std::move(broadcast), sum);
}

/// The Edge TPU's SUB of a constant, which it adds as a whole number of the input's steps. How it
/// rounds that number was seen in one operator only, where it is 127.5 and becomes 128.
template <typename T>
struct EdgetpuDifference {
    FloatRequantisation requantise;
    float scale = 1;
    std::int32_t zero_a = 0, zero_b = 0;
    double steps = 1;  ///< of a per step of b
    T operator()(T a, T b) const {
        const auto constant = static_cast<std::int32_t>(std::nearbyint((b - zero_b) * steps));
        return static_cast<T>(requantise(a - zero_a - constant, scale));
    }
};

template <typename T>
PreparedKernel edgetpu_difference(const OperatorView& op, Broadcast broadcast,
                                  model::Activation activation) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (op.constant(1).empty() || op.input(0).shape != op.output(0).shape)
        return unknown_on_edgetpu("SUB of anything but a constant");
    if (a.scale != out.scale) return unknown_on_edgetpu("SUB to another scale");
    const double steps = static_cast<double>(b.scale) / static_cast<double>(a.scale);
    if (!(steps < 0x1p20)) return fail(Cause::bad_input, "the constant's scale is too large");
    return binary_kernel<T>(
        "sub reference", std::move(broadcast),
        EdgetpuDifference<T>{REEF_TRY(float_requantisation(activation, op.output(0))),
                             REEF_TRY(float_scale(a.scale, out)), a.zero_point, b.zero_point,
                             steps});
}

template <typename T>
PreparedKernel quantized_sum(const OperatorView& op, Broadcast broadcast,
                             model::Activation activation, int sign,
                             const PrepareOptions& options) {
    if (options.arithmetic == Arithmetic::edgetpu)
        return sign > 0 ? edgetpu_sum<T>(op, std::move(broadcast), activation)
                        : edgetpu_difference<T>(op, std::move(broadcast), activation);
    const std::string name = sign > 0 ? "add" : "sub";
    const auto p = REEF_TRY(sum_parameters(op, activation, sign));
    if (options.kernels == KernelSet::fast)
        return binary_run_kernel<T>(name + " fast " + std::string(simd_target()),
                                    std::move(broadcast),
                                    [p](const auto... run) { add_run_fast(run..., p); });
    return binary_kernel<T>(name + " reference", std::move(broadcast), QuantizedSum<T>{p});
}

struct Int32Sum {
    Limits<std::int32_t> clamp;
    int sign;
    std::int32_t operator()(std::int32_t a, std::int32_t b) const {
        // Overflow wraps.
        const auto left = static_cast<std::uint32_t>(a);
        const auto right = static_cast<std::uint32_t>(b);
        const auto sum = static_cast<std::int32_t>(sign > 0 ? left + right : left - right);
        return std::clamp(sum, clamp.min, clamp.max);
    }
};

struct FloatSum {
    Limits<float> clamp;
    int sign;
    float operator()(float a, float b) const {
        return std::min(std::max(sign > 0 ? a + b : a - b, clamp.min), clamp.max);
    }
};

PreparedKernel prepare_sum(const OperatorView& op, model::Activation activation, int sign,
                           const PrepareOptions& options) {
    auto broadcast = REEF_TRY(check_binary(
        op, {ElementType::uint8, ElementType::int8, ElementType::int32, ElementType::float32}));
    const std::string name = sign > 0 ? "add reference" : "sub reference";
    switch (op.output(0).type) {
        case ElementType::uint8:
            return quantized_sum<std::uint8_t>(op, std::move(broadcast), activation, sign, options);
        case ElementType::int8:
            return quantized_sum<std::int8_t>(op, std::move(broadcast), activation, sign, options);
        case ElementType::int32: {
            const auto clamp = REEF_TRY(int32_activation_range(activation));
            return binary_kernel<std::int32_t>(name, std::move(broadcast), Int32Sum{clamp, sign});
        }
        default: {
            const auto clamp = REEF_TRY(float_activation_range(activation));
            return binary_kernel<float>(name, std::move(broadcast), FloatSum{clamp, sign});
        }
    }
}

}  // namespace

PreparedKernel prepare_add(const OperatorView& op, const PrepareOptions& options) {
    const auto given = REEF_TRY(op.options<model::AddOptions>());
    return prepare_sum(op, given.activation, 1, options);
}

PreparedKernel prepare_sub(const OperatorView& op, const PrepareOptions& options) {
    const auto given = REEF_TRY(op.options<model::SubOptions>());
    return prepare_sum(op, given.activation, -1, options);
}

}  // namespace reef::cpu

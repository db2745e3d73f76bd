// LEAKY_RELU and PRELU: negative values times a slope, of the operator or of each element.
#include "cpu/prepare/kernels.h"
#include "cpu/reference/elementwise.h"
#include "cpu/reference/float_runs.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

/// Distances to the input's zero point, rescaled by their sign.
struct SlopeParameters {
    std::int32_t zero_in = 0, zero_slope = 0, zero_out = 0;
    Multiplier positive, negative;
};

template <typename T>
[[nodiscard]] T clamped_sum(std::int32_t rescaled, std::int32_t zero_point) {
    return static_cast<T>(std::clamp<std::int64_t>(std::int64_t{rescaled} + zero_point,
                                                   std::numeric_limits<T>::min(),
                                                   std::numeric_limits<T>::max()));
}

template <typename T>
struct QuantizedLeakyRelu {
    SlopeParameters p;
    T operator()(T value) const {
        const std::int32_t x = value - p.zero_in;
        return clamped_sum<T>(multiply_by_quantized_multiplier(x, x >= 0 ? p.positive : p.negative),
                              p.zero_out);
    }
};

template <typename T>
struct QuantizedPrelu {
    SlopeParameters p;
    T operator()(T value, T slope) const {
        const std::int32_t x = value - p.zero_in;
        const std::int32_t rescaled =
            x >= 0 ? multiply_by_quantized_multiplier(x, p.positive)
                   : multiply_by_quantized_multiplier(x * (slope - p.zero_slope), p.negative);
        return clamped_sum<T>(rescaled, p.zero_out);
    }
};

template <typename T>
PreparedKernel quantized_leaky_relu(const OperatorView& op, float alpha,
                                    const PrepareOptions& options) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const double positive = in.scale / out.scale;
    const double negative = in.scale * alpha / out.scale;
    return unary_kernel<T, T>(
        "leaky_relu", op, options.kernels,
        QuantizedLeakyRelu<T>{{in.zero_point, 0, out.zero_point,
                               REEF_TRY(checked_multiplier(positive)),
                               REEF_TRY(checked_signed_multiplier(negative))}});
}

template <typename T>
PreparedKernel quantized_prelu(const OperatorView& op, Broadcast broadcast) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto slope = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const double positive = in.scale / out.scale;
    const double negative = in.scale * slope.scale / out.scale;
    return binary_kernel<T>("prelu reference", std::move(broadcast),
                            QuantizedPrelu<T>{{in.zero_point, slope.zero_point, out.zero_point,
                                               REEF_TRY(checked_multiplier(positive)),
                                               REEF_TRY(checked_multiplier(negative))}});
}

}  // namespace

PreparedKernel prepare_leaky_relu(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const float alpha = REEF_TRY(op.options<model::LeakyReluOptions>()).alpha;
    REEF_CHECK(expect_type(op.input(0), "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
    if (op.input(0).type == ElementType::uint8)
        return quantized_leaky_relu<std::uint8_t>(op, alpha, options);
    if (op.input(0).type == ElementType::int8)
        return quantized_leaky_relu<std::int8_t>(op, alpha, options);
    if (options.kernels == KernelSet::fast)
        return unary_run_kernel<float, float>(
            "leaky_relu fast " + std::string(simd_target()), op,
            [alpha](const float* in, float* out, std::size_t count) {
                float_leaky_relu_fast(in, out, count, alpha);
            });
    return unary_kernel<float, float>("leaky_relu", op, options.kernels, [alpha](float value) {
        return value > 0 ? value : value * alpha;
    });
}

PreparedKernel prepare_prelu(const OperatorView& op, const PrepareOptions& /*options*/) {
    auto broadcast =
        REEF_TRY(check_binary(op, {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_shape(op.output(0), "output 0", op.input(0).shape));
    if (op.input(0).type == ElementType::uint8)
        return quantized_prelu<std::uint8_t>(op, std::move(broadcast));
    if (op.input(0).type == ElementType::int8)
        return quantized_prelu<std::int8_t>(op, std::move(broadcast));
    return binary_kernel<float>(
        "prelu reference", std::move(broadcast),
        [](float value, float slope) { return value >= 0 ? value : value * slope; });
}

}  // namespace reef::cpu

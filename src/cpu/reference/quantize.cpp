// QUANTIZE (from float, or from one quantisation to another), DEQUANTIZE, RELU, RELU6 and
// RELU_N1_TO_1.
#include "cpu/reference/quantize.h"

#include <algorithm>
#include <type_traits>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

template <typename In, typename Out>
struct Rescale {
    std::int32_t zero_in = 0;
    std::int32_t zero_out = 0;
    Multiplier multiplier;
    ClampRange clamp;
    Out operator()(In value) const {
        const std::int64_t result =
            std::int64_t{multiply_by_quantized_multiplier(value - zero_in, multiplier)} + zero_out;
        return static_cast<Out>(std::clamp<std::int64_t>(result, clamp.min, clamp.max));
    }
};

template <typename T>
struct ToFloat {
    AffineParameters in;
    float operator()(T value) const {
        return static_cast<float>(static_cast<double>(in.scale) * (value - in.zero_point));
    }
};

template <typename In, typename Out>
PreparedKernel quantize_kernel(const OperatorView& op, const PrepareOptions& options) {
    const KernelSet set = options.kernels;
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if constexpr (std::is_same_v<In, float>) {
        if constexpr (sizeof(Out) == 1)
            if (set == KernelSet::fast)
                return unary_run_kernel<float, Out>(
                    "quantize fast " + std::string(simd_target()), op,
                    [out](const float* from, Out* to, std::size_t count) {
                        quantize_fast(from, to, count, out);
                    });
        return unary_kernel<float, Out>("quantize", op, set, FromFloat<Out>{out});
    } else {
        const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
        const double factor = static_cast<double>(in.scale) / static_cast<double>(out.scale);
        return unary_kernel<In, Out>(
            "quantize", op, set,
            Rescale<In, Out>{in.zero_point, out.zero_point, REEF_TRY(checked_multiplier(factor)),
                             type_range(op.output(0).type)});
    }
}

/// Clamped as the activation clamps.
template <typename T>
PreparedKernel rectify(const OperatorView& op, const char* name, model::Activation activation,
                       const PrepareOptions& options) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    // TFLite divides the scales in float32 here, in float64 for QUANTIZE.
    return unary_kernel<T, T>(
        name, op, options.kernels,
        Rescale<T, T>{in.zero_point, out.zero_point,
                      REEF_TRY(checked_multiplier(in.scale / out.scale)),
                      REEF_TRY(quantized_activation_range(activation, op.output(0)))});
}

PreparedKernel prepare_rectifier(const OperatorView& op, const char* name,
                                 model::Activation activation, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    REEF_CHECK(expect_type(
        op.input(0), "input 0",
        {ElementType::float32, ElementType::uint8, ElementType::int8, ElementType::int16}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
    switch (op.input(0).type) {
        case ElementType::uint8:
            return rectify<std::uint8_t>(op, name, activation, options);
        case ElementType::int8:
            return rectify<std::int8_t>(op, name, activation, options);
        case ElementType::int16:
            return rectify<std::int16_t>(op, name, activation, options);
        default: {
            auto limits = REEF_TRY(float_activation_range(activation));
            // Fused, RELU gives the largest finite number for infinity; the operator keeps it.
            if (activation == model::Activation::relu)
                limits.max = std::numeric_limits<float>::infinity();
            return unary_kernel<float, float>(name, op, options.kernels, [limits](float value) {
                return value > limits.max ? limits.max : value < limits.min ? limits.min : value;
            });
        }
    }
}

}  // namespace

PreparedKernel prepare_quantize(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const auto eight_or_sixteen = {ElementType::uint8, ElementType::int8, ElementType::int16};
    REEF_CHECK(expect_type(
        op.input(0), "input 0",
        {ElementType::float32, ElementType::uint8, ElementType::int8, ElementType::int16}));
    REEF_CHECK(expect_type(op.output(0), "output 0", eight_or_sixteen));
    return with_type_of(op.input(0).type, "input 0", [&]<typename In>(In) -> PreparedKernel {
        switch (op.output(0).type) {
            case ElementType::uint8:
                return quantize_kernel<In, std::uint8_t>(op, options);
            case ElementType::int8:
                return quantize_kernel<In, std::int8_t>(op, options);
            default:
                return quantize_kernel<In, std::int16_t>(op, options);
        }
    });
}

PreparedKernel prepare_dequantize(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    REEF_CHECK(expect_type(op.input(0), "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::int16}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::float32}));
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    return with_type_of(op.input(0).type, "input 0", [&]<typename In>(In) -> PreparedKernel {
        return unary_kernel<In, float>("dequantize", op, options.kernels, ToFloat<In>{in});
    });
}

PreparedKernel prepare_relu(const OperatorView& op, const PrepareOptions& options) {
    return prepare_rectifier(op, "relu", model::Activation::relu, options);
}

PreparedKernel prepare_relu_n1_to_1(const OperatorView& op, const PrepareOptions& options) {
    return prepare_rectifier(op, "relu_n1_to_1", model::Activation::relu_n1_to_1, options);
}

PreparedKernel prepare_relu6(const OperatorView& op, const PrepareOptions& options) {
    return prepare_rectifier(op, "relu6", model::Activation::relu6, options);
}

}  // namespace reef::cpu

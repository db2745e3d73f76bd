// QUANTIZE (from float, or from one quantisation to another), DEQUANTIZE (from float16, too), RELU,
// RELU6 and RELU_N1_TO_1.
#include "cpu/reference/quantize.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/float_runs.h"
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

/// float16, whose values float32 has all. What is no number stays none.
struct FromHalf {
    float operator()(std::uint16_t half) const {
        constexpr std::uint32_t infinite = 0x7C00, first_normal = 0x0400;
        constexpr int fraction_bits = 23 - 10, bias = 127 - 15;
        const std::uint32_t sign = (half & 0x8000U) << 16, rest = half & 0x7FFFU;
        if (rest < first_normal) {
            const float size = static_cast<float>(rest) * 0x1p-24F;
            return sign != 0 ? -size : size;
        }
        const std::uint32_t exponent = rest >= infinite ? 2 * bias : bias;
        return std::bit_cast<float>(sign | ((rest << fraction_bits) + (exponent << 23)));
    }
};

/// A scale and a zero point for each index of one dimension.
template <typename T>
class DequantizeChannels final : public Kernel {
  public:
    DequantizeChannels(std::vector<AffineParameters> channels, std::size_t outer, std::size_t inner)
        : channels_(std::move(channels)), outer_(outer), inner_(inner) {}
    [[nodiscard]] std::string name() const override { return "dequantize reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* in = frame.in<T>(0);
        float* out = frame.out<float>(0);
        for (std::size_t o = 0; o < outer_; ++o)
            for (const AffineParameters& channel : channels_)
                for (std::size_t i = 0; i < inner_; ++i) *out++ = ToFloat<T>{channel}(*in++);
        return {};
    }

  private:
    std::vector<AffineParameters> channels_;
    std::size_t outer_, inner_;
};

template <typename T>
PreparedKernel dequantize_channels(const OperatorView& op) {
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_shape(op.output(0), "output 0", input.shape));
    const model::Quantization& q = *input.quantization;
    const auto axis = REEF_TRY(resolve_axis(q.axis, input.shape.size()));
    std::vector<AffineParameters> channels;
    for (std::size_t c = 0; c < q.scale.size(); ++c)
        channels.push_back({q.scale[c], static_cast<std::int32_t>(q.zero_point[c])});
    std::size_t outer = 1, inner = 1;
    for (std::size_t d = 0; d < axis; ++d) outer *= static_cast<std::size_t>(input.shape[d]);
    for (std::size_t d = axis + 1; d < input.shape.size(); ++d)
        inner *= static_cast<std::size_t>(input.shape[d]);
    return std::make_unique<DequantizeChannels<T>>(std::move(channels), outer, inner);
}

template <typename T>
PreparedKernel dequantize_kernel(const OperatorView& op, const PrepareOptions& options) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    if (options.kernels == KernelSet::fast)
        return unary_run_kernel<T, float>("dequantize fast " + std::string(simd_target()), op,
                                          [in](const T* from, float* to, std::size_t count) {
                                              dequantize_fast(from, to, count, in);
                                          });
    return unary_kernel<T, float>("dequantize", op, options.kernels, ToFloat<T>{in});
}

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
            // It gives the lower limit for -0 and for what is no number; the others keep those.
            const bool is_relu6 = activation == model::Activation::relu6;
            if (options.kernels == KernelSet::fast)
                return unary_run_kernel<float, float>(
                    std::string(name) + " fast " + std::string(simd_target()), op,
                    [limits, is_relu6](const float* in, float* out, std::size_t count) {
                        is_relu6 ? float_limit_fast(in, out, count, limits)
                                 : float_clamp_fast(in, out, count, limits);
                    });
            if (is_relu6)
                return unary_kernel<float, float>(name, op, options.kernels, [limits](float value) {
                    return value > limits.min ? std::min(value, limits.max) : limits.min;
                });
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
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(
        input, "input 0",
        {ElementType::float16, ElementType::uint8, ElementType::int8, ElementType::int16}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::float32}));
    if (input.type == ElementType::float16)
        return unary_kernel<std::uint16_t, float>("dequantize", op, options.kernels, FromHalf{});
    if (input.quantization && input.quantization->per_channel()) {
        if (input.type == ElementType::uint8) return dequantize_channels<std::uint8_t>(op);
        if (input.type == ElementType::int8) return dequantize_channels<std::int8_t>(op);
    }
    switch (input.type) {
        case ElementType::uint8:
            return dequantize_kernel<std::uint8_t>(op, options);
        case ElementType::int8:
            return dequantize_kernel<std::int8_t>(op, options);
        default:
            return dequantize_kernel<std::int16_t>(op, options);
    }
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

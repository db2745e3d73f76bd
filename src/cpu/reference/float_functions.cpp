// Functions of one float32: SIN, COS, EXP, LOG, ELU, GELU, RSQRT (of int8, too), TANH (of 8 bits,
// too).
//
// The plain ones come from the C library. TFLite takes SIN, COS, EXP and LOG from there, too, and
// TANH of float32 from a rational approximation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "cpu/prepare/fixed_point_functions.h"
#include "cpu/prepare/kernels.h"
#include "cpu/reference/float_runs.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

/// SIN and COS have no vectorised form.
PreparedKernel float_function(const OperatorView& op, const char* name,
                              const PrepareOptions& options, std::optional<FloatFunction> fast,
                              float (*function)(float)) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    REEF_CHECK(expect_type(op.input(0), "input 0", {ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::float32}));
    if (options.kernels == KernelSet::fast && fast) return fast_float_function(name, op, *fast);
    return unary_kernel<float, float>(name, op, options.kernels, function);
}

/// tanh in float32 between dequantising and quantising.
template <typename T>
struct QuantizedTanh {
    AffineParameters in, out;
    T operator()(T value) const {
        const float real = in.scale * static_cast<float>(value - in.zero_point);
        // Multiplies by the reciprocal, as TFLite does: dividing rounds differently.
        const float inverse_scale = 1 / out.scale;
        const float steps =
            std::clamp(std::round(std::tanh(real) * inverse_scale), -0x1p24F, 0x1p24F);
        return static_cast<T>(
            std::clamp<std::int32_t>(static_cast<std::int32_t>(steps) + out.zero_point,
                                     std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
};

template <typename T>
PreparedKernel quantized_tanh(const OperatorView& op, const PrepareOptions& options) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    return unary_kernel<T, T>("tanh", op, options.kernels, QuantizedTanh<T>{in, out});
}

/// 1 / sqrt in fixed point: 20 fractional bits between the root and the output's scale.
struct QuantizedRsqrt {
    std::int32_t zero_in = 0, zero_out = 0;
    Multiplier multiplier;  ///< 1 / (sqrt(input scale) * output scale)

    std::int8_t operator()(std::int8_t value) const {
        constexpr std::int32_t fraction_bits = 20;
        const std::int32_t x = value - zero_in;
        if (x <= 0) return 127;
        Multiplier root = inverse_square_root(x);
        root.shift += fraction_bits;
        const std::int32_t inverse = multiply_by_quantized_multiplier(1, root);
        Multiplier rescale = multiplier;
        rescale.shift -= fraction_bits;
        const std::int64_t result =
            std::int64_t{multiply_by_quantized_multiplier(inverse, rescale)} + zero_out;
        return static_cast<std::int8_t>(std::clamp<std::int64_t>(result, -128, 127));
    }
};

class QuantizedRsqrtKernel final : public Kernel {
  public:
    QuantizedRsqrtKernel(std::size_t size, QuantizedRsqrt rsqrt)
        : size_(size), zero_in_(rsqrt.zero_in), table_(rsqrt) {}
    [[nodiscard]] std::string name() const override { return "rsqrt reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto* in = frame.in<std::int8_t>(0);
        bool negative = false;
        for (std::size_t i = 0; i < size_; ++i) {
            negative |= in[i] < zero_in_;
            frame.out<std::int8_t>(0)[i] = table_(in[i]);
        }
        if (negative) return fail(Cause::bad_input, "RSQRT of a negative number");
        return {};
    }

  private:
    std::size_t size_;
    std::int32_t zero_in_;
    Table<std::int8_t, std::int8_t> table_;
};

PreparedKernel quantized_rsqrt(const OperatorView& op) {
    REEF_CHECK(expect_shape(op.output(0), "output 0", op.input(0).shape));
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const auto scale =
        static_cast<float>(1.0 / static_cast<double>(std::sqrt(in.scale) * out.scale));
    const Multiplier multiplier = REEF_TRY(checked_multiplier(static_cast<double>(scale)));
    if (multiplier.shift < -11)
        return fail(Cause::unsupported, fmt::format("a rescaling factor of {}", scale));
    return std::make_unique<QuantizedRsqrtKernel>(
        static_cast<std::size_t>(op.input(0).element_count()),
        QuantizedRsqrt{in.zero_point, out.zero_point, multiplier});
}

}  // namespace

PreparedKernel prepare_sin(const OperatorView& op, const PrepareOptions& options) {
    return float_function(op, "sin", options, std::nullopt,
                          [](float value) { return std::sin(value); });
}

PreparedKernel prepare_cos(const OperatorView& op, const PrepareOptions& options) {
    return float_function(op, "cos", options, std::nullopt,
                          [](float value) { return std::cos(value); });
}

PreparedKernel prepare_exp(const OperatorView& op, const PrepareOptions& options) {
    return float_function(op, "exp", options, FloatFunction::exponential,
                          [](float value) { return std::exp(value); });
}

PreparedKernel prepare_log(const OperatorView& op, const PrepareOptions& options) {
    return float_function(op, "log", options, FloatFunction::logarithm,
                          [](float value) { return std::log(value); });
}

PreparedKernel prepare_elu(const OperatorView& op, const PrepareOptions& options) {
    return float_function(op, "elu", options, FloatFunction::elu,
                          [](float value) { return value < 0 ? std::expm1(value) : value; });
}

/// The share of a normal distribution below the value, times it. In float64: TFLite's 1 + erf(x)
/// and 1 + tanh(x) lose all digits of negative values, which the other ends of these functions
/// keep.
PreparedKernel prepare_gelu(const OperatorView& op, const PrepareOptions& options) {
    if (REEF_TRY(op.options<model::GeluOptions>()).approximate)
        return float_function(op, "gelu", options, FloatFunction::gelu_by_tanh, [](float value) {
            const double x = value;
            constexpr double twice_root = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
            return static_cast<float>(x / (1 + std::exp(-twice_root * (x + 0.044715 * x * x * x))));
        });
    return float_function(op, "gelu", options, FloatFunction::gelu, [](float value) {
        const double x = value;
        return static_cast<float>(x / 2 * std::erfc(-x / std::numbers::sqrt2));
    });
}

PreparedKernel prepare_rsqrt(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    if (op.input(0).type == ElementType::int8) {
        REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::int8}));
        return quantized_rsqrt(op);
    }
    return float_function(op, "rsqrt", options, FloatFunction::inverse_root,
                          [](float value) { return 1.0F / std::sqrt(value); });
}

PreparedKernel prepare_tanh(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const ElementType type = op.input(0).type;
    REEF_CHECK(expect_type(op.input(0), "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {type}));
    if (type == ElementType::uint8) return quantized_tanh<std::uint8_t>(op, options);
    if (type == ElementType::int8) return quantized_tanh<std::int8_t>(op, options);
    return float_function(op, "tanh", options, FloatFunction::tanh,
                          [](float value) { return std::tanh(value); });
}

}  // namespace reef::cpu

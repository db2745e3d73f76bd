// LOGISTIC, TANH, HARD_SWISH, LEAKY_RELU and PRELU.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/elementwise.h"
#include "cpu/reference/unary.h"
#include "edgetpu/numerics/byte_operators.h"
#include "edgetpu/numerics/functions.h"
#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/refusals.h"
#include "edgetpu/numerics/requantisation.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

template <typename T>
struct Sigmoid {
    AffineParameters in;
    float steepness = 1;  ///< a power of two
    T operator()(T value) const {
        // In this order 0 stays 0 whatever the scale.
        const float real = steepness * static_cast<float>(value - in.zero_point) * in.scale;
        const float y = sigmoid_256(std::clamp(real, -sigmoid_limit, sigmoid_limit));
        return static_cast<T>(std::clamp(round_half_even(y), 0, 255) +
                              std::numeric_limits<T>::min());
    }
};

template <typename T>
PreparedKernel sigmoid_kernel(const OperatorView& op, KernelSet set) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (out.scale != 1.0F / 256 || out.zero_point != std::numeric_limits<T>::min())
        return unknown_on_edgetpu("LOGISTIC with another output scale than 1/256");
    return unary_kernel<T, T>("logistic", op, set, Sigmoid<T>{in});
}

/// 128 tanh(x) is 256 / (1 + exp(-2 x)) less 128, which is the output's zero point in uint8.
template <typename T>
PreparedKernel tanh_kernel(const OperatorView& op, KernelSet set) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (out.scale != 1.0F / 128 || out.zero_point != std::numeric_limits<T>::min() + 128)
        return unknown_on_edgetpu("TANH with another output scale than 1/128");
    return unary_kernel<T, T>("tanh", op, set, Sigmoid<T>{in, 2});
}

/// A copy, then a table of two lines; no activation limits it.
template <typename T>
struct BentLine {
    float scale = 1, slope = 0;
    std::int32_t zero_in = 0, zero_out = 0;
    T operator()(T value) const {
        constexpr float far = 0x1p20F;
        const float x = std::clamp(static_cast<float>(value - zero_in) * scale, -far, far);
        const float y = std::clamp(x < 0 ? x * slope : x, -far, far);
        return static_cast<T>(std::clamp<std::int32_t>(round_half_even(y) + zero_out,
                                                       std::numeric_limits<T>::min(),
                                                       std::numeric_limits<T>::max()));
    }
};

template <typename T>
PreparedKernel bent_kernel(const OperatorView& op, float slope, KernelSet set) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    return unary_kernel<T, T>(
        "leaky_relu", op, set,
        BentLine<T>{REEF_TRY(float_scale(in.scale, out)), slope, in.zero_point, out.zero_point});
}

/// A copy to the output's scale, then a table: nothing below -3, x from 3 on, and between them
/// x (x + 3) / 6.
template <typename T>
struct HardSwish {
    PolynomialTable table;
    float scale = 1;
    std::int32_t zero_in = 0, zero_out = 0;
    T operator()(T value) const {
        constexpr float far = 0x1p20F;
        const float x = std::clamp(static_cast<float>(value - zero_in) * scale, -far, far);
        const float y = std::clamp(table(x), -far, far);
        return static_cast<T>(std::clamp<std::int32_t>(round_half_even(y) + zero_out,
                                                       std::numeric_limits<T>::min(),
                                                       std::numeric_limits<T>::max()));
    }
};

PolynomialTable hard_swish_in_steps(float step) {
    PolynomialTable table{};
    table.coefficients[1] = {0, 0.5F, step / 6, 0, 0};
    table.coefficients[2] = {0, 1, 0, 0, 0};
    std::ranges::fill(table.breaks, std::numeric_limits<float>::infinity());
    table.breaks[0] = -3 / step;
    table.breaks[1] = 3 / step;
    return table;
}

template <typename T>
PreparedKernel hard_swish_kernel(const OperatorView& op, KernelSet set) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    return unary_kernel<T, T>(
        "hard_swish", op, set,
        HardSwish<T>{hard_swish_in_steps(out.scale), REEF_TRY(float_scale(in.scale, out)),
                     in.zero_point, out.zero_point});
}

template <typename T>
struct Prelu {
    FloatRequantisation requantise;
    float scale = 1, slope_scale = 1;
    std::int32_t zero_in = 0, zero_slope = 0;
    T operator()(T value, T slope) const {
        const std::int32_t x = value - zero_in;
        return static_cast<T>(x >= 0 ? requantise(x, scale)
                                     : requantise(x * (slope - zero_slope), slope_scale));
    }
};

template <typename T>
PreparedKernel prelu_kernel(const OperatorView& op, Broadcast broadcast) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto slopes = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const bool single = !op.constant(1).empty() && op.input(1).element_count() == 1;
    if (!single && !is_by_channel(op))
        return unknown_on_edgetpu("PRELU with more slopes than one for each channel");
    return binary_kernel<T>(
        "prelu reference", std::move(broadcast),
        Prelu<T>{REEF_TRY(float_requantisation(model::Activation::none, op.output(0))),
                 REEF_TRY(float_scale(in.scale, out)),
                 REEF_TRY(float_scale(in.scale * slopes.scale, out)), in.zero_point,
                 slopes.zero_point});
}

}  // namespace

PreparedKernel logistic(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 1);
    if (!is_byte(type)) return prepare_logistic(op, options);
    return type == ElementType::uint8 ? sigmoid_kernel<std::uint8_t>(op, options.kernels)
                                      : sigmoid_kernel<std::int8_t>(op, options.kernels);
}

PreparedKernel tanh(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 1);
    if (!is_byte(type)) return prepare_tanh(op, options);
    return type == ElementType::uint8 ? tanh_kernel<std::uint8_t>(op, options.kernels)
                                      : tanh_kernel<std::int8_t>(op, options.kernels);
}

PreparedKernel hard_swish(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 1);
    if (!is_byte(type)) return prepare_hard_swish(op, options);
    return type == ElementType::uint8 ? hard_swish_kernel<std::uint8_t>(op, options.kernels)
                                      : hard_swish_kernel<std::int8_t>(op, options.kernels);
}

PreparedKernel leaky_relu(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 1);
    if (!is_byte(type)) return prepare_leaky_relu(op, options);
    const float slope = REEF_TRY(op.options<model::LeakyReluOptions>()).alpha;
    if (!std::isfinite(slope)) return fail(Cause::bad_input, "the slope is no number");
    return type == ElementType::uint8 ? bent_kernel<std::uint8_t>(op, slope, options.kernels)
                                      : bent_kernel<std::int8_t>(op, slope, options.kernels);
}

PreparedKernel prelu(const OperatorView& op, const PrepareOptions& options) {
    const ElementType type = byte_type(op, 2);
    if (!is_byte(type)) return prepare_prelu(op, options);
    auto broadcast = REEF_TRY(check_binary(op, {ElementType::uint8, ElementType::int8}));
    REEF_CHECK(expect_shape(op.output(0), "output 0", op.input(0).shape));
    return type == ElementType::uint8 ? prelu_kernel<std::uint8_t>(op, std::move(broadcast))
                                      : prelu_kernel<std::int8_t>(op, std::move(broadcast));
}

}  // namespace reef::edgetpu::numerics

// HARD_SWISH: x times the share of [-3, 3] below it.
//
// TFLite computes bytes in 16-bit fixed point: the input in steps of 1/128, its share with 3 as
// 32768, and their product, each rounded once; the last product is cut off towards zero.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

constexpr std::int32_t saturate_16(std::int32_t x) {
    return std::clamp<std::int32_t>(x, std::numeric_limits<std::int16_t>::min(),
                                    std::numeric_limits<std::int16_t>::max());
}

/// a * b / 2^15 to nearest, ties upwards. Both have 16 bits, and b is positive.
constexpr std::int32_t rounded_high_product(std::int32_t a, std::int32_t b) {
    return (a * b + (1 << 14)) >> 15;
}

/// A multiplier's upper half: 16 bits of it.
constexpr std::int32_t upper_half(std::int32_t multiplier) {
    constexpr std::int32_t half = 1 << 15;
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max() - half;
    if (multiplier >= most) return std::numeric_limits<std::int16_t>::max();
    return (multiplier + half) >> 16;
}

template <typename T>
struct QuantizedHardSwish {
    std::int32_t zero_in = 0, zero_out = 0;
    Multiplier to_share, to_output;

    /// From 0 to 32767.
    [[nodiscard]] std::int32_t share(std::int32_t x) const {
        const std::int32_t factor = upper_half(to_share.multiplier);
        if (to_share.shift <= 0) {
            x = rounding_divide_by_pot(rounded_high_product(x, factor), -to_share.shift);
        } else {
            // All of the shift but one bit, which alone may saturate what comes out.
            const int before = std::min(to_share.shift - 1, 15);
            x = saturate_16(2 * rounded_high_product(saturate_16(x * (1 << before)), factor));
        }
        return (x + (1 << 15)) >> 1;
    }

    T operator()(T value) const {
        const std::int32_t x = (value - zero_in) * 128;
        const std::int32_t unshifted = rounded_high_product(x, upper_half(to_output.multiplier));
        const std::int32_t product = share(x) * unshifted / (1 << 15);
        const std::int32_t rescaled = rounding_divide_by_pot(product, -to_output.shift);
        return static_cast<T>(std::clamp<std::int32_t>(
            rescaled + zero_out, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
};

template <typename T>
PreparedKernel quantized_hard_swish(const OperatorView& op, KernelSet set) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const float fine = (1.0F / 128) * in.scale;
    QuantizedHardSwish<T> function{in.zero_point, out.zero_point,
                                   REEF_TRY(checked_multiplier(fine / (3.0F / 32768))),
                                   REEF_TRY(checked_multiplier(fine / out.scale))};
    constexpr std::int32_t widest_shift = -15;
    if (function.to_output.shift > 0)
        return fail(Cause::unsupported, "an output scale below 1/128 of the input's");
    if (function.to_output.shift < widest_shift || function.to_share.shift < widest_shift)
        return fail(Cause::unsupported, "scales that leave nothing of 16 bits");
    return unary_kernel<T, T>("hard_swish", op, set, function);
}

}  // namespace

PreparedKernel prepare_hard_swish(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const ElementType type = op.input(0).type;
    REEF_CHECK(expect_type(op.input(0), "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {type}));
    if (type == ElementType::uint8) return quantized_hard_swish<std::uint8_t>(op, options.kernels);
    if (type == ElementType::int8) return quantized_hard_swish<std::int8_t>(op, options.kernels);
    return unary_kernel<float, float>("hard_swish", op, options.kernels, [](float x) {
        return x * std::min(6.0F, std::max(0.0F, x + 3)) / 6;
    });
}

}  // namespace reef::cpu

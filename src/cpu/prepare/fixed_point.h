// TFLite's fixed-point arithmetic: the definition that every integer kernel shares.
//
// Source: gemmlowp's documented fixed-point scheme as TFLite 2.9's builtin kernels use it
// ("double rounding"): a saturating rounding doubling high multiply, then a rounding right shift
// with ties away from zero. Its matrix products (CONV_2D and FULLY_CONNECTED, which run on another
// library) round ties of the second step upwards instead: the golden tensors of every CONV_2D in
// every model say so, and the other kernels, DEPTHWISE_CONV_2D among them, keep to the first form.
#pragma once

#include <cstdint>
#include <limits>

namespace reef::cpu {

/// value = multiplier / 2^31 * 2^shift, multiplier in [2^30, 2^31); shift > 0 is a left shift.
struct Multiplier {
    std::int32_t multiplier = 0;
    std::int32_t shift = 0;
    friend bool operator==(const Multiplier&, const Multiplier&) = default;
};

/// The closest Multiplier to `real`, TFLite's QuantizeMultiplier: round half away from zero; values
/// below 2^-32 become 0. Precondition: finite and not negative (checked_multiplier in quantized.h
/// checks what files say).
[[nodiscard]] Multiplier quantize_multiplier(double real);

/// round(a * b / 2^31) with ties towards +infinity; saturates only for a == b == INT32_MIN.
[[nodiscard]] constexpr std::int32_t saturating_rounding_doubling_high_mul(std::int32_t a,
                                                                           std::int32_t b) {
    if (a == b && a == std::numeric_limits<std::int32_t>::min())
        return std::numeric_limits<std::int32_t>::max();
    const std::int64_t product = static_cast<std::int64_t>(a) * b;
    return static_cast<std::int32_t>((product + (std::int64_t{1} << 30)) >> 31);
}

/// x / 2^exponent, rounded to nearest with ties away from zero. exponent is 0 to 31.
[[nodiscard]] constexpr std::int32_t rounding_divide_by_pot(std::int32_t x, int exponent) {
    const std::int32_t mask = static_cast<std::int32_t>((std::int64_t{1} << exponent) - 1);
    const std::int32_t remainder = x & mask;
    const std::int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

/// x * m. The left shift wraps as two's complement, as the machine's does.
[[nodiscard]] constexpr std::int32_t multiply_by_quantized_multiplier(std::int32_t x,
                                                                      Multiplier m) {
    const int left = m.shift > 0 ? m.shift : 0;
    const int right = m.shift > 0 ? 0 : -m.shift;
    const auto shifted =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << static_cast<unsigned>(left));
    return rounding_divide_by_pot(saturating_rounding_doubling_high_mul(shifted, m.multiplier),
                                  right);
}

/// x / 2^exponent, rounded to nearest with ties towards +infinity. exponent is 0 to 31.
[[nodiscard]] constexpr std::int32_t rounding_divide_by_pot_upwards(std::int32_t x, int exponent) {
    const std::int64_t half = (std::int64_t{1} << exponent) >> 1;
    return static_cast<std::int32_t>((x + half) >> exponent);
}

/// x * m as TFLite's matrix products compute it.
[[nodiscard]] constexpr std::int32_t multiply_in_matrix_product(std::int32_t x, Multiplier m) {
    const int left = m.shift > 0 ? m.shift : 0;
    const int right = m.shift > 0 ? 0 : -m.shift;
    const auto shifted =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << static_cast<unsigned>(left));
    return rounding_divide_by_pot_upwards(
        saturating_rounding_doubling_high_mul(shifted, m.multiplier), right);
}

}  // namespace reef::cpu

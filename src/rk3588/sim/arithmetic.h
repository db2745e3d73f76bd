// Integer and floating-point steps that several engines share.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace reef::rk3588::sim {

enum class Rounding : std::uint8_t { half_to_even, half_away };

/// value / 2^shift, to the nearest. shift is 0 to 62.
[[nodiscard]] inline std::int64_t shifted(std::int64_t value, unsigned shift, Rounding rounding) {
    if (shift == 0) return value;
    const std::int64_t half = std::int64_t{1} << (shift - 1);
    if (rounding == Rounding::half_to_even)
        return (value + half - 1 + (value >> shift & 1)) >> shift;
    return value >= 0 ? (value + half) >> shift : -((-value + half) >> shift);
}

[[nodiscard]] inline std::int32_t saturated32(std::int64_t value) {
    constexpr std::int64_t low = std::numeric_limits<std::int32_t>::min();
    constexpr std::int64_t high = std::numeric_limits<std::int32_t>::max();
    return static_cast<std::int32_t>(std::clamp(value, low, high));
}

[[nodiscard]] inline std::int8_t saturated8(std::int64_t value) {
    return static_cast<std::int8_t>(std::clamp<std::int64_t>(value, -128, 127));
}

/// IEEE 754 binary16, exact.
[[nodiscard]] inline float float_of_half(std::uint16_t half) {
    const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
    const std::uint32_t exponent = half >> 10 & 0x1fU;
    const std::uint32_t mantissa = half & 0x3ffU;
    if (exponent == 0) {
        const float value = std::ldexp(static_cast<float>(mantissa), -24);
        return sign != 0 ? -value : value;
    }
    const std::uint32_t widened = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | widened << 23 | mantissa << 13);
}

/// To the nearest, ties to even; too large values become infinite, a NaN stays one.
[[nodiscard]] inline std::uint16_t half_of_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
    const std::uint32_t size = bits & 0x7fffffffU;
    if (size > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
    if (size >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (size < 0x38800000U) {
        // Below the least normal number: steps of 2^-24.
        const float steps = std::ldexp(std::bit_cast<float>(size), 24);
        return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::nearbyint(steps)));
    }
    const std::uint32_t rounded = size - 0x38000000U + 0xfffU + (size >> 13 & 1U);
    return static_cast<std::uint16_t>(sign | rounded >> 13);
}

}  // namespace reef::rk3588::sim

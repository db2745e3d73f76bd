// The arithmetic of QUANTIZE from float32 and of DEQUANTIZE.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "cpu/prepare/quantized.h"

namespace reef::cpu {

/// round(value / scale) + zero point, ties away from zero. What no int32 holds and NaN, whose
/// conversion TFLite leaves to the machine, become the lowest int32 as on x86-64. The zero point is
/// added modulo 2^32.
inline std::int32_t steps_from_float(float value, AffineParameters out) {
    // TFLite's quotient is of float64: float32's may round to the middle between two steps.
    const double steps = std::round(static_cast<double>(value) / static_cast<double>(out.scale));
    constexpr auto lowest = std::numeric_limits<std::int32_t>::min();
    const std::int32_t whole =
        steps >= -0x1p31 && steps < 0x1p31 ? static_cast<std::int32_t>(steps) : lowest;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(whole) +
                                     static_cast<std::uint32_t>(out.zero_point));
}

/// The same, clamped to the type.
template <typename T>
struct FromFloat {
    AffineParameters out;
    T operator()(float value) const {
        return static_cast<T>(std::clamp<std::int32_t>(steps_from_float(value, out),
                                                       std::numeric_limits<T>::min(),
                                                       std::numeric_limits<T>::max()));
    }
};

/// FromFloat over a run of elements, vectorised.
void quantize_fast(const float* in, std::uint8_t* out, std::size_t count, AffineParameters to);
void quantize_fast(const float* in, std::int8_t* out, std::size_t count, AffineParameters to);

template <typename T>
struct ToFloat {
    AffineParameters in;
    float operator()(T value) const {
        return static_cast<float>(static_cast<double>(in.scale) * (value - in.zero_point));
    }
};

/// ToFloat over a run of elements, vectorised.
void dequantize_fast(const std::uint8_t* in, float* out, std::size_t count, AffineParameters from);
void dequantize_fast(const std::int8_t* in, float* out, std::size_t count, AffineParameters from);
void dequantize_fast(const std::int16_t* in, float* out, std::size_t count, AffineParameters from);

}  // namespace reef::cpu

// From an integer sum to an 8-bit value in float32: for arithmetics other than TFLite's, whose way
// is in fixed_point.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "cpu/prepare/quantized.h"

namespace reef::cpu {

/// Nearest integer, ties to even. Precondition: |value| below 2^31.
[[nodiscard]] inline std::int32_t round_half_even(float value) {
    return static_cast<std::int32_t>(std::nearbyint(value));
}

/// clamp(float32(sum) * scale), rounded half to even, + zero point, saturated.
struct FloatRequantisation {
    float min = 0;  ///< of the clamp, before the zero point is added
    float max = 0;
    std::int32_t zero_point = 0;
    ClampRange range;  ///< of the element type

    [[nodiscard]] std::int32_t operator()(std::int32_t sum, float scale) const {
        const float scaled = static_cast<float>(sum) * scale;
        const float clamped = std::min(std::max(scaled, min), max);
        return std::clamp(round_half_even(clamped) + zero_point, range.min, range.max);
    }
};

}  // namespace reef::cpu

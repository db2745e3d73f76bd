// From a sum to a stored value: the chip's arithmetic, in the chip's order.
#pragma once

#include <cmath>
#include <cstdint>

#include "edgetpu/sim/program/program.h"

namespace reef::edgetpu::sim {

/// The polynomial of x's segment, by Horner's rule in float32. (the order of operations is a guess)
/// As the instruction says: of x itself; of x scaled by a power of 4 into [1, 4), and the result by
/// the matching power of 2; or of the magnitude of x, and the result with its sign.
[[nodiscard]] float apply_table(const Table& table, float x, const TensorOp& op);

/// float32(sum) * scale, clamped. (exact: one multiplication, rounded to nearest even)
[[nodiscard]] inline float scaled(std::int64_t sum, float scale, const TensorOp& op) {
    const float y = static_cast<float>(sum) * scale;
    return std::fmin(std::fmax(y, op.clamp_min), op.clamp_max);
}

/// Rounds half to even, adds the output zero point, saturates to what is stored: uint8, or 16 bits
/// that hold -32768 to 65535.
[[nodiscard]] inline std::uint16_t stored(float y, const TensorOp& op) {
    const float least = op.out_16bit ? -32768.0F : 0.0F;
    const float most = op.out_16bit ? 65535.0F : 255.0F;
    const float zero = static_cast<float>(op.out_zero);
    if (std::isnan(y)) y = 0;
    // Bounds first: the rounded value then fits an integer exactly.
    y = std::fmin(std::fmax(y, least - zero - 1), most - zero + 1);
    const auto z = static_cast<std::int32_t>(std::nearbyint(y)) + op.out_zero;
    const auto low = static_cast<std::int32_t>(least);
    const auto high = static_cast<std::int32_t>(most);
    return static_cast<std::uint16_t>(z < low ? low : z > high ? high : z);
}

}  // namespace reef::edgetpu::sim

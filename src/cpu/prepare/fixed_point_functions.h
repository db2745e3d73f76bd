// Logistic and tanh of 16-bit fixed-point numbers, and inverse square roots, as gemmlowp defines
// them: exp() on negative values from a Taylor series around -1/8 and a barrel shifter, then
// Newton-Raphson division.
//
// A number with m integer bits is raw / 2^(15 - m). Every step rounds as the definition's does, so
// the low bits agree with it.
#pragma once

#include <cstdint>

#include "cpu/prepare/fixed_point.h"

namespace reef::cpu {

/// 1 / (1 + exp(-x)) with 0 integer bits, of x with `integer_bits` (0 to 6).
[[nodiscard]] std::int16_t fixed_point_logistic(std::int16_t x, int integer_bits);

/// tanh(x) with 0 integer bits, of x with `integer_bits` (0 to 6).
[[nodiscard]] std::int16_t fixed_point_tanh(std::int16_t x, int integer_bits);

/// 1 / sqrt(x) by Newton's method with 28 fractional bits; 1 for x of 1 and below. The shift is -26
/// to 0.
[[nodiscard]] Multiplier inverse_square_root(std::int32_t x);

}  // namespace reef::cpu

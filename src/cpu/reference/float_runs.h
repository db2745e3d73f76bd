// Functions of runs of float32, vectorised (cpu/fast/float_runs.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/prepare/broadcast.h"
#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

enum class FloatBinary : std::uint8_t { sum, difference, product, quotient };

/// Rounded once and clamped; a step is 0 (the first element repeats) or 1. What is no number stays
/// none. `out` does not overlap the inputs.
void float_binary_fast(FloatBinary what, const float* a, std::size_t a_step, const float* b,
                       std::size_t b_step, float* out, std::size_t count, Limits<float> clamp);

/// 1 / (1 + exp(-x)), within 3 ulp.
void float_logistic_fast(const float* in, float* out, std::size_t count);

void float_sqrt_fast(const float* in, float* out, std::size_t count);

/// SOFTMAX of one row. Precondition: length > 0.
void float_softmax_fast(const float* in, float* out, std::size_t length, float beta);

/// The kernel of such a run.
[[nodiscard]] PreparedKernel fast_float_binary(const char* name, Broadcast broadcast,
                                               FloatBinary what, Limits<float> clamp);

}  // namespace reef::cpu

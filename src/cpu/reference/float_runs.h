// Functions of runs of float32, vectorised (cpu/fast/float_runs.cpp, cpu/fast/float_functions.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/prepare/broadcast.h"
#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

/// Where one of two is no number, the largest and the smallest is the second.
enum class FloatBinary : std::uint8_t {
    sum,
    difference,
    product,
    quotient,
    largest,
    smallest,
    squared_difference,
};

/// Rounded once (squared_difference: twice) and clamped; a step is 0 (the first element repeats) or
/// 1. What is no number stays none. `out` does not overlap the inputs.
void float_binary_fast(FloatBinary what, const float* a, std::size_t a_step, const float* b,
                       std::size_t b_step, float* out, std::size_t count, Limits<float> clamp);

/// Up to the inverse root they are the plain kernels', bit for bit; the others are bounded by what
/// cpu/registry.cpp says of their operators.
enum class FloatFunction : std::uint8_t {
    magnitude,
    opposite,
    square,
    floor,
    ceil,
    nearest_even,
    root,
    inverse_root,
    exponential,
    logarithm,
    logistic,
    tanh,
    elu,
    gelu,
    gelu_by_tanh,
};
void float_function_fast(FloatFunction what, const float* in, float* out, std::size_t count);

/// Negative elements times the slope.
void float_leaky_relu_fast(const float* in, float* out, std::size_t count, float slope);

/// What is no number stays none.
void float_clamp_fast(const float* in, float* out, std::size_t count, Limits<float> limits);
/// What is not above the lower limit, no numbers among it, becomes that.
void float_limit_fast(const float* in, float* out, std::size_t count, Limits<float> limits);

/// SOFTMAX and LOG_SOFTMAX of one row; the latter knows no beta. Precondition: length > 0; `out`
/// does not overlap the input.
void float_softmax_fast(const float* in, float* out, std::size_t length, float beta);
void float_log_softmax_fast(const float* in, float* out, std::size_t length, float beta);

/// The kernel of such a run.
[[nodiscard]] PreparedKernel fast_float_binary(const char* name, Broadcast broadcast,
                                               FloatBinary what, Limits<float> clamp);
/// Without limits.
[[nodiscard]] PreparedKernel fast_float_binary(const char* name, Broadcast broadcast,
                                               FloatBinary what);
/// Of an operator with one input and one output of float32.
[[nodiscard]] PreparedKernel fast_float_function(const char* name, const OperatorView& op,
                                                 FloatFunction what);

}  // namespace reef::cpu

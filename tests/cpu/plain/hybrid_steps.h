// What hybrid operators (float32 activations, int8 weights) make of a row of activations.
#pragma once

#include <span>
#include <vector>

#include "cpu/plain/operator_case.h"

namespace reef::plain {

/// Values as whole steps around 0.
struct Steps {
    double scale = 1;
    std::vector<double> values = {};
    /// So near the middle between two steps that the given error decides which it is.
    std::vector<bool> unsure = {};
};

/// 127 steps to the largest magnitude or, asymmetric, 255 from the least to the greatest, 0 among
/// them. `values` are float32s; `error` is how far they may lie from those that a kernel has.
[[nodiscard]] Steps steps_of(std::span<const double> values, bool asymmetric, double error = 0);

/// Rows of `length` values, each by itself.
[[nodiscard]] std::vector<Steps> steps_of_rows(const Values& values, std::size_t length,
                                               bool asymmetric);

/// int8, of one scale, or of one for each index of the axis `channels`.
[[nodiscard]] Values hybrid_weights(Choices& choices, Shape shape, std::int32_t channels = -1);
/// float32; sometimes the first of `rows` is all 0.
[[nodiscard]] Values hybrid_input(Choices& choices, Shape shape, std::int32_t rows);

}  // namespace reef::plain

// Activations of hybrid operators (float32 activations, int8 weights), as files quantised by
// "dynamic range" have them: every run quantises the input by what it holds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "cpu/prepare/kernel.h"
#include "reef/base/result.h"

namespace reef::cpu {

/// Of an image's values, and 0.
struct ValueRange {
    float min = 0;
    float max = 0;
    bool finite = true;

    void add(const ValueRange& other) {
        min = std::min(min, other.min);
        max = std::max(max, other.max);
        finite = finite && other.finite;
    }
};
[[nodiscard]] ValueRange range_of(std::span<const float> values);

/// How an image's values become int8: to the nearest of zero + value * per_step, ties away from 0,
/// from `lowest` to 127.
struct StepRule {
    float scale = 1;
    float per_step = 0;
    float zero = 0;  ///< a whole number
    float lowest = -127;

    [[nodiscard]] float step(float value) const {
        return std::clamp(std::round(zero + value * per_step), lowest, 127.0F);
    }
};

/// TFLite's: -127 to 127 around 0, or (asymmetric) 255 steps from the least to the greatest of the
/// values and 0. All steps are 0, of scale 1, where all values are. Errors: bad_input for values
/// that are not finite, or so small that steps of them are not.
[[nodiscard]] Result<StepRule> step_rule(const ValueRange& range, bool asymmetric);

/// Whether each of the rows, one behind the other, has steps: what advances a state looks at all of
/// them first. Errors: of step_rule().
[[nodiscard]] Status expect_steps(std::span<const float> rows, std::size_t row, bool asymmetric);

/// Writes the values' steps less their zero; returns their scale. Errors: of step_rule().
[[nodiscard]] Result<float> write_steps(std::span<const float> values, bool asymmetric,
                                        std::int16_t* steps);

/// The one scale of an input's int8 weights; `what` is their name in errors: unsupported for other
/// types, several scales, a zero point and what is computed in a run.
[[nodiscard]] Result<float> hybrid_weight_scale(const OperatorView& op, std::size_t position,
                                                const char* what);

}  // namespace reef::cpu

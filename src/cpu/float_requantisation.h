// The Edge TPU's way from an integer sum to an 8-bit value, in float32. TFLite's way is in
// fixed_point.h.
//
// Source: comparison of compiled models with their plain sources. The scales and clamps here are
// bit-equal to those in all the instructions that could be compared; the rounding is the one rule
// that agrees with itself over whole networks, and was never compared with a chip.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "cpu/quantized.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::cpu {

/// Nearest integer, ties to even. Precondition: |value| below 2^31.
[[nodiscard]] inline std::int32_t round_half_even(float value) {
    return static_cast<std::int32_t>(std::nearbyint(value));
}

/// clamp(float32(sum) * scale), rounded half to even, + zero point, saturated. The chip works on
/// uint8; for int8 tensors, which it holds with the sign bit flipped, this gives the same numbers
/// less 128.
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

/// The clamp is (q - zero point) * scale * (1 / scale) for the ends of the type and of RELU and
/// RELU6, which need not come out as whole numbers. Errors: unsupported for other activations,
/// bad_input for a scale whose reciprocal is not finite.
[[nodiscard]] Result<FloatRequantisation> float_requantisation(model::Activation activation,
                                                               const model::Tensor& output);

/// f32(factor * f32(1 / output)), where `factor` is in the units of the sum. Error: bad_input when
/// that is not a positive finite number.
[[nodiscard]] Result<float> float_scale(float factor, AffineParameters output);

/// The refusal of what no compiled model that was looked at contains.
[[nodiscard]] std::unexpected<Error> unknown_on_edgetpu(std::string_view what);

}  // namespace reef::cpu

// The Edge TPU's way from an integer sum to an 8-bit value, in float32.
//
// Source: comparison of compiled models with their plain sources. The scales and clamps here are
// bit-equal to those in all the instructions that could be compared; the rounding is the one rule
// that agrees with itself over whole networks, and was never compared with a chip.
//
// The chip works on uint8; for int8 tensors, which it holds with the sign bit flipped,
// cpu::FloatRequantisation gives the same numbers less 128.
#pragma once

#include "cpu/prepare/float_requantisation.h"
#include "cpu/prepare/kernel.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::edgetpu::numerics {

using cpu::AffineParameters;
using cpu::FloatRequantisation;

/// The clamp is (q - zero point) * scale * (1 / scale) for the ends of the type and of RELU and
/// RELU6, which need not come out as whole numbers. Errors: unsupported for other activations,
/// bad_input for a scale whose reciprocal is not finite.
[[nodiscard]] Result<FloatRequantisation> float_requantisation(model::Activation activation,
                                                               const model::Tensor& output);

/// f32(factor * f32(1 / output)), where `factor` is in the units of the sum. Error: bad_input when
/// that is not a positive finite number.
[[nodiscard]] Result<float> float_scale(float factor, AffineParameters output);

}  // namespace reef::edgetpu::numerics

// Activations of hybrid operators (float32 activations, int8 weights), as files quantised by
// "dynamic range" have them: every run quantises the input by what it holds.
#pragma once

#include <cstdint>
#include <span>

#include "reef/base/result.h"

namespace reef::cpu {

/// TFLite's quantisation of float32 values to int8, less their zero point: -127 to 127 around 0, or
/// (asymmetric) 255 steps from the least to the greatest of the values and 0. Returns the scale; 1
/// where all values are 0. Errors: bad_input for values that are not finite, or so small that
/// steps of them are not.
[[nodiscard]] Result<float> quantise_values(std::span<const float> values, bool asymmetric,
                                            std::int16_t* steps);

}  // namespace reef::cpu

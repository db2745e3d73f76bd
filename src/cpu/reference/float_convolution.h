// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED of float32.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// Elements from the filter of one output channel to the next, and from one tap to the next.
struct FloatFilterSteps {
    std::int64_t channel = 0;
    std::int64_t tap = 0;
};

/// Precondition: `c.floats`. Every sum runs from the first tap's first channel to the last; TFLite
/// sums by blocks.
[[nodiscard]] std::unique_ptr<Kernel> float_convolution(std::string name, Convolution c,
                                                        FloatFilterSteps steps);

}  // namespace reef::cpu

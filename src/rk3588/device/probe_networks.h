// The small networks of a probe: each is what one question is about.
#pragma once

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::rk3588 {

/// A convolution of 8x8 pixels and 32 channels, but for what a question is about.
struct ProbeLayer {
    std::int32_t height = 8, width = 8, channels = 32, out_channels = 32;
    std::int32_t kernel = 3, stride = 1, dilation = 1;
    bool depthwise = false, by_channel = false;
    model::Activation activation = model::Activation::none;
    float out_scale = 0.07F;
    model::Op elements = model::Op::conv_2d;  ///< in place of a convolution
    std::int32_t window = 2;                  ///< of pools, and their stride
};

[[nodiscard]] Result<model::Model> model_of(const ProbeLayer& layer);

}  // namespace reef::rk3588

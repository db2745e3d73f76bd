// Plain models that the tests make themselves.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "reef/model/graph.h"

namespace reef::test {

/// One convolution of random shape, numbers and weights.
struct RandomConvolution {
    model::Model model;
    bool depthwise = false, is_unsigned = false;
    std::int32_t height = 0, width = 0, channels = 0;
    std::int32_t out_height = 0, out_width = 0, out_channels = 0;
    std::int32_t kernel_h = 0, kernel_w = 0, stride = 1, dilation = 1, top = 0, left = 0;
    std::int32_t groups = 1;  ///< of direct ones: an output channel sees its group's input alone
    [[nodiscard]] std::int32_t seen() const { return depthwise ? 1 : channels / groups; }
    std::int32_t input_zero = 0, weight_zero = 0, output_zero = 0;  ///< as stored
    std::int32_t low = 0, high = 255;                               ///< of results, as stored
    std::vector<std::int32_t> weights, biases;
    std::vector<double> multipliers;  ///< by output channel
};
[[nodiscard]] RandomConvolution random_convolution(unsigned seed, bool by_channel);
/// By channel, whose scales differ by up to 10^`powers`; biases are what their scales make alike.
[[nodiscard]] RandomConvolution random_convolution_of_wide_scales(unsigned seed, double powers);

}  // namespace reef::test

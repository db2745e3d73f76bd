// Sums of products of bytes as float32: the output of hybrid operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/fast/channel_blocks.h"
#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// What the activations of a row of products were quantised by.
struct RowScale {
    float scale = 1;
    std::int32_t zero = 0;  ///< the value that stands for 0
};

/// out[c] = clamp((sum - zero * weight_sums[c]) * row scale * scales[c] + bias[c]), as the plain
/// kernel rounds. The vectors have so many elements that whole blocks can be read.
struct FloatOutput {
    std::vector<std::int32_t> weight_sums;  ///< without any there is no such output
    std::vector<float> scales;
    std::vector<float> bias;
    Limits<float> clamp{};

    [[nodiscard]] bool is_used() const { return !weight_sums.empty(); }
    [[nodiscard]] std::size_t bytes() const {
        return weight_sums.size() * (sizeof(std::int32_t) + 2 * sizeof(float));
    }
};

/// But for the sums of weights, which are 0 yet.
[[nodiscard]] FloatOutput float_output_of(const FloatSums& floats, std::span<const float> scales,
                                          const std::vector<ChannelBlock>& blocks);

/// In place of an output stage: what all blocks' sums start from, which is 0. Ties do not matter,
/// but those that are rare lead to the rarer output.
void place_empty_stage(std::vector<ChannelBlock>& blocks, OutputStage& stage);

}  // namespace reef::cpu

#include "cpu/fast/float_output.h"

#include <algorithm>

#include "cpu/fast/aligned_array.h"

namespace reef::cpu {

FloatOutput float_output_of(const FloatSums& floats, std::span<const float> scales,
                            const std::vector<ChannelBlock>& blocks) {
    std::size_t readable = 0;
    for (const ChannelBlock& block : blocks)
        readable = std::max(readable, block.first + block.width);
    FloatOutput output;
    output.weight_sums.assign(readable, 0);
    output.scales.assign(readable, 0);
    output.bias.assign(readable, 0);
    output.clamp = floats.clamp;
    std::ranges::copy(floats.bias, output.bias.begin());
    if (scales.size() == 1)
        std::fill_n(output.scales.begin(), floats.bias.size(), scales[0]);
    else
        std::ranges::copy(scales, output.scales.begin());
    return output;
}

void place_empty_stage(std::vector<ChannelBlock>& blocks, OutputStage& stage) {
    for (ChannelBlock& block : blocks) {
        block.bias = block.stage = 0;
        stage.size = std::max(stage.size, block.width);
    }
    stage.ties = Ties::away_from_zero;
    stage.rows = aligned_array<std::int32_t>(stage.size);
    std::fill_n(stage.rows.get(), stage.size, 0);
}

}  // namespace reef::cpu

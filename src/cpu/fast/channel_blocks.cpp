#include "cpu/fast/channel_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace reef::cpu {

std::vector<ChannelBlock> cover_channels(std::size_t channels, std::size_t widest) {
    std::vector<ChannelBlock> blocks;
    for (std::size_t first = 0; first < channels;) {
        const std::size_t left = channels - first;
        std::size_t width = widest;
        while (width > 8 && width / 2 >= left) width /= 2;
        blocks.push_back({.first = first, .width = width, .valid = std::min(width, left)});
        first += blocks.back().valid;
    }
    return blocks;
}

namespace {

/// One block's rows, written lane by lane.
class StageWriter {
  public:
    StageWriter(std::int32_t* rows, std::size_t width) : rows_(rows), width_(width) {}

    void set(std::size_t lane, std::int32_t bias, Multiplier m, Ties ties) {
        const std::int32_t right = m.shift > 0 ? 0 : -m.shift;
        const std::int32_t shift = 31 + right;
        const std::uint64_t rounding = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 30) +
                                       (right > 0 ? std::uint64_t{1} << (shift - 1) : 0);
        const bool loses = ties == Ties::away_from_zero && right > 0;
        const bool even = lane % 2 == 0;
        put(StageRow::bias, lane, bias);
        put(StageRow::multiplier, lane, m.multiplier);
        if (!even) put(StageRow::odd_multiplier, lane - 1, m.multiplier);
        put_wide(even ? StageRow::even_rounding : StageRow::odd_rounding, lane, rounding);
        put_wide(even ? StageRow::even_shift : StageRow::odd_shift, lane,
                 static_cast<std::uint64_t>(shift));
        put_wide(even ? StageRow::even_tie : StageRow::odd_tie, lane,
                 loses ? std::uint64_t{1} << 31 : 0);
        put(StageRow::offset, lane,
            static_cast<std::int32_t>(
                static_cast<std::uint32_t>(std::uint64_t{1} << (63 - shift))));
        put(StageRow::left_shift, lane, m.shift > 0 ? m.shift : 0);
    }

    void set(std::size_t lane, std::int32_t bias, float scale) {
        put(StageRow::bias, lane, bias);
        put(StageRow::scale, lane, std::bit_cast<std::int32_t>(scale));
    }

  private:
    void put(StageRow row, std::size_t lane, std::int32_t value) {
        rows_[static_cast<std::size_t>(row) * width_ + lane] = value;
    }
    void put_wide(StageRow row, std::size_t lane, std::uint64_t value) {
        std::memcpy(rows_ + static_cast<std::size_t>(row) * width_ + lane / 2 * 2, &value,
                    sizeof(value));
    }

    std::int32_t* rows_;
    std::size_t width_;
};

}  // namespace

std::size_t place_output_stage(std::vector<ChannelBlock>& blocks) {
    std::size_t size = 0;
    for (ChannelBlock& block : blocks) {
        block.stage = size;
        size += stage_rows * block.width;
    }
    return size;
}

void pack_output_stage(const Convolution& c, const std::vector<std::int32_t>& bias,
                       const std::vector<ChannelBlock>& blocks, OutputStage& stage) {
    stage.rows = hwy::AllocateAligned<std::int32_t>(std::max<std::size_t>(stage.size, 1));
    std::fill_n(stage.rows.get(), stage.size, 0);
    for (const ChannelBlock& block : blocks) {
        StageWriter writer(stage.rows.get() + block.stage, block.width);
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t offset = channel_of_lane(lane, block.width);
            if (offset >= block.valid) continue;
            const std::size_t channel = block.first + offset;
            if (c.float_stage) {
                writer.set(lane, bias[channel], c.float_stage->scales[channel]);
                continue;
            }
            const Multiplier m = c.multipliers[channel];
            writer.set(lane, bias[channel], m, c.ties);
            stage.left_shifts = stage.left_shifts || m.shift > 0;
        }
    }
    ClampRange clamp = c.clamp;
    if (c.float_stage) {
        stage.in_float = true;
        stage.float_min = c.float_stage->requantise.min;
        stage.float_max = c.float_stage->requantise.max;
        clamp = c.float_stage->requantise.range;
    }
    stage.zero = static_cast<std::int16_t>(c.output_zero);
    stage.min = static_cast<std::int16_t>(clamp.min);
    stage.max = static_cast<std::int16_t>(clamp.max);
}

}  // namespace reef::cpu

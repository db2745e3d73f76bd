#include "cpu/fast/channel_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include "cpu/fast/aligned_array.h"

namespace reef::cpu {

std::vector<ChannelBlock> cover_channels(std::size_t channels, std::size_t widest) {
    std::vector<ChannelBlock> blocks;
    for (std::size_t first = 0; first < channels;) {
        const std::size_t left = channels - first;
        std::size_t width = widest;
        while (width > 8 && width / 2 >= left) width /= 2;
        blocks.push_back({.first = first,
                          .width = width,
                          .vectors = width == widest ? 2U : 1U,
                          .valid = std::min(width, left)});
        first += blocks.back().valid;
    }
    return blocks;
}

namespace {

/// Whether all channels have the same rows.
bool has_one_stage(const Convolution& c) {
    const auto all_equal = [](const auto& values) {
        return std::ranges::adjacent_find(values, std::ranges::not_equal_to{}) == values.end();
    };
    return c.float_stage ? all_equal(c.float_stage->scales) : all_equal(c.multipliers);
}

/// One block's rows, written lane by lane.
class StageWriter {
  public:
    StageWriter(std::int32_t* rows, const ChannelBlock& block)
        : bias_(rows + block.bias),
          rows_(rows + block.stage),
          lanes_(block.width / block.vectors) {}

    void set(std::size_t lane, std::int32_t bias, Multiplier m, Ties ties) {
        const std::int32_t right = m.shift > 0 ? 0 : -m.shift;
        const float offset = right > 0 ? std::ldexp(0.5F, -right) : 0.0F;
        const bool loses = ties == Ties::away_from_zero && right > 0;
        bias_[lane] = bias;
        put(StageRow::scale, lane, std::ldexp(static_cast<float>(m.multiplier), -31 - right));
        put(StageRow::offset, lane, offset);
        put(StageRow::negative_offset, lane, loses ? -offset : offset);
        put(StageRow::multiplier, lane, m.multiplier);
        put(StageRow::right_shift, lane, right);
        put(StageRow::left_shift, lane, m.shift > 0 ? m.shift : 0);
    }

    void set(std::size_t lane, std::int32_t bias, float scale) {
        bias_[lane] = bias;
        put(StageRow::scale, lane, scale);
    }

  private:
    void put(StageRow row, std::size_t lane, std::int32_t value) {
        rows_[(lane / lanes_ * stage_rows + static_cast<std::size_t>(row)) * lanes_ +
              lane % lanes_] = value;
    }
    void put(StageRow row, std::size_t lane, float value) {
        put(row, lane, std::bit_cast<std::int32_t>(value));
    }

    std::int32_t* bias_;
    std::int32_t* rows_;
    std::size_t lanes_;
};

}  // namespace

std::size_t place_output_stage(const Convolution& c, std::vector<ChannelBlock>& blocks) {
    std::size_t size = 0;
    const auto place = [&size](std::size_t count) {
        // Wherever a block begins, its vectors are aligned.
        constexpr std::size_t widest = 64 / sizeof(std::int32_t);
        return std::exchange(size, size + (count + widest - 1) / widest * widest);
    };
    const bool one_stage = has_one_stage(c);
    for (auto block = blocks.begin(); block != blocks.end(); ++block) {
        block->bias = place(block->width);
        const auto other = std::find_if(blocks.begin(), block, [&](const ChannelBlock& earlier) {
            return earlier.width == block->width && earlier.vectors == block->vectors &&
                   earlier.valid == earlier.width;
        });
        block->stage =
            one_stage && other != block ? other->stage : place(stage_rows * block->width);
    }
    return size;
}

void pack_output_stage(const Convolution& c, const BiasOf& bias,
                       const std::vector<ChannelBlock>& blocks, OutputStage& stage) {
    stage.rows = aligned_array<std::int32_t>(stage.size);
    std::fill_n(stage.rows.get(), stage.size, 0);
    for (const ChannelBlock& block : blocks) {
        StageWriter writer(stage.rows.get(), block);
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t offset = block.channel_of(lane);
            if (offset >= block.valid) continue;
            const std::size_t channel =
                (block.first + offset) % static_cast<std::size_t>(c.out_channels);
            if (c.float_stage) {
                writer.set(lane, bias(block, channel), c.float_stage->scales[channel]);
                continue;
            }
            const Multiplier m = c.multipliers[channel];
            writer.set(lane, bias(block, channel), m, c.ties);
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
    stage.ties = c.ties;
    stage.zero = static_cast<std::int16_t>(c.output_zero);
    stage.min = static_cast<std::int16_t>(clamp.min);
    stage.max = static_cast<std::int16_t>(clamp.max);
}

}  // namespace reef::cpu

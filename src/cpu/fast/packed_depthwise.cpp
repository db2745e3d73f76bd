#include "cpu/fast/packed_depthwise.h"

#include <algorithm>
#include <numeric>

#include "reef/base/file.h"

namespace reef::cpu {
namespace {

/// Whole blocks; what is left of them at the end is covered by one that overlaps the block before,
/// so that no load reaches behind a pixel's channels. With `quads`, those of 16 channels and more
/// are of four vectors.
std::vector<ChannelBlock> overlapping_blocks(std::size_t channels, std::size_t widest, bool quads) {
    const std::size_t packed = std::max(channels, least_channels);
    std::vector<ChannelBlock> blocks;
    for (std::size_t first = 0; first < packed;) {
        std::size_t width = widest;
        while (width > least_channels && width > packed - first) width /= 2;
        const std::size_t begin = std::min(first, packed - width);
        blocks.push_back({.first = begin,
                          .width = width,
                          .vectors = quads && width >= 16 ? 4U : 2U,
                          .valid = std::min(width, channels - begin)});
        first = begin + width;
    }
    return blocks;
}

/// For runs of pixels whose channels do not fill `width` bytes, which are then of some pixels:
/// blocks until one would begin at channel 0 again. A run's last vector begins where the last block
/// does.
void add_flat_blocks(std::size_t channels, std::size_t width, std::vector<ChannelBlock>& blocks) {
    constexpr std::size_t most = 8;
    const std::size_t count = channels / std::gcd(channels, width);
    if (channels < least_channels || channels >= width || count > most) return;
    for (std::size_t i = 0; i < count; ++i)
        blocks.push_back(
            {.first = i * width % channels, .width = width, .vectors = 4, .valid = width});
}

constexpr std::int32_t middle_byte = 128;

/// What is added to the input's values where blocks of four vectors read them: their highest bit is
/// flipped.
std::int32_t raised_by(const Convolution& c, bool signed_quads) {
    if (signed_quads) return c.type == ElementType::uint8 ? -middle_byte : 0;
    return c.type == ElementType::int8 ? middle_byte : 0;
}

struct WeightReader {
    const Convolution& c;

    [[nodiscard]] std::int32_t at(std::size_t tap, std::size_t channel) const {
        const auto channels = static_cast<std::size_t>(c.out_channels);
        const auto raw = std::to_integer<std::uint8_t>(c.weights.view()[tap * channels + channel]);
        return (c.type == ElementType::int8 ? static_cast<std::int8_t>(raw) : std::int32_t{raw}) -
               c.weight_zero;
    }
    [[nodiscard]] std::uint32_t sum(std::size_t taps, std::size_t channel) const {
        std::uint32_t sum = 0;
        for (std::size_t tap = 0; tap < taps; ++tap)
            sum += static_cast<std::uint32_t>(at(tap, channel));
        return sum;
    }
};

/// How many int8 add up to every weight.
std::size_t planes_of(const WeightReader& weights, std::size_t taps, std::size_t channels) {
    std::size_t planes = 1;
    for (std::size_t tap = 0; tap < taps; ++tap)
        for (std::size_t channel = 0; channel < channels; ++channel) {
            const std::int32_t weight = weights.at(tap, channel);
            while (weight < -middle_byte * static_cast<std::int32_t>(planes) ||
                   weight > (middle_byte - 1) * static_cast<std::int32_t>(planes))
                ++planes;
        }
    return planes;
}

/// `to`: where those of the block are packed.
void pack_bytes(const WeightReader& weights, const PackedDepthwise& packed,
                const ChannelBlock& block, std::size_t lane, std::size_t channel, std::byte* to) {
    for (std::size_t tap = 0; tap < packed.taps; ++tap)
        to[tap * block.width + block.channel_of(lane)] =
            static_cast<std::byte>(weights.at(tap, channel) + packed.zero);
}

/// The same in fours.
void pack_fours(const WeightReader& weights, const PackedDepthwise& packed,
                const ChannelBlock& block, std::size_t lane, std::size_t channel, std::byte* to) {
    constexpr std::size_t columns = 3, four = 4;
    for (std::size_t tap = 0; tap < packed.taps; ++tap) {
        const std::size_t group = packed.by_columns ? tap % columns : tap / four;
        const std::size_t byte = packed.by_columns ? tap / columns : tap % four;
        std::int32_t left = weights.at(tap, channel);
        for (std::size_t plane = 0; plane < packed.planes; ++plane) {
            const std::int32_t part = std::clamp(left, -middle_byte, middle_byte - 1);
            to[((plane * packed.groups + group) * block.width + lane) * four + byte] =
                static_cast<std::byte>(part);
            left -= part;
        }
    }
}

void pack_blocks(const Convolution& c, const PackedDepthwise& packed, std::byte* to) {
    const WeightReader weights{c};
    for (const ChannelBlock& block : packed.blocks) {
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t offset = block.channel_of(lane);
            if (offset >= block.valid) continue;
            const std::size_t channel =
                (block.first + offset) % static_cast<std::size_t>(c.out_channels);
            (block.vectors == 4 ? pack_fours : pack_bytes)(weights, packed, block, lane, channel,
                                                           to + block.weights);
        }
    }
}

PackingForm depthwise_form(const Convolution& c, const PackedDepthwise& packed) {
    return {PackingForm::Kind::depthwise,
            {static_cast<std::int64_t>(c.type), c.weight_zero, c.out_channels,
             static_cast<std::int64_t>(packed.groups), std::int64_t{packed.by_columns},
             static_cast<std::int64_t>(packed.blocks.front().width),
             static_cast<std::int64_t>(packed.blocks.front().vectors),
             static_cast<std::int64_t>(packed.blocks.back().width),
             static_cast<std::int64_t>(packed.blocks.size())}};
}

}  // namespace

PackedDepthwise lay_out_depthwise(const Convolution& c, const DepthwiseBlocks& how) {
    PackedDepthwise packed;
    const auto channels = static_cast<std::size_t>(c.out_channels);
    packed.taps = static_cast<std::size_t>(c.h.taps * c.w.taps);
    packed.planes = planes_of(WeightReader{c}, packed.taps, channels);
    const bool may_quads = how.widest_quads != 0 && !c.floats;
    packed.by_columns = may_quads && c.h.taps == 3 && c.w.taps == 3;
    const std::size_t groups = packed.by_columns ? 3 : (packed.taps + 3) / 4;
    // Other sizes take no more of zeros than 3 x 3, and no second plane: pairs take half as much
    // memory then, and hardly longer.
    const bool quads =
        packed.by_columns || (may_quads && 3 * groups <= packed.taps && packed.planes == 1);
    packed.groups = quads ? groups : 0;
    packed.signed_quads = how.signed_quads;
    packed.blocks = overlapping_blocks(channels, quads ? how.widest_quads : how.widest, quads);
    packed.pixel_blocks = packed.blocks.size();
    if (packed.by_columns && c.w.stride == 1 && c.w.dilation == 1)
        add_flat_blocks(channels, how.widest_quads, packed.blocks);
    packed.zero =
        static_cast<std::int16_t>(c.weight_zero - (c.type == ElementType::uint8 ? middle_byte : 0));
    for (ChannelBlock& block : packed.blocks) {
        constexpr std::size_t widest = 64;  // of a vector that is loaded aligned
        const bool is_widened = block.vectors == 2;
        if (!is_widened)
            packed.weights_bytes = (packed.weights_bytes + widest - 1) / widest * widest;
        block.weights = packed.weights_bytes;
        block.widened = packed.widened_bytes;
        packed.weights_bytes += is_widened ? packed.taps * block.width
                                           : packed.planes * packed.groups * 4 * block.width;
        if (is_widened) packed.widened_bytes += (packed.taps + 1) / 2 * 4 * block.width;
    }
    if (c.floats)
        place_empty_stage(packed.blocks, packed.stage);
    else
        packed.stage.size = place_output_stage(c, packed.blocks);
    return packed;
}

void pack_depthwise(const Convolution& c, PackedDepthwise& packed) {
    const WeightReader weights{c};
    const auto bias = [&](const ChannelBlock& block, std::size_t channel) {
        const std::int32_t raised = block.vectors == 4 ? raised_by(c, packed.signed_quads) : 0;
        const auto zero = static_cast<std::uint32_t>(c.input_zero + raised);
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(c.bias[channel]) -
                                         zero * weights.sum(packed.taps, channel));
    };
    if (!c.floats) pack_output_stage(c, bias, packed.blocks, packed.stage);
    packed.weights = share_packed(c.weights, depthwise_form(c, packed), packed.weights_bytes,
                                  [&](std::byte* to) { pack_blocks(c, packed, to); });
    will_not_read(c.weights);
}

}  // namespace reef::cpu

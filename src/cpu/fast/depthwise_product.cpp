#include "cpu/fast/depthwise_product.h"

#include <algorithm>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/depthwise_product.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/channel_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const DepthwiseFunctions* target_depthwise() {
    return nullptr;
}

#else
namespace {

template <std::size_t kWidth>
struct SumPair {
    SumVector<kWidth> lo;
    SumVector<kWidth> hi;
};

/// sums + a * (even weights) + b * (odd weights)
template <std::size_t kWidth, class V16>
HWY_INLINE void add_tap_pair(V16 a, V16 b, const std::int16_t* HWY_RESTRICT weights,
                             SumPair<kWidth>& sums) {
    const Sums<kWidth> d;
    const Values<kWidth> d16;
    sums.lo = add_pair_products(d, hn::InterleaveLower(d16, a, b), hn::Load(d16, weights), sums.lo);
    sums.hi = add_pair_products(d, hn::InterleaveUpper(d16, a, b), hn::Load(d16, weights + kWidth),
                                sums.hi);
}

template <std::size_t kWidth, typename T>
HWY_INLINE hn::Vec<Values<kWidth> > values_at(const std::byte* at) {
    const Values<kWidth> d16;
    const hn::Rebind<T, Values<kWidth> > d8;
    return hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const T*>(at)));
}

/// kTaps taps, or any number when it is 0.
template <std::size_t kWidth, typename T, std::size_t kTaps>
HWY_INLINE void run_block(const PackedDepthwise& packed, const ChannelBlock& block,
                          const DepthwiseRun& run) {
    const Sums<kWidth> d;
    const std::size_t taps = kTaps == 0 ? packed.taps : kTaps;
    const std::int32_t* HWY_RESTRICT stage = packed.stage.rows.get() + block.stage;
    std::uint8_t* HWY_RESTRICT out = run.out + block.first;
    std::size_t offset = block.first;
    for (std::size_t p = 0; p < run.pixels; ++p, offset += run.step, out += run.out_stride) {
        const std::int16_t* HWY_RESTRICT weights = packed.weights.get() + block.weights;
        SumPair<kWidth> sums{hn::Load(d, stage), hn::Load(d, stage + kWidth / 2)};
        std::size_t t = 0;
        for (; t + 2 <= taps; t += 2, weights += 2 * kWidth)
            add_tap_pair<kWidth>(values_at<kWidth, T>(run.taps[t] + offset),
                                 values_at<kWidth, T>(run.taps[t + 1] + offset), weights, sums);
        if (t < taps)
            add_tap_pair<kWidth>(values_at<kWidth, T>(run.taps[t] + offset),
                                 hn::Zero(Values<kWidth>()), weights, sums);
        store_bytes<kWidth>(
            output_bytes<kWidth, Ties::away_from_zero>(sums.lo, sums.hi, stage, packed.stage),
            block.valid, out);
    }
}

template <std::size_t kWidth, typename T>
void run_block_of(const PackedDepthwise& packed, const ChannelBlock& block,
                  const DepthwiseRun& run) {
    if (packed.taps == 9)
        run_block<kWidth, T, 9>(packed, block, run);
    else
        run_block<kWidth, T, 0>(packed, block, run);
}

template <typename T>
void run_blocks(const PackedDepthwise& packed, const DepthwiseRun& run) {
    for (const ChannelBlock& block : packed.blocks) {
#if HWY_MAX_BYTES >= 64
        if (block.width == 32) {
            run_block_of<32, T>(packed, block, run);
            continue;
        }
#endif
#if HWY_MAX_BYTES >= 32
        if (block.width == 16) {
            run_block_of<16, T>(packed, block, run);
            continue;
        }
#endif
        run_block_of<8, T>(packed, block, run);
    }
}

}  // namespace

const DepthwiseFunctions* target_depthwise() {
    static const DepthwiseFunctions functions{.target = hwy::TargetName(HWY_TARGET),
                                              .widest_block = widest_block,
                                              .run_uint8 = run_blocks<std::uint8_t>,
                                              .run_int8 = run_blocks<std::int8_t>};
    return &functions;
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(target_depthwise);

const DepthwiseFunctions* depthwise_functions() {
    return HWY_DYNAMIC_DISPATCH(target_depthwise)();
}

namespace {

/// Whole blocks; what is left of them at the end is covered by a block of 8 that overlaps the one
/// before, so that no load reaches behind a pixel's channels.
std::vector<ChannelBlock> overlapping_blocks(std::size_t channels, std::size_t widest) {
    const std::size_t packed = std::max(channels, least_channels);
    std::vector<ChannelBlock> blocks;
    for (std::size_t first = 0; first < packed;) {
        std::size_t width = widest;
        while (width > least_channels && width > packed - first) width /= 2;
        const std::size_t begin = std::min(first, packed - width);
        blocks.push_back(
            {.first = begin, .width = width, .valid = std::min(width, channels - begin)});
        first = begin + width;
    }
    return blocks;
}

}  // namespace

PackedDepthwise lay_out_depthwise(const Convolution& c, std::size_t widest) {
    PackedDepthwise packed;
    const auto channels = static_cast<std::size_t>(c.out_channels);
    packed.taps = static_cast<std::size_t>(c.h.taps * c.w.taps);
    packed.blocks = overlapping_blocks(channels, widest);
    const std::size_t pairs = (packed.taps + 1) / 2;
    for (ChannelBlock& block : packed.blocks) {
        block.weights = packed.weights_size;
        packed.weights_size += pairs * 2 * block.width;
    }
    packed.stage.size = place_output_stage(packed.blocks);
    return packed;
}

void pack_depthwise(const Convolution& c, PackedDepthwise& packed) {
    const auto channels = static_cast<std::size_t>(c.out_channels);
    packed.weights = hwy::AllocateAligned<std::int16_t>(packed.weights_size);
    std::fill_n(packed.weights.get(), packed.weights_size, std::int16_t{0});
    const auto weight_at = [&](std::size_t tap, std::size_t channel) {
        const auto raw = std::to_integer<std::uint8_t>(c.weights.view()[tap * channels + channel]);
        return (c.type == ElementType::int8 ? static_cast<std::int8_t>(raw) : std::int32_t{raw}) -
               c.weight_zero;
    };
    for (const ChannelBlock& block : packed.blocks) {
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t offset = channel_of_lane(lane, block.width);
            if (offset >= block.valid) continue;
            for (std::size_t tap = 0; tap < packed.taps; ++tap)
                packed.weights[block.weights + tap / 2 * 2 * block.width + 2 * lane + tap % 2] =
                    static_cast<std::int16_t>(weight_at(tap, block.first + offset));
        }
    }
    std::vector<std::int32_t> bias = c.bias;
    for (std::size_t channel = 0; channel < channels; ++channel) {
        std::uint32_t sum = 0;
        for (std::size_t tap = 0; tap < packed.taps; ++tap)
            sum += static_cast<std::uint32_t>(weight_at(tap, channel));
        bias[channel] = static_cast<std::int32_t>(static_cast<std::uint32_t>(bias[channel]) -
                                                  static_cast<std::uint32_t>(c.input_zero) * sum);
    }
    pack_output_stage(c, bias, packed.blocks, packed.stage);
}

}  // namespace reef::cpu
#endif

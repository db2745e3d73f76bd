// Weighted sums over taps, channel by channel: the core of DEPTHWISE_CONV_2D.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpu/convolution.h"
#include "cpu/fast/channel_blocks.h"

namespace reef::cpu {

/// Weights minus their zero point as int16, per block of channels: for each pair of taps, in the
/// order of the input's taps, the pair of weights of every lane. A last tap without a partner is
/// paired with weight 0. Blocks may overlap, all of their channels exist.
struct PackedDepthwise {
    std::size_t taps = 0;
    std::vector<ChannelBlock> blocks;
    hwy::AlignedFreeUniquePtr<std::int16_t[]> weights;
    std::size_t weights_size = 0;
    OutputStage stage;

    [[nodiscard]] std::size_t packed_bytes() const {
        return weights_size * sizeof(std::int16_t) + stage.size * sizeof(std::int32_t);
    }
};

/// The least number of channels that the kernels work on; fewer are padded.
inline constexpr std::size_t least_channels = 8;

/// Packs max(c.out_channels, least_channels) channels; those that do not exist have weight 0.
/// Laid out, they have their sizes but no weights yet; pack_depthwise() fills them.
[[nodiscard]] PackedDepthwise lay_out_depthwise(const Convolution& c, std::size_t widest);
void pack_depthwise(const Convolution& c, PackedDepthwise& packed);

/// Consecutive output pixels of one row that have all their taps inside the input, or one pixel
/// anywhere: tap t of pixel p is at taps[t] + p * step (bytes), and has as many bytes as there are
/// packed channels.
struct DepthwiseRun {
    std::span<const std::byte* const> taps;
    std::size_t step = 0;
    std::size_t pixels = 1;
    std::uint8_t* out = nullptr;
    std::size_t out_stride = 0;
};

struct DepthwiseFunctions {
    const char* target = "";
    std::size_t widest_block = 8;
    void (*run_uint8)(const PackedDepthwise& packed, const DepthwiseRun& run) = nullptr;
    void (*run_int8)(const PackedDepthwise& packed, const DepthwiseRun& run) = nullptr;
};

/// Of the target that is dispatched to now; null for one without vectors.
[[nodiscard]] const DepthwiseFunctions* depthwise_functions();

}  // namespace reef::cpu

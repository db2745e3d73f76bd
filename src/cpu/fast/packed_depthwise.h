// DEPTHWISE_CONV_2D's weights as its kernels read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/fast/channel_blocks.h"
#include "cpu/fast/float_output.h"
#include "cpu/fast/shared_packing.h"
#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// Weights per block of channels. Blocks may overlap, all of their channels exist.
///
/// Blocks of two vectors have int8 (of uint8 weights, less 128): for each tap, in the order of the
/// input's taps, that of every channel. At the beginning of a run they are widened to int16 minus
/// their zero point, which is much less than a run multiplies: for each pair of taps the pair of
/// weights of every lane; a last tap without a partner is paired with weight 0. (On ARM one tap's
/// weights after the other's.)
///
/// Blocks of four vectors, on machines that add the products of four bytes to a lane, have int8
/// minus their zero point, in groups of four of every lane: of 3 x 3 taps each column's three
/// weights and a 0, and where the difference has 9 bits, planes that add up to it, three at most;
/// of others four taps in order, and 0 behind the last, where at most a quarter are such zeros and
/// one plane does.
struct PackedDepthwise {
    std::size_t taps = 0;
    std::vector<ChannelBlock> blocks;
    /// So many blocks are of one pixel. Those behind them are of several pixels that stand side by
    /// side: what is behind the last channel is the next pixel's first.
    std::size_t pixel_blocks = 0;
    PackedBytes weights;  ///< blocks' offsets are in bytes
    std::size_t weights_bytes = 0;
    std::size_t widened_bytes = 0;
    std::int16_t zero = 0;  ///< of the weights in blocks of two vectors
    std::size_t planes = 1;
    std::size_t groups = 0;     ///< of four weights, in a plane
    bool by_columns = false;    ///< of 3 x 3 taps
    bool signed_quads = false;  ///< as DepthwiseBlocks'
    OutputStage stage;
    FloatOutput float_output;  ///< of sums that become float32

    [[nodiscard]] std::size_t packed_bytes() const {
        return weights_bytes + stage.size * sizeof(std::int32_t) + float_output.bytes();
    }
};

/// The least number of channels that the kernels work on; fewer are padded.
inline constexpr std::size_t least_channels = 8;

/// What a target's kernels take.
struct DepthwiseBlocks {
    std::size_t widest = 8;        ///< of two vectors
    std::size_t widest_quads = 0;  ///< of blocks of four vectors; 0: it takes none
    /// Blocks of four vectors multiply the inputs' bytes as int8, else as uint8: those of the other
    /// type have their highest bit flipped.
    bool signed_quads = false;
};

/// Packs max(c.out_channels, least_channels) channels; those that do not exist have weight 0. Those
/// of a hybrid convolution are all int16, and its float output is not yet there.
/// Laid out, they have their sizes but no weights yet; pack_depthwise() fills them.
[[nodiscard]] PackedDepthwise lay_out_depthwise(const Convolution& c, const DepthwiseBlocks& how);
void pack_depthwise(const Convolution& c, PackedDepthwise& packed);

}  // namespace reef::cpu

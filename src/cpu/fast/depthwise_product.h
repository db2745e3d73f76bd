// Weighted sums over taps, channel by channel: the core of DEPTHWISE_CONV_2D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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
/// Blocks of four vectors, which only kernels of 3 x 3 have, on machines that add the products of
/// four bytes to a lane, have int8 minus their zero point: for each column of the kernel its three
/// weights and a 0 of every lane; where the difference has 9 bits, in planes that add up to it,
/// three at most.
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
    bool signed_quads = false;  ///< as DepthwiseFunctions'
    OutputStage stage;
    FloatOutput float_output;  ///< of sums that become float32

    [[nodiscard]] std::size_t packed_bytes() const {
        return weights_bytes + stage.size * sizeof(std::int32_t) + float_output.bytes();
    }
};

/// The least number of channels that the kernels work on; fewer are padded.
inline constexpr std::size_t least_channels = 8;

/// Consecutive output pixels of one row that have all their taps inside the input, or one pixel
/// anywhere: tap t of pixel p is at taps[t] + p * step (bytes), and has as many values as there are
/// packed channels.
struct DepthwiseRun {
    std::span<const std::byte* const> taps;
    const std::byte* widened = nullptr;  ///< weights
    std::size_t step = 0;
    /// Of several pixels: the columns of taps from one to the next, where those of a row of taps
    /// stand side by side; else 0.
    std::size_t columns = 0;
    std::size_t pixels = 1;
    std::uint8_t* out = nullptr;
    std::size_t out_stride = 0;  ///< in bytes
    float scale = 1;             ///< of the input, where outputs are float32
};

struct DepthwiseFunctions {
    const char* target = "";
    std::size_t widest_block = 8;
    std::size_t widest_quads = 0;  ///< of blocks of four vectors; 0: it takes none
    /// Blocks of four vectors multiply the inputs' bytes as int8, else as uint8: those of the other
    /// type have their highest bit flipped.
    bool signed_quads = false;
    /// Writes the weights that runs want widened; `to` is aligned for the widest vectors.
    void (*widen)(const PackedDepthwise& packed, std::byte* to) = nullptr;
    void (*run_uint8)(const PackedDepthwise& packed, const DepthwiseRun& run) = nullptr;
    void (*run_int8)(const PackedDepthwise& packed, const DepthwiseRun& run) = nullptr;
    /// Of a hybrid operator: inputs are int16 in [-255, 255], outputs float32.
    void (*run_steps)(const PackedDepthwise& packed, const DepthwiseRun& run) = nullptr;
};

/// Packs max(c.out_channels, least_channels) channels; those that do not exist have weight 0. Those
/// of a hybrid convolution are all int16, and its float output is not yet there.
/// Laid out, they have their sizes but no weights yet; pack_depthwise() fills them.
[[nodiscard]] PackedDepthwise lay_out_depthwise(const Convolution& c,
                                                const DepthwiseFunctions& functions);
void pack_depthwise(const Convolution& c, PackedDepthwise& packed);

/// Of the target that is dispatched to now; null for one without vectors.
[[nodiscard]] const DepthwiseFunctions* depthwise_functions();

}  // namespace reef::cpu

// Output channels in blocks of vector width, with the order of lanes that the kernels work in.
//
// A block is two or four vectors of int32 sums, one sum per output channel. Interleaving and
// narrowing instructions work on 128-bit parts. Of two vectors, `lo` and `hi`, part p of lo holds
// channels 8p to 8p + 3 and part p of hi channels 8p + 4 to 8p + 7: then narrowing the two to one
// vector of int16 puts the channels into order. Of four, part p of the v-th holds channels 16p + 4v
// and the three behind it, as interleaving bytes and then pairs of them leaves them.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// Channel of lane `lane` of a block's vectors, one behind the other.
[[nodiscard]] constexpr std::size_t channel_of_lane(std::size_t lane, std::size_t width,
                                                    std::size_t vectors) {
    const std::size_t lanes = width / vectors;
    const std::size_t within = lane % lanes;
    return within / 4 * 4 * vectors + lane / lanes * 4 + within % 4;
}

struct ChannelBlock {
    std::size_t first = 0;    ///< output channel of the first lane
    std::size_t width = 8;    ///< lanes of all vectors: 8, 16, 32 or 64
    std::size_t vectors = 2;  ///< or 1, or 4
    std::size_t valid = 8;    ///< channels that exist; the others have weight 0
    std::size_t weights = 0;  ///< offset into the packed weights
    std::size_t widened = 0;  ///< offset into weights that a run widens first
    std::size_t bias = 0;     ///< offset of the lanes' bias in the packed output stage
    std::size_t stage = 0;    ///< of the stage's rows there, which blocks may share

    [[nodiscard]] std::size_t channel_of(std::size_t lane) const {
        return channel_of_lane(lane, width, vectors);
    }
};

/// Widths go down from `widest` (a power of two, 8 or more) to 8, the least that holds what is
/// left. The widest blocks are of two vectors, the others of one.
[[nodiscard]] std::vector<ChannelBlock> cover_channels(std::size_t channels, std::size_t widest);

/// The rows of an output stage, each one value per lane: of a block's first vector, then of its
/// next. Where all channels have the same, there is one set of them for all blocks of a width.
///
/// Both roundings of TFLite's scheme (fixed_point.h) are one here. With s = 31 + right shift, the
/// rounded high product shifted with ties upwards is floor((x * multiplier + rounding) / 2^s) for
/// rounding = 2^30 + 2^(s - 1), or 2^30 without a right shift: floors of quotients nest. Ties away
/// from zero take 2^31 off where x is negative. So the result is the integer nearest to
/// x * scale + offset, with scale = multiplier / 2^s and offset = (rounding - 2^(s - 1)) / 2^s.
///
/// In float32 that sum is off by at most 4 * 2^-24 of itself: each of x, scale, their product and
/// the sum is rounded once. Where it is below 2^9 its integer is thus right unless it lies within
/// `doubtful_distance` of the middle between two; above, the output is at its limit either way.
enum class StageRow : std::size_t {
    scale,            ///< float32
    offset,           ///< float32
    negative_offset,  ///< float32, of negative sums
    multiplier,
    right_shift,
    left_shift,  ///< before the multiplication
};
inline constexpr std::size_t stage_rows = 6;
inline constexpr float doubtful_distance = 0x1p-13F;

/// What turns sums into output bytes: the rows, and the bias of every block's lanes, int32.
struct OutputStage {
    hwy::AlignedFreeUniquePtr<std::int32_t[]> rows;
    std::size_t size = 0;
    bool left_shifts = false;  ///< some left shift is not 0
    Ties ties = Ties::upwards;
    /// FloatRequantisation's, with float_min and float_max; then of the rows there is the scale.
    bool in_float = false;
    float float_min = 0;
    float float_max = 0;
    std::int16_t zero = 0;
    std::int16_t min = 0;
    std::int16_t max = 0;
};

/// Sets the blocks' `bias` and `stage` offsets and returns the size of the stage.
[[nodiscard]] std::size_t place_output_stage(const Convolution& c,
                                             std::vector<ChannelBlock>& blocks);

/// What a channel's sum starts from in a block.
using BiasOf = std::function<std::int32_t(const ChannelBlock& block, std::size_t channel)>;
/// Fills a stage whose size is set.
void pack_output_stage(const Convolution& c, const BiasOf& bias,
                       const std::vector<ChannelBlock>& blocks, OutputStage& stage);

}  // namespace reef::cpu

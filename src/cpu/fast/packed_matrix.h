// A constant matrix as the tiles of a product read it, and the rows that it is multiplied by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpu/fast/channel_blocks.h"
#include "cpu/fast/float_output.h"
#include "cpu/fast/shared_packing.h"
#include "cpu/prepare/convolution.h"

namespace reef::cpu {

enum class GroupOf : std::uint8_t {
    /// int16 activations, of the values that they are; int8 weights (uint8 less 128), which become
    /// int16 where they are multiplied. In every form of bytes a weight zero point other than that
    /// 128 is left to the rows' sums.
    pairs,
    signed_pairs,  ///< int8 activations (uint8 with the sign bit flipped), weights as in pairs
    quads,         ///< uint8 activations (int8 with the sign bit flipped), weights as in pairs
    /// The same values as in quads. Of two weights next to each other whose sum is further from 0
    /// than 128, so that their products with 255 have one beyond 16 bits, a half is in a further
    /// group behind the block's.
    bounded_quads,
    signed_quads,   ///< the same values as in signed pairs
    signed_octets,  ///< the same values, of which a row has a multiple of eight
    floats,
};
[[nodiscard]] constexpr std::size_t values_in(GroupOf group) {
    switch (group) {
        case GroupOf::floats:
            return 1;
        case GroupOf::pairs:
        case GroupOf::signed_pairs:
            return 2;
        case GroupOf::quads:
        case GroupOf::bounded_quads:
        case GroupOf::signed_quads:
            return 4;
        case GroupOf::signed_octets:
            return 8;
    }
    return 0;
}
[[nodiscard]] constexpr std::size_t weight_bytes_in(GroupOf group) {
    return group == GroupOf::floats ? sizeof(float) : values_in(group);
}
[[nodiscard]] constexpr std::size_t row_bytes_in(GroupOf group) {
    return group == GroupOf::pairs ? 2 * sizeof(std::int16_t) : weight_bytes_in(group);
}
[[nodiscard]] constexpr bool is_unsigned(GroupOf group) {
    return group == GroupOf::quads || group == GroupOf::bounded_quads;
}
[[nodiscard]] constexpr bool is_signed(GroupOf group) {
    return group == GroupOf::signed_pairs || group == GroupOf::signed_quads ||
           group == GroupOf::signed_octets;
}

/// Weights per block of output channels: for each group of depths the group of every lane, or whole
/// rows, one channel's behind the other's. Lanes of floats are in the order of channels, and their
/// stage has nothing but the bias.
struct PackedMatrix {
    GroupOf group = GroupOf::pairs;
    std::size_t groups = 0;  ///< of a row
    std::vector<ChannelBlock> blocks;
    PackedBytes weights;  ///< blocks' offsets are in bytes
    std::size_t weights_bytes = 0;
    /// Of bounded quads: which groups of a block have a further one, in the order of these; those
    /// of the first block, then of the next, and where each block's end. Blocks of whole rows have
    /// none.
    std::vector<std::uint32_t> divided_groups;
    std::vector<std::size_t> divided_ends;
    /// Every sum wants so many times the sum of its row's values besides.
    std::int32_t row_factor = 0;
    OutputStage stage;
    Limits<float> float_clamp{};  ///< of floats
    FloatOutput float_output;     ///< of sums of bytes that become float32

    [[nodiscard]] std::span<const std::uint32_t> divided_in(std::size_t block) const {
        if (divided_ends.empty()) return {};
        const std::size_t begin = block == 0 ? 0 : divided_ends[block - 1];
        return std::span(divided_groups).subspan(begin, divided_ends[block] - begin);
    }
    [[nodiscard]] std::size_t row_bytes() const { return groups * row_bytes_in(group); }
    /// Of one channel.
    [[nodiscard]] std::size_t channel_bytes() const { return groups * weight_bytes_in(group); }
    /// Long rows of fewer channels than the narrowest block has lanes, most of which would hold
    /// nothing. Short ones take less time in lanes than sums over lanes do.
    [[nodiscard]] bool has_whole_rows(const ChannelBlock& block) const {
        constexpr std::size_t narrowest = 8, long_row = 512;
        return block.valid < narrowest && groups * values_in(group) >= long_row;
    }
    /// How many products take as long as a row: those of all lanes, and what is measured of
    /// gathering a row and of starting and rounding a sum.
    [[nodiscard]] std::size_t products_per_row() const {
        constexpr std::size_t of_a_row = 640, of_a_sum = 48;
        std::size_t lanes = 0;
        for (const ChannelBlock& block : blocks) lanes += block.width;
        return of_a_row + lanes * (groups * values_in(group) + of_a_sum);
    }
    [[nodiscard]] std::size_t packed_bytes() const {
        return weights_bytes + stage.size * sizeof(std::int32_t) + float_output.bytes();
    }
};

/// Rows are activations without their zero point subtracted; it is in the bias instead. The row of
/// a pixel is its taps in order, each with `depth` values, and values of any kind up to the end of
/// its last group.
struct Rows {
    const std::byte* values = nullptr;
    std::int32_t* sums =
        nullptr;  ///< the row factor times those of each row's values, where it is not 0
    const RowScale* scales = nullptr;  ///< of each row, where there is a float output
};

/// Laid out, a matrix has its sizes but no weights yet; pack_matrix() fills it. Of the float output
/// of a hybrid convolution it fills the sums of weights.
/// No group of bounded quads is divided: that is lay_out_in_bounded_quads().
[[nodiscard]] PackedMatrix lay_out_matrix(const Convolution& c, GroupOf group, std::size_t widest);
/// In bounded quads, where so few groups are divided that these take less time than pairs and,
/// where there are many, at most a tenth more memory. It reads the weights, which must not change
/// before they are packed. Nothing without weights, and for whole rows alone.
[[nodiscard]] std::optional<PackedMatrix> lay_out_in_bounded_quads(const Convolution& c,
                                                                   std::size_t widest);
void pack_matrix(const Convolution& c, PackedMatrix& packed);

/// Weights that were made of an operator's own: who makes the same of equal ones shares the result.
struct WeightsMadeOf {
    SharedBytes all;
    /// Numbers that say how, besides what decides how any weights are packed. What is the same in
    /// two operators must be the same bytes.
    std::vector<std::int64_t> how;
};
/// With weights of `c` that were made so.
void pack_matrix(const Convolution& c, const WeightsMadeOf& from, PackedMatrix& packed);

}  // namespace reef::cpu

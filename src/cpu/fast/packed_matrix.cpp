#include "cpu/fast/packed_matrix.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "cpu/fast/aligned_array.h"
#include "reef/base/file.h"

namespace reef::cpu {
namespace {

constexpr std::int32_t middle = 128;

/// What is taken off weights of that type before they are packed.
std::int32_t packed_zero(const Convolution& c) {
    return c.type == ElementType::uint8 ? middle : 0;
}

/// What activations have more in rows of bytes, where those are of the other sign.
std::int32_t flipped(const Convolution& c, GroupOf group) {
    if (is_unsigned(group)) return c.type == ElementType::int8 ? middle : 0;
    if (is_signed(group)) return c.type == ElementType::uint8 ? -middle : 0;
    return 0;
}

/// A group of `count` bytes of a row, and zeros.
template <typename Group>
Group group_of(const std::byte* from, std::size_t count, Group flip) {
    Group group = 0;
    std::memcpy(&group, from, count);
    const auto all = std::numeric_limits<Group>::max() >> (8 * (sizeof(Group) - count));
    return static_cast<Group>(group ^ (flip & all));
}

/// Two weights next to each other. The sum of their products with bytes of at most 255 has 16 bits
/// where theirs is within 128 of 0: of unlike signs each product has them, and the sum is nearer to
/// 0.
struct WeightPair {
    std::int8_t first, second;

    [[nodiscard]] bool is_bounded() const { return std::abs(first + second) <= middle; }
    [[nodiscard]] WeightPair half() const {
        return {static_cast<std::int8_t>(first / 2), static_cast<std::int8_t>(second / 2)};
    }
    [[nodiscard]] WeightPair less(WeightPair other) const {
        return {static_cast<std::int8_t>(first - other.first),
                static_cast<std::int8_t>(second - other.second)};
    }
};
using PairedGroup = std::array<WeightPair, 2>;

/// Appends the groups of a block in which some pair is not bounded. `row` is of bytes.
void append_unbounded(const Convolution& c, const ChannelBlock& block, std::size_t row,
                      std::vector<std::uint32_t>& groups) {
    const std::uint8_t flip = packed_zero(c) == middle ? 0x80 : 0;
    const std::size_t pairs = row / 2;
    std::vector<std::uint8_t> found(pairs);
    for (std::size_t channel = 0; channel < block.valid; ++channel) {
        const std::byte* weights = c.weights.view().data() + (block.first + channel) * row;
        const auto at = [&](std::size_t i) {
            return static_cast<std::int8_t>(std::to_integer<std::uint8_t>(weights[i]) ^ flip);
        };
        for (std::size_t pair = 0; pair < pairs; ++pair)
            found[pair] |= WeightPair{at(2 * pair), at(2 * pair + 1)}.is_bounded() ? 0 : 1;
    }
    for (std::size_t pair = 0; pair < pairs; pair += 2)
        if (found[pair] != 0 || (pair + 1 < pairs && found[pair + 1] != 0))
            groups.push_back(static_cast<std::uint32_t>(pair / 2));
}

/// Leaves half of what is not bounded in a lane's groups, `step` bytes apart, and puts the other
/// half behind them.
void divide_unbounded(std::span<const std::uint32_t> groups, std::size_t own_groups,
                      std::size_t step, std::byte* lane) {
    std::byte* behind = lane + own_groups * step;
    for (const std::uint32_t group : groups) {
        PairedGroup own;
        std::memcpy(&own, lane + group * step, sizeof own);
        PairedGroup rest{};
        for (std::size_t i = 0; i < own.size(); ++i) {
            if (own[i].is_bounded()) continue;
            const WeightPair half = own[i].half();
            rest[i] = own[i].less(half);
            own[i] = half;
        }
        std::memcpy(lane + group * step, &own, sizeof own);
        std::memcpy(behind, &rest, sizeof rest);
        behind += step;
    }
}

/// Every row's groups where their lane has them; `row` is its bytes.
template <typename Group>
void pack_rows(const Convolution& c, const PackedMatrix& packed, std::size_t row, Group flip,
               std::byte* weights) {
    constexpr std::size_t bytes = sizeof(Group);
    for (std::size_t i = 0; i < packed.blocks.size(); ++i) {
        const ChannelBlock& block = packed.blocks[i];
        const bool whole = packed.has_whole_rows(block);
        const std::size_t step = whole ? bytes : block.width * bytes;
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t channel =
                packed.group == GroupOf::floats ? lane : block.channel_of(lane);
            if (channel >= block.valid) continue;
            const std::byte* from = c.weights.view().data() + (block.first + channel) * row;
            std::byte* to = weights + block.weights;
            to += whole ? channel * packed.channel_bytes() : lane * bytes;
            std::byte* const lane_begin = to;
            for (std::size_t k = 0; k < row; k += bytes, to += step) {
                const Group one = group_of(from + k, std::min(bytes, row - k), flip);
                std::memcpy(to, &one, bytes);
            }
            divide_unbounded(packed.divided_in(i), packed.groups, step, lane_begin);
        }
    }
}

void pack_weights(const Convolution& c, const PackedMatrix& packed, std::size_t row,
                  std::byte* to) {
    if (packed.group == GroupOf::floats)
        return pack_rows<std::uint32_t>(c, packed, row * sizeof(float), 0, to);
    // Less 128, a byte has its highest bit flipped.
    const auto pack = [&](auto flip) {
        if (packed_zero(c) != middle) flip = 0;
        pack_rows(c, packed, row, flip, to);
    };
    switch (weight_bytes_in(packed.group)) {
        case 2:
            pack(std::uint16_t{0x8080});
            break;
        case 4:
            pack(std::uint32_t{0x80808080});
            break;
        default:
            pack(std::uint64_t{0x8080808080808080});
            break;
    }
}

template <typename T>
std::int32_t sum_of(Bytes weights) {
    std::uint32_t sum = 0;
    for (const std::byte weight : weights)
        sum += static_cast<std::uint32_t>(static_cast<T>(std::to_integer<std::uint8_t>(weight)));
    return static_cast<std::int32_t>(sum);
}

/// Of the bias alone, in floats.
void pack_float_stage(const Convolution& c, PackedMatrix& packed) {
    packed.stage.rows = aligned_array<std::int32_t>(packed.stage.size);
    std::fill_n(packed.stage.rows.get(), packed.stage.size, 0);
    for (const ChannelBlock& block : packed.blocks)
        std::memcpy(packed.stage.rows.get() + block.bias, &c.floats->bias[block.first],
                    block.valid * sizeof(float));
}

/// Sums of (x + flip) * w, and the row factor times sums of x + flip, are to become sums of
/// (x - input zero) * (w - weight zero): what they lack is in the bias.
void pack_stage(const Convolution& c, PackedMatrix& packed) {
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    if (packed.group == GroupOf::floats) return pack_float_stage(c, packed);
    if (c.floats) {
        for (std::size_t channel = 0; channel < c.floats->bias.size(); ++channel)
            packed.float_output.weight_sums[channel] =
                sum_of<std::int8_t>(c.weights.view().subspan(channel * row, row));
        return;
    }
    const auto zero = static_cast<std::uint32_t>(c.input_zero + flipped(c, packed.group));
    const auto bias_of_channel = [&](const ChannelBlock&, std::size_t channel) {
        const Bytes weights = c.weights.view().subspan(channel * row, row);
        const std::int32_t sum = c.type == ElementType::int8 ? sum_of<std::int8_t>(weights)
                                                             : sum_of<std::uint8_t>(weights);
        const auto less_zero =
            static_cast<std::uint32_t>(sum) -
            static_cast<std::uint32_t>(row) * static_cast<std::uint32_t>(c.weight_zero);
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(c.bias[channel]) -
                                         zero * less_zero);
    };
    pack_output_stage(c, bias_of_channel, packed.blocks, packed.stage);
}

}  // namespace

PackedMatrix lay_out_matrix(const Convolution& c, GroupOf group, std::size_t widest) {
    PackedMatrix packed;
    packed.group = group;
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    const auto channels = static_cast<std::size_t>(c.out_channels);
    packed.groups = (row + values_in(group) - 1) / values_in(group);
    packed.blocks = cover_channels(channels, widest);
    for (ChannelBlock& block : packed.blocks) {
        block.weights = packed.weights_bytes;
        packed.weights_bytes +=
            packed.channel_bytes() * (packed.has_whole_rows(block) ? block.valid : block.width);
    }
    if (group != GroupOf::floats && c.floats) {
        place_empty_stage(packed.blocks, packed.stage);
        return packed;
    }
    if (group != GroupOf::floats) {
        packed.row_factor = packed_zero(c) - c.weight_zero;
        packed.stage.size = place_output_stage(c, packed.blocks);
        return packed;
    }
    packed.float_clamp = c.floats->clamp;
    for (ChannelBlock& block : packed.blocks) {
        block.bias = packed.stage.size;
        packed.stage.size += block.width;
    }
    return packed;
}

std::optional<PackedMatrix> lay_out_in_bounded_quads(const Convolution& c, std::size_t widest) {
    // Three instructions for what takes pairs four: with a third of the groups divided it would be
    // the same. Up to few_bytes more are allowed at any size, as long as that saves time.
    constexpr std::size_t of_time = 4, of_memory = 10, few_bytes = 4096;
    if (c.weights.empty() || c.out_channels == 0) return std::nullopt;
    const std::size_t in_pairs = lay_out_matrix(c, GroupOf::pairs, widest).weights_bytes;
    const std::size_t most =
        in_pairs + std::max(in_pairs / of_memory, std::min(in_pairs / of_time, few_bytes));
    PackedMatrix matrix = lay_out_matrix(c, GroupOf::bounded_quads, widest);
    // Of whole rows alone, which are not divided, pairs take fewer instructions.
    if (matrix.has_whole_rows(matrix.blocks.front())) return std::nullopt;
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    will_read(c.weights.view());
    std::size_t more = 0;
    for (ChannelBlock& block : matrix.blocks) {
        block.weights += more;
        const std::size_t before = matrix.divided_groups.size();
        if (!matrix.has_whole_rows(block)) append_unbounded(c, block, row, matrix.divided_groups);
        matrix.divided_ends.push_back(matrix.divided_groups.size());
        more += (matrix.divided_groups.size() - before) * block.width *
                weight_bytes_in(GroupOf::bounded_quads);
        if (matrix.weights_bytes + more > most) break;
    }
    will_not_read(c.weights);
    matrix.weights_bytes += more;
    if (matrix.weights_bytes > most) return std::nullopt;
    return matrix;
}

void pack_matrix(const Convolution& c, PackedMatrix& packed) {
    pack_matrix(c, {c.weights, {}}, packed);
}

void pack_matrix(const Convolution& c, const WeightsMadeOf& from, PackedMatrix& packed) {
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    const std::int32_t taken_off = c.floats ? 0 : packed_zero(c);
    PackingForm form{PackingForm::Kind::matrix,
                     {static_cast<std::int64_t>(packed.group), static_cast<std::int64_t>(c.type),
                      static_cast<std::int64_t>(packed.blocks.front().width),
                      static_cast<std::int64_t>(packed.blocks.front().vectors), c.out_channels,
                      static_cast<std::int64_t>(row), taken_off,
                      static_cast<std::int64_t>(packed.weights_bytes)}};
    form.numbers.insert(form.numbers.end(), from.how.begin(), from.how.end());
    packed.weights = share_packed(from.all, form, packed.weights_bytes,
                                  [&](std::byte* to) { pack_weights(c, packed, row, to); });
    pack_stage(c, packed);
    will_not_read(from.all);
}

}  // namespace reef::cpu

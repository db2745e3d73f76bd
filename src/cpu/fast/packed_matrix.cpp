#include "cpu/fast/packed_matrix.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace reef::cpu {
namespace {

constexpr std::int32_t middle = 128;

/// What is taken off weights of that type before they are packed.
std::int32_t packed_zero(const Convolution& c, GroupOf group) {
    if (group == GroupOf::pairs) return c.weight_zero;
    return c.type == ElementType::uint8 ? middle : 0;
}

/// What activations have more in rows of bytes, where those are of the other sign.
std::int32_t flipped(const Convolution& c, GroupOf group) {
    if (group == GroupOf::quads) return c.type == ElementType::int8 ? middle : 0;
    if (is_signed(group)) return c.type == ElementType::uint8 ? -middle : 0;
    return 0;
}

/// A group of int8, from `count` bytes of a row.
template <typename Group>
Group bytes_of(const std::byte* from, std::size_t count, Group flip) {
    Group group = 0;
    std::memcpy(&group, from, count);
    const Group all = std::numeric_limits<Group>::max() >> (8 * (sizeof(Group) - count));
    return group ^ (flip & all);
}

/// A group of two int16, from `count` weights of a row.
template <typename T>
std::uint32_t pair_of(const std::byte* from, std::size_t count, std::int32_t zero) {
    const auto value = [&](std::size_t i) {
        const auto weight = static_cast<T>(std::to_integer<std::uint8_t>(from[i]));
        return static_cast<std::uint32_t>(static_cast<std::uint16_t>(weight - zero));
    };
    return count == 1 ? value(0) : value(0) | value(1) << 16;
}

/// Every row's groups where their lane has them; group(from, count) packs `count` values.
template <typename Group>
void pack_rows(const Convolution& c, const PackedMatrix& packed, std::size_t row,
               std::size_t value_bytes, std::byte* weights, const Group& group) {
    using Packed = std::invoke_result_t<Group, const std::byte*, std::size_t>;
    constexpr std::size_t bytes = sizeof(Packed);
    const std::size_t values = values_in(packed.group);
    for (const ChannelBlock& block : packed.blocks) {
        const bool whole = packed.has_whole_rows(block);
        const std::size_t step = whole ? bytes : block.width * bytes;
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t channel =
                packed.group == GroupOf::floats ? lane : block.channel_of(lane);
            if (channel >= block.valid) continue;
            const std::byte* from =
                c.weights.view().data() + (block.first + channel) * row * value_bytes;
            std::byte* to = weights + block.weights;
            to += whole ? channel * packed.row_bytes() : lane * bytes;
            for (std::size_t k = 0; k < row; k += values, to += step) {
                const Packed one = group(from + k * value_bytes, std::min(values, row - k));
                std::memcpy(to, &one, bytes);
            }
        }
    }
}

void pack_weights(const Convolution& c, const PackedMatrix& packed, std::size_t row,
                  std::byte* to) {
    if (packed.group == GroupOf::floats) {
        pack_rows(c, packed, row, sizeof(float), to, [](const std::byte* from, std::size_t) {
            std::uint32_t one = 0;
            std::memcpy(&one, from, sizeof(one));
            return one;
        });
    } else if (packed.group != GroupOf::pairs) {
        // Less 128, a byte has its highest bit flipped.
        const std::uint64_t flip = packed_zero(c, packed.group) == middle ? 0x8080808080808080U : 0;
        if (packed.group == GroupOf::signed_octets)
            pack_rows(c, packed, row, 1, to, [flip](const std::byte* from, std::size_t n) {
                return bytes_of<std::uint64_t>(from, n, flip);
            });
        else
            pack_rows(c, packed, row, 1, to, [flip](const std::byte* from, std::size_t n) {
                return bytes_of(from, n, static_cast<std::uint32_t>(flip));
            });
    } else if (c.type == ElementType::int8) {
        pack_rows(c, packed, row, 1, to, [&c](const std::byte* from, std::size_t n) {
            return pair_of<std::int8_t>(from, n, c.weight_zero);
        });
    } else {
        pack_rows(c, packed, row, 1, to, [&c](const std::byte* from, std::size_t n) {
            return pair_of<std::uint8_t>(from, n, c.weight_zero);
        });
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
    packed.stage.rows = hwy::AllocateAligned<std::int32_t>(packed.stage.size);
    std::fill_n(packed.stage.rows.get(), packed.stage.size, 0);
    for (const ChannelBlock& block : packed.blocks)
        std::memcpy(packed.stage.rows.get() + block.bias, &c.floats->bias[block.first],
                    block.valid * sizeof(float));
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
            packed.row_bytes() * (packed.has_whole_rows(block) ? block.valid : block.width);
    }
    if (group != GroupOf::floats && c.floats) {
        place_empty_stage(packed.blocks, packed.stage);
        return packed;
    }
    if (group != GroupOf::floats) {
        packed.row_factor = packed_zero(c, group) - c.weight_zero;
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

void pack_matrix(const Convolution& c, PackedMatrix& packed) {
    pack_matrix(c, {c.weights, {}}, packed);
}

/// Sums of (x + flip) * w, and the row factor times sums of x + flip, are to become sums of
/// (x - input zero) * (w - weight zero): what they lack is in the bias.
void pack_matrix(const Convolution& c, const PartOfWeights& from, PackedMatrix& packed) {
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    const std::int32_t taken_off = c.floats ? 0 : packed_zero(c, packed.group);
    PackingForm form{PackingForm::Kind::matrix,
                     {static_cast<std::int64_t>(packed.group), static_cast<std::int64_t>(c.type),
                      static_cast<std::int64_t>(packed.blocks.front().width),
                      static_cast<std::int64_t>(packed.blocks.front().vectors), c.out_channels,
                      static_cast<std::int64_t>(row), taken_off}};
    form.numbers.insert(form.numbers.end(), from.part.begin(), from.part.end());
    packed.weights = share_packed(from.all, form, packed.weights_bytes,
                                  [&](std::byte* to) { pack_weights(c, packed, row, to); });
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

}  // namespace reef::cpu

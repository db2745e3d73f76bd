#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "edgetpu/params/transpose_weights.h"
#include "reef/edgetpu/params.h"

namespace reef::edgetpu {
namespace {

constexpr std::byte sign_bit{0x80};

Status check_count(std::string_view what, std::size_t given, std::uint64_t needed) {
    if (given == needed) return {};
    return fail(Cause::bad_argument, fmt::format("{} {}, the layer has {}", given, what, needed));
}

Status check_vector(std::string_view what, bool present, std::size_t given, std::uint32_t needed) {
    return check_count(what, given, present ? needed : 0);
}

Status check_sizes(const LayerLayout& layout, std::size_t weights, std::size_t biases,
                   std::size_t multipliers, std::size_t blob) {
    const std::uint32_t channels = layout.shape.out_channels;
    REEF_CHECK(check_count("weights", weights, layout.shape.weight_count()));
    REEF_CHECK(check_vector("biases", layout.vectors.biases, biases, channels));
    REEF_CHECK(check_vector("multipliers", layout.vectors.multipliers, multipliers, channels));
    return check_count("blob bytes", blob, layout.size_bytes);
}

/// Plain weights are addressed by output channel, tap and input channel.
struct Strides {
    std::size_t out, tap, in;
};

Strides plain_strides(const LayerShape& shape) {
    switch (shape.kind) {
        case LayerKind::depthwise:
        case LayerKind::widening:
        case LayerKind::multiplied:
            return {1, shape.out_channels, 0};
        case LayerKind::convolution:
        case LayerKind::fully_connected:
            break;
    }
    return {shape.taps() * shape.in_channels, shape.in_channels, 1};
}

/// Calls with (plain index, blob offset) of each weight of one group.
template <class Each>
void for_each_weight(const LayerLayout& layout, std::uint32_t group, Each&& each) {
    const Strides plain = plain_strides(layout.shape);
    const std::uint32_t first = group * layout.lanes;
    const std::uint32_t last = std::min(first + layout.lanes, layout.shape.out_channels);
    const std::uint32_t ins = layout.shape.is_diagonal() ? 1 : layout.shape.in_channels;
    for (std::uint32_t out = first; out < last; ++out) {
        for (std::uint64_t tap = 0; tap < layout.shape.taps(); ++tap) {
            for (std::uint32_t in = 0; in < ins; ++in) {
                each(out * plain.out + tap * plain.tap + in * plain.in,
                     layout.weight_offset(out, tap, in));
            }
        }
    }
}

/// Rows of whole words can be moved by words: input channels need no padding to fours.
bool by_words(const LayerLayout& layout) {
    const LayerKind kind = layout.shape.kind;
    return (kind == LayerKind::convolution || kind == LayerKind::fully_connected) &&
           layout.shape.in_channels % 4 == 0;
}

/// A group's real channels, and those with the padding to a multiple of four.
struct GroupLanes {
    std::uint32_t first, used, rounded;
};

GroupLanes lanes_of(const LayerLayout& layout, std::uint32_t group) {
    const std::uint32_t first = group * layout.lanes;
    const std::uint32_t used = std::min(layout.lanes, layout.shape.out_channels - first);
    return {first, used, (used + 3) / 4 * 4};
}

template <typename T>
void put_vector(std::byte* out, std::uint32_t lanes, const GroupLanes& group,
                std::span<const T> values, T rounding, T rest) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const T value = lane < group.used      ? values[group.first + lane]
                        : lane < group.rounded ? rounding
                                               : rest;
        std::memcpy(out + lane * sizeof(T), &value, sizeof(T));
    }
}

void put_vectors(const LayerLayout& layout, const GroupLanes& group,
                 std::span<const std::int32_t> biases, std::span<const float> multipliers,
                 std::int32_t zero_point, std::byte* out) {
    if (layout.vectors.multipliers) {
        put_vector(out + layout.multipliers, layout.lanes, group, multipliers, multipliers[0],
                   layout.groups > 1 ? 1.0F : 0.0F);
    }
    if (layout.vectors.biases) put_vector(out + layout.biases, layout.lanes, group, biases, 0, 0);
    if (layout.vectors.zero_points) {
        for (std::uint32_t lane = 0; lane < layout.lanes; ++lane) {
            const std::int32_t value = lane < group.rounded ? zero_point : 0;
            std::memcpy(out + layout.zero_points + std::size_t{lane} * 4, &value, 4);
        }
    }
}

/// Everything that is not a weight: the zero point in the lanes that a multiple of four has, zero
/// in the others.
void fill_weights(const LayerLayout& layout, const GroupLanes& group, std::byte zero_point,
                  std::byte* out) {
    const std::size_t row = std::size_t{layout.lanes} * 4;
    const std::size_t set = layout.shape.is_diagonal() ? row : std::size_t{group.rounded} * 4;
    for (std::size_t at = layout.weights; at < layout.group_bytes; at += row) {
        std::fill_n(out + at, set, zero_point);
        std::fill_n(out + at + set, row - set, std::byte{0});
    }
}

bool needs_fill(const LayerLayout& layout, const GroupLanes& group) {
    return !by_words(layout) || group.used != layout.lanes;
}

template <class PutWeights>
void encode_groups(const LayerLayout& layout, std::span<const std::int32_t> biases,
                   std::span<const float> multipliers, std::uint8_t zero_point, MutableBytes blob,
                   PutWeights&& put_weights) {
    for (std::uint32_t index = 0; index < layout.groups; ++index) {
        const GroupLanes group = lanes_of(layout, index);
        std::byte* out = blob.data() + index * layout.group_bytes;
        put_vectors(layout, group, biases, multipliers, zero_point, out);
        if (needs_fill(layout, group)) fill_weights(layout, group, std::byte{zero_point}, out);
        put_weights(index, group, reinterpret_cast<std::uint8_t*>(out + layout.weights));
    }
}

std::size_t row_elements(const LayerLayout& layout) {
    return layout.shape.taps() * layout.shape.in_channels;
}

}  // namespace

Status encode_layer(const LayerLayout& layout, const LayerValues& values, MutableBytes blob) {
    REEF_CHECK(check_sizes(layout, values.weights.size(), values.biases.size(),
                           values.multipliers.size(), blob.size()));
    const bool is_signed = values.type == WeightType::int8;
    const std::int32_t zero_point = values.weight_zero_point + (is_signed ? 128 : 0);
    if (zero_point < 0 || zero_point > 255) {
        return fail(Cause::bad_argument,
                    fmt::format("weight zero point {} out of range", values.weight_zero_point));
    }
    const auto* weights = reinterpret_cast<const std::uint8_t*>(values.weights.data());
    const std::byte flip = is_signed ? sign_bit : std::byte{0};
    encode_groups(layout, values.biases, values.multipliers, static_cast<std::uint8_t>(zero_point),
                  blob, [&](std::uint32_t index, const GroupLanes& group, std::uint8_t* out) {
                      if (by_words(layout)) {
                          const std::size_t row = row_elements(layout);
                          transpose_words(weights + group.first * row, row, group.used, row / 4,
                                          layout.lanes, is_signed ? 0x80808080U : 0, out);
                          return;
                      }
                      for_each_weight(layout, index, [&](std::size_t plain, std::size_t at) {
                          blob[at] = values.weights[plain] ^ flip;
                      });
                  });
    return {};
}

namespace {

/// Whether all exponents are those of numbers: without a branch for each, at the speed of memory.
bool all_finite(std::span<const float> values) {
    // One more than the exponent of infinities and NaN carries into the highest bit.
    constexpr std::uint32_t exponent = 0x7f800000, one_more = 0x00800000;
    std::uint32_t seen = 0;
    for (const float value : values)
        seen |= (std::bit_cast<std::uint32_t>(value) & exponent) + one_more;
    return seen >> 31 == 0;
}

Status check_finite(std::span<const float> weights) {
    if (all_finite(weights)) return {};
    const auto bad =
        std::ranges::find_if_not(weights, [](float value) { return std::isfinite(value); });
    return fail(Cause::bad_argument,
                fmt::format("weight {} at index {} is no number", *bad, bad - weights.begin()));
}

}  // namespace

std::size_t limited_weights(const LayerLayout& layout, const RealLayerValues& values) {
    const std::size_t step = values.scales.size() == 1 ? 0 : 1;
    const std::size_t stride = plain_strides(layout.shape).out;
    std::size_t limited = 0;
    for (std::size_t i = 0; i < values.weights.size(); ++i)
        limited += is_limited(values.weights[i],
                              values.scales[i / stride % layout.shape.out_channels * step]);
    return limited;
}

Status encode_layer(const LayerLayout& layout, const RealLayerValues& values, MutableBytes blob) {
    REEF_CHECK(check_sizes(layout, values.weights.size(), values.biases.size(),
                           values.multipliers.size(), blob.size()));
    if (values.scales.size() != 1) {
        REEF_CHECK(check_count("scales", values.scales.size(), layout.shape.out_channels));
    }
    const auto bad = std::ranges::find_if_not(
        values.scales, [](float scale) { return std::isfinite(scale) && scale > 0; });
    if (bad != values.scales.end()) {
        return fail(Cause::bad_argument,
                    fmt::format("scale {} of channel {} is not a positive number", *bad,
                                bad - values.scales.begin()));
    }
    REEF_CHECK(check_finite(values.weights));
    const std::size_t step = values.scales.size() == 1 ? 0 : 1;
    const Strides plain_stride = plain_strides(layout.shape);
    encode_groups(
        layout, values.biases, values.multipliers, 128, blob,
        [&](std::uint32_t index, const GroupLanes& group, std::uint8_t* out) {
            if (by_words(layout)) {
                const std::size_t row = row_elements(layout);
                quantize_and_transpose(values.weights.data() + group.first * row, row, group.used,
                                       row / 4, layout.lanes,
                                       values.scales.data() + group.first * step, step, out);
                return;
            }
            for_each_weight(layout, index, [&](std::size_t plain, std::size_t at) {
                const std::size_t channel = plain / plain_stride.out % layout.shape.out_channels;
                const std::int8_t q =
                    quantized_weight(values.weights[plain], values.scales[channel * step]);
                blob[at] = std::byte{static_cast<std::uint8_t>(q)} ^ sign_bit;
            });
        });
    return {};
}

Status decode_layer(const LayerLayout& layout, Bytes blob, const LayerStorage& storage) {
    REEF_CHECK(check_sizes(layout, storage.weights.size(), storage.biases.size(),
                           storage.multipliers.size(), blob.size()));
    REEF_CHECK(check_vector("zero points", layout.vectors.zero_points, storage.zero_points.size(),
                            layout.shape.out_channels));
    const bool is_signed = storage.type == WeightType::int8;
    for (std::uint32_t index = 0; index < layout.groups; ++index) {
        const GroupLanes group = lanes_of(layout, index);
        const std::byte* in = blob.data() + index * layout.group_bytes;
        const auto take = [&](bool present, std::size_t offset, auto values) {
            if (present)
                std::memcpy(&values[group.first], in + offset, group.used * std::size_t{4});
        };
        take(layout.vectors.multipliers, layout.multipliers, storage.multipliers);
        take(layout.vectors.biases, layout.biases, storage.biases);
        take(layout.vectors.zero_points, layout.zero_points, storage.zero_points);
        const std::byte flip = is_signed ? sign_bit : std::byte{0};
        for_each_weight(layout, index, [&](std::size_t plain, std::size_t at) {
            storage.weights[plain] = blob[at] ^ flip;
        });
    }
    if (is_signed) {
        for (std::int32_t& zero_point : storage.zero_points) {
            zero_point = static_cast<std::int32_t>(static_cast<std::uint32_t>(zero_point) - 128U);
        }
    }
    return {};
}

}  // namespace reef::edgetpu

// Requantisation values and the constants of operators without weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "reef/edgetpu/params.h"

namespace reef::edgetpu {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::uint32_t values_per_line = 4;

Status check_size(std::size_t given, std::size_t needed) {
    if (given == needed) return {};
    return fail(Cause::bad_argument, fmt::format("{} blob bytes, not {}", given, needed));
}

template <typename T>
void put(MutableBytes blob, std::size_t offset, T value) {
    std::memcpy(blob.data() + offset, &value, sizeof value);
}

}  // namespace

float layer_multiplier(float in_scale, float weight_scale, float out_scale) {
    return in_scale * weight_scale * (1.0F / out_scale);
}

ClampLimits clamp_limits(float out_scale, std::int32_t zero_point, std::int32_t quantized_min,
                         std::int32_t quantized_max, ActivationLimits activation) {
    float min = out_scale * static_cast<float>(quantized_min - zero_point);
    float max = out_scale * static_cast<float>(quantized_max - zero_point);
    if (activation != ActivationLimits::none) min = std::max(min, 0.0F);
    if (activation == ActivationLimits::relu6) max = std::min(max, 6.0F);
    const float per_step = 1.0F / out_scale;
    return {.min = min * per_step, .max = max * per_step};
}

SumFactors sum_factors(float first_scale, float second_scale) {
    constexpr std::uint32_t largest = 32767;
    const long double ratio =
        static_cast<long double>(static_cast<double>(first_scale) / second_scale);
    // Down the tree of all fractions between 0 / 1 and 1 / 0, which passes the best ones.
    std::uint32_t low_p = 0, low_q = 1, high_p = 1, high_q = 0;
    SumFactors best;
    long double smallest = std::numeric_limits<long double>::infinity();
    while (low_p + high_p <= largest && low_q + high_q <= largest) {
        const std::uint32_t p = low_p + high_p, q = low_q + high_q;
        const long double distance = std::abs(static_cast<long double>(p) / q - ratio);
        if (distance < smallest) {
            smallest = distance;
            best = {static_cast<std::uint16_t>(p), static_cast<std::uint16_t>(q)};
        }
        if (p == ratio * q) break;
        const bool below = p < ratio * q;
        (below ? low_p : high_p) = p;
        (below ? low_q : high_q) = q;
    }
    return best;
}

float sum_multiplier(float first_scale, const SumFactors& factors, float out_scale) {
    return first_scale / static_cast<float>(factors.first) * (1.0F / out_scale);
}

std::size_t softmax_table_size(std::uint32_t channels, bool unit_line) {
    const std::size_t lines = (std::size_t{channels} + values_per_line - 1) / values_per_line;
    return (lines * 3 + (unit_line ? 1 : 0)) * line_bytes;
}

Status encode_softmax_table(std::uint32_t channels, float scale, bool unit_line,
                            MutableBytes blob) {
    REEF_CHECK(check_size(blob.size(), softmax_table_size(channels, unit_line)));
    std::ranges::fill(blob, std::byte{0});
    const std::uint32_t rounded =
        (channels + values_per_line - 1) / values_per_line * values_per_line;
    const std::size_t table = std::size_t{rounded} / values_per_line * line_bytes;
    const float largest = scale * std::numeric_limits<float>::max();
    for (std::uint32_t channel = 0; channel < rounded; ++channel) {
        const bool real = channel < channels;
        const std::size_t at =
            channel / values_per_line * line_bytes + channel % values_per_line * std::size_t{4};
        const std::uint32_t mark = real ? 0 : 0x80000000U;
        put(blob, at, mark);
        put(blob, table + at, mark);
        put(blob, 2 * table + at, real ? scale : largest);
    }
    if (unit_line) put(blob, 3 * table, 1.0F);
    return {};
}

float softmax_table_scale(std::uint32_t channels, Bytes blob) {
    float scale;
    std::memcpy(&scale, blob.data() + softmax_table_size(channels, false) / 3 * 2, sizeof scale);
    return scale;
}

Status encode_selection(const LayerLayout& layout, std::span<const std::uint32_t> sources,
                        MutableBytes blob) {
    const std::size_t ins = layout.shape.in_channels, outs = layout.shape.out_channels;
    const bool inside = std::ranges::all_of(
        sources, [&](std::uint32_t source) { return source < ins || source == no_source; });
    if (sources.size() != outs || layout.shape.taps() != 1 || !inside) {
        return fail(Cause::bad_argument,
                    fmt::format("{} sources for a selection of {} channels out of {}",
                                sources.size(), outs, ins));
    }
    std::vector<std::byte> weights(outs * ins);
    for (std::size_t out = 0; out < outs; ++out)
        if (sources[out] != no_source) weights[out * ins + sources[out]] = std::byte{1};
    const std::vector<std::int32_t> biases(layout.vectors.biases ? outs : 0);
    return encode_layer(
        layout, LayerValues{.type = WeightType::uint8, .weights = weights, .biases = biases}, blob);
}

std::size_t channel_multipliers_size(std::uint32_t channels) {
    return (std::size_t{channels} + values_per_line - 1) / values_per_line * line_bytes;
}

Status encode_channel_multipliers(std::span<const float> multipliers, MutableBytes blob) {
    REEF_CHECK(check_size(
        blob.size(), channel_multipliers_size(static_cast<std::uint32_t>(multipliers.size()))));
    std::ranges::fill(blob, std::byte{0});
    for (std::size_t i = 0; i < multipliers.size(); ++i)
        put(blob, i / values_per_line * line_bytes + i % values_per_line * 4, multipliers[i]);
    return {};
}

std::size_t subtrahend_size(std::uint32_t channels) {
    return (std::size_t{channels} * 4 + line_bytes - 1) / line_bytes * line_bytes;
}

Status encode_subtrahend(WeightType type, Bytes constant, MutableBytes blob) {
    REEF_CHECK(
        check_size(blob.size(), subtrahend_size(static_cast<std::uint32_t>(constant.size()))));
    std::ranges::fill(blob, std::byte{0});
    for (std::size_t i = 0; i < constant.size(); ++i) {
        const auto value = static_cast<std::int32_t>(
            constant[i] ^ (type == WeightType::int8 ? std::byte{0x80} : std::byte{0}));
        put(blob, i * 4, -value);
    }
    return {};
}

}  // namespace reef::edgetpu

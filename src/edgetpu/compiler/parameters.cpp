// Pass "parameters": the order of each layer's loops; and its parameters as rows in that order.
#include <algorithm>
#include <bit>
#include <cstring>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr std::uint32_t stored_unit = spec::parameter_unit_bytes;
/// Rows that one visit of a position reads at most, where they are not the rows of one tap.
constexpr std::uint32_t most_rows_of_taps = 96;
constexpr std::uint32_t most_rows_of_visit = 240;
/// Chunks of channels hold at most so many words of 4.
constexpr std::uint32_t most_words_of_chunk = 15;

std::uint32_t rounded_up(std::uint32_t n, std::uint32_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

std::uint32_t taps_of(const compiler::Convolution& conv) {
    return static_cast<std::uint32_t>(conv.window.kernel_h) *
           static_cast<std::uint32_t>(conv.window.kernel_w);
}

std::uint32_t words_of_input(const compiler::Convolution& conv) {
    return (static_cast<std::uint32_t>(conv.in_channels) + 3) / 4;
}

std::uint32_t largest_chunk(std::uint32_t words) {
    std::uint32_t chunk = std::min(words, most_words_of_chunk);
    while (words % chunk != 0) --chunk;
    return chunk;
}

void schedule_depthwise(LayerSchedule& s, const compiler::Convolution& conv) {
    s.lanes = s.row_lanes = 4;
    s.groups = (static_cast<std::uint32_t>(conv.out_channels) + 3) / 4;
    s.group_rows = taps_of(conv);
}

/// Inner order where it takes fewer wide rows than chunks do.
void schedule_dense(LayerSchedule& s, const compiler::Convolution& conv, std::uint32_t positions) {
    const auto outs = static_cast<std::uint32_t>(conv.out_channels);
    s.row_lanes = outs > lanes ? lanes : rounded_up(outs, 16);
    s.lanes = std::min(lanes, rounded_up(outs, 4));
    s.groups = (outs + lanes - 1) / lanes;
    const std::uint32_t words = words_of_input(conv);
    const std::uint32_t taps = taps_of(conv), all = taps * words;
    const std::uint32_t chunk = taps == 1 ? largest_chunk(words) : 1;
    s.inner =
        (taps == 1 && words <= most_words_of_chunk) || 2 * all <= positions + 2 * taps * chunk;
    if (all > (taps > 1 ? most_rows_of_taps : most_rows_of_visit)) s.inner = false;
    s.group_rows = s.inner ? all : taps * chunk;
    s.chunks = s.inner ? 1 : words / chunk;
}

std::size_t bytes_of_rows(const ParameterLayer& layer) {
    const auto& conv = *layer.source;
    const LayerSchedule& s = layer.schedule;
    const std::size_t of_group = conv.depthwise ? s.group_rows : s.group_rows * s.chunks;
    return s.groups * (s.head_rows + of_group) * s.row_lanes * 4;
}

/// Stored packed: the scalar core takes the rows apart.
void relay(ParameterLayer& layer) {
    layer.relayed = true;
    layer.relay_units = static_cast<std::uint32_t>(layer.bytes / spec::relay_unit_bytes);
    layer.bytes = rounded_up(static_cast<std::uint32_t>(layer.bytes), stored_unit);
    layer.row_bytes = spec::row_bytes;
}

/// Puts the rows of one layer together.
class RowWriter {
  public:
    RowWriter(const ParameterLayer& layer, MutableBytes to)
        : layer_(layer), to_(to), row_lanes_(layer.schedule.row_lanes) {}

    void write_depthwise() {
        const auto channels = static_cast<std::uint32_t>(conv().out_channels);
        for (std::uint32_t g = 0; g < layer_.schedule.groups; ++g) {
            const std::uint32_t count = std::min(4U, channels - g * 4);
            head(g * 4, count);
            for (std::uint32_t tap = 0; tap < taps_of(conv()); ++tap) diagonal(g * 4, count, tap);
        }
    }
    void write_dense() {
        const LayerSchedule& s = layer_.schedule;
        const std::uint32_t words = words_of_input(conv()), taps = taps_of(conv());
        for (std::uint32_t g = 0; g < s.groups; ++g) {
            const std::uint32_t first = g * lanes;
            const std::uint32_t count =
                std::min(lanes, static_cast<std::uint32_t>(conv().out_channels) - first);
            head(first, count);
            if (s.inner || taps == 1) {
                for (std::uint32_t tap = 0; tap < taps; ++tap)
                    for (std::uint32_t w = 0; w < words; ++w) weights(first, count, tap, w);
            } else {
                for (std::uint32_t w = 0; w < words; ++w)
                    for (std::uint32_t tap = 0; tap < taps; ++tap) weights(first, count, tap, w);
            }
        }
    }

  private:
    [[nodiscard]] const compiler::Convolution& conv() const { return *layer_.source; }
    [[nodiscard]] std::byte zero() const { return static_cast<std::byte>(conv().weight_zero); }

    std::byte* next() {
        std::byte* row = to_.data();
        to_ = to_.subspan(std::size_t{row_lanes_} * 4);
        return row;
    }

    /// The rows in front of a group: factors, biases and zero points of its channels. Lanes without
    /// a channel hold what the vendor's programs have there.
    void head(std::uint32_t first, std::uint32_t count) {
        const bool by_channel = conv().per_channel();
        const auto write = [&](auto&& word, std::uint32_t rounding, std::uint32_t rest) {
            std::byte* row = next();
            for (std::uint32_t i = 0; i < row_lanes_; ++i) {
                const std::uint32_t bits = i < count                  ? word(first + i)
                                           : i < rounded_up(count, 4) ? rounding
                                                                      : rest;
                std::memcpy(row + std::size_t{4} * i, &bits, 4);
            }
        };
        if (by_channel)
            write([&](auto c) { return std::bit_cast<std::uint32_t>(layer_.multipliers[c]); },
                  std::bit_cast<std::uint32_t>(layer_.multipliers[0]),
                  std::bit_cast<std::uint32_t>(layer_.schedule.groups > 1 ? 1.0F : 0.0F));
        if (layer_.biased)
            write([&](auto c) { return static_cast<std::uint32_t>(conv().biases[c]); }, 0, 0);
        const auto zero_point = static_cast<std::uint32_t>(conv().weight_zero);
        if (by_channel) write([&](auto) { return zero_point; }, zero_point, 0);
    }

    /// One tap's weights from a word of input channels to `count` outputs.
    void weights(std::uint32_t first, std::uint32_t count, std::uint32_t tap, std::uint32_t word) {
        const auto in = static_cast<std::size_t>(conv().in_channels);
        const std::size_t stride = taps_of(conv()) * in;
        const std::byte* from = conv().weights.view().data() + first * stride + tap * in + word * 4;
        std::byte* row = next();
        if (const std::size_t held = in - word * 4; held < 4) {
            std::fill_n(row, std::size_t{count} * 4, zero());
            for (std::uint32_t i = 0; i < count; ++i)
                std::copy_n(from + i * stride, held, row + i * 4);
        } else {
            for (std::uint32_t i = 0; i < count; ++i)
                std::memcpy(row + i * 4, from + i * stride, 4);
        }
        std::fill_n(row + count * 4, (rounded_up(count, 4) - count) * 4, zero());
    }

    /// One tap's weights of a word of results, each of one channel.
    void diagonal(std::uint32_t first, std::uint32_t count, std::uint32_t tap) {
        std::byte* row = next();
        std::fill_n(row, 16, zero());
        const auto in = static_cast<std::uint32_t>(conv().in_channels);
        const auto outs = static_cast<std::uint32_t>(conv().out_channels);
        for (std::uint32_t i = 0; i < count; ++i)
            row[i * 4 + (first + i) / (outs / in) % 4] =
                conv().weights.view()[std::size_t{tap} * outs + first + i];
    }

    const ParameterLayer& layer_;
    MutableBytes to_;
    std::uint32_t row_lanes_;
};

}  // namespace

void write_rows(const ParameterLayer& layer, MutableBytes to) {
    // The anchor, which is no layer of the network, stays zero.
    if (!layer.source) return;
    RowWriter rows(layer, to);
    if (layer.source->depthwise)
        rows.write_depthwise();
    else
        rows.write_dense();
}

void LayerSchedule::place_scratch(std::int32_t end, std::uint32_t positions) {
    std::int32_t row = end;
    if (!inner) partial_sums = row -= static_cast<std::int32_t>(positions);
    body = row -= static_cast<std::int32_t>(slots() * group_rows);
    head = row - static_cast<std::int32_t>(head_slots() * head_rows);
}

void lay_out_parameters(Plan& plan) {
    std::vector<std::uint32_t> most_positions(plan.layers.size(), 0);
    for (const Step& step : plan.steps) {
        const auto index = layer_index_of(step);
        if (!index) continue;
        // An LSTM computes with its layer once a step.
        const bool once = std::holds_alternative<LstmStep>(step.kind);
        std::uint32_t& most = most_positions[*index];
        most = std::max(most, once ? 1 : plan.tensors[step.out].most_pixels());
        ++plan.layers[*index].uses;
    }
    for (Step& step : plan.steps) {
        const auto index = layer_index_of(step);
        if (!index || plan.layers[*index].bytes != 0) continue;
        ParameterLayer& layer = plan.layers[*index];
        const auto& conv = *layer.source;
        const std::uint32_t positions = most_positions[*index];
        LayerSchedule& s = layer.schedule;
        s.head_rows = (conv.per_channel() ? 2 : 0) + (layer.biased ? 1 : 0);
        if (conv.depthwise) {
            schedule_depthwise(s, conv);
            layer.row_bytes = s.row_lanes * 4;
            layer.bytes = bytes_of_rows(layer);
            if (!layer.spread) relay(layer);
        } else {
            schedule_dense(s, conv, positions);
            if (layer.spread) {
                s.inner = true;
                s.group_rows *= s.chunks;
                s.chunks = 1;
            }
            layer.row_bytes = s.row_lanes * 4;
            layer.bytes = bytes_of_rows(layer);
        }
        layer.positions = positions;
        layer.scratch_end = spec::parameter_rows;
        s.place_scratch(layer.scratch_end, positions);
    }
}

}  // namespace reef::edgetpu::lowering

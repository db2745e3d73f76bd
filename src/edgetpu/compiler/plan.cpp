#include "edgetpu/compiler/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::edgetpu::lowering {
namespace {

std::string spans_text(const Spans& spans) {
    std::string text;
    for (const Span& s : spans)
        text += fmt::format("{}{}:{}", text.empty() ? "" : " ", s.begin, s.end);
    return text;
}

std::string layout_text(const Tensor& t) {
    if (t.layout == Layout::channels && t.spread_tiles == 1)
        return fmt::format(" on tile {} alone", t.first_tile);
    if (t.layout == Layout::channels)
        return fmt::format(" of {} on each of {} tiles", t.all_channels, t.spread_tiles);
    if (t.layout == Layout::host) return fmt::format(" of {} bytes on the host", t.host_bytes);
    return t.layout == Layout::whole ? " whole" : "";
}

/// Of a layer for which pass "spread" had a choice.
std::string cycles_text(const ParameterLayer& layer) {
    if (layer.cycles_together == 0) return {};
    if (layer.spread && layer.source->out_channels <= static_cast<std::int32_t>(lanes))
        return fmt::format("; rows lie still on tile {}: {} cycles, {} sent", layer.first_tile,
                           layer.cycles_spread, layer.cycles_together);
    return fmt::format("; {}: {} cycles together, {} spread over the tiles",
                       layer.spread ? "spread" : "not spread", layer.cycles_together,
                       layer.cycles_spread);
}

struct StepText {
    std::string operator()(const InputStep&) const { return "input"; }
    std::string operator()(const ConvolutionStep& s) const {
        return fmt::format("{} layer {}", s.depthwise ? "depthwise" : "convolution", s.layer);
    }
    std::string operator()(const SumStep& s) const {
        return fmt::format("sum {}:{}", s.factors.first, s.factors.second);
    }
    std::string operator()(const CombinationStep& s) const {
        return fmt::format("combination {} {}", s.first, s.second);
    }
    std::string operator()(const ProductStep&) const { return "product"; }
    std::string operator()(const CopyStep& s) const {
        return fmt::format("copy to channel {}", s.first_channel);
    }
    std::string operator()(const RearrangeStep& s) const {
        return fmt::format("rearrangement from {} by {},{},{}", s.order.start, s.order.row,
                           s.order.column, s.order.channel);
    }
    std::string operator()(const MaxStep&) const { return "maximum"; }
    std::string operator()(const AverageStep&) const { return "average"; }
    std::string operator()(const SoftmaxStep&) const { return "softmax"; }
    std::string operator()(const GlobalAverageStep&) const { return "average of all"; }
    std::string operator()(const EnlargeStep& s) const {
        return s.nearest ? "enlarge, nearest" : "enlarge, bilinear";
    }
    std::string operator()(const LstmStep& s) const {
        return fmt::format("lstm of {} steps, layer {}", s.steps, s.layer);
    }
    std::string operator()(const SpillStep&) const { return "spill"; }
    std::string operator()(const FetchStep&) const { return "fetch"; }
    std::string operator()(const GatherStep& s) const {
        return fmt::format("gather on tiles {:#06x}", s.to);
    }
};

}  // namespace

Span Phase::of(const Span& pixels, std::int32_t stride, std::int32_t first) {
    if (pixels.empty()) return {};
    const auto above = [&](std::int32_t pixel) {
        return (std::max(pixel - first, 0) + stride - 1) / stride;
    };
    return {above(pixels.begin), above(pixels.end)};
}

std::int32_t Tensor::address(unsigned tile, std::int32_t y, std::int32_t x) const {
    const Area w = window(tile);
    return static_cast<std::int32_t>(base) +
           (y - w.rows.begin) * static_cast<std::int32_t>(pitch(tile)) +
           (x - w.columns.begin) * static_cast<std::int32_t>(pixel_bytes());
}

std::uint64_t Tensor::bytes() const {
    std::uint64_t most = 0;
    for (unsigned t = 0; t < all_tiles; ++t) {
        const Area w = window(t);
        most = std::max(most, static_cast<std::uint64_t>(w.rows.size()) *
                                  static_cast<std::uint64_t>(w.columns.size()) * pixel_bytes());
    }
    return most + slack;
}

std::uint32_t Tensor::input_bytes() const {
    std::int32_t rows = 0;
    for (const Span& s : own_rows)
        if (!s.empty()) rows = std::max(rows, s.end);
    constexpr std::uint32_t unit = spec::activation_unit_bytes;
    const auto bytes = static_cast<std::uint32_t>(rows) * static_cast<std::uint32_t>(width) *
                       static_cast<std::uint32_t>(channels);
    return (bytes + unit - 1) / unit * unit;
}

std::uint32_t Tensor::sent_bytes(unsigned tile) const {
    const Area owned = own(tile);
    if (owned.empty()) return 0;
    constexpr std::uint32_t unit = spec::activation_unit_bytes;
    const auto bytes =
        static_cast<std::uint32_t>(owned.rows.size() * owned.columns.size()) * pixel_bytes();
    return (bytes + unit - 1) / unit * unit;
}

std::uint32_t Tensor::most_pixels() const {
    std::int32_t most = 0;
    for (const Span& r : own_rows)
        for (const Span& c : own_columns) most = std::max(most, r.size() * c.size());
    return static_cast<std::uint32_t>(most);
}

std::int32_t Plan::first_free_row() const {
    return static_cast<std::int32_t>(std::max(std::ranges::max(rows_used), beside.end));
}

SoftmaxRoom softmax_room(const Tensor& in) {
    return {(in.words() + 63) / 64, (in.words() + 1) / 2};
}

std::uint32_t words_averaged_at_once(const Tensor& in) {
    constexpr std::uint64_t most_bytes = 1U << 17U;
    const std::uint64_t bytes_of_word =
        std::uint64_t{4} * static_cast<std::uint32_t>(in.height * in.width);
    const auto most =
        static_cast<std::uint32_t>(std::max<std::uint64_t>(most_bytes / bytes_of_word, 1));
    const std::uint32_t shares = (in.words() + most - 1) / most;
    return (in.words() + shares - 1) / shares;
}

std::uint64_t product_row_bytes(const Tensor& out, std::uint32_t words) {
    std::int32_t widest = 1;
    for (const Span& s : out.own_columns) widest = std::max(widest, s.size());
    return std::uint64_t{16} * static_cast<std::uint32_t>(widest) * words;
}

std::int32_t product_rows(const Tensor& out, std::uint32_t words, std::uint64_t bytes) {
    return static_cast<std::int32_t>(
        std::max<std::uint64_t>(bytes / product_row_bytes(out, words), 1));
}

bool needs_whole_image(const Step& step) {
    return std::holds_alternative<GlobalAverageStep>(step.kind) ||
           std::holds_alternative<RearrangeStep>(step.kind) ||
           std::holds_alternative<SoftmaxStep>(step.kind) ||
           std::holds_alternative<LstmStep>(step.kind);
}

bool walks_both(const Step& step) {
    return std::holds_alternative<SumStep>(step.kind) ||
           std::holds_alternative<CombinationStep>(step.kind);
}

bool moves_to_host(const Step& step) {
    return std::holds_alternative<SpillStep>(step.kind) ||
           std::holds_alternative<FetchStep>(step.kind);
}

std::optional<std::size_t> layer_index_of(const Step& step) {
    if (const auto* conv = std::get_if<ConvolutionStep>(&step.kind)) return conv->layer;
    if (const auto* lstm = std::get_if<LstmStep>(&step.kind)) return lstm->layer;
    return std::nullopt;
}

std::string output_name(const Plan& plan, const Port& port) {
    return plan.graph->values[port.value].name + (port.is_state ? "_variable_output" : "");
}

// An input is its first reader's.
std::string place_of(const Plan& plan, const Step& step) {
    std::size_t node = step.node;
    if (std::holds_alternative<InputStep>(step.kind)) {
        const auto reader = std::ranges::find_if(plan.steps, [&](const Step& other) {
            return std::ranges::find(other.in, step.out) != other.in.end();
        });
        if (reader != plan.steps.end()) node = reader->node;
    }
    return model::place_of(plan.graph->subgraph(), node);
}

std::string to_text(const Plan& plan) {
    std::string text;
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
        const Tensor& t = plan.tensors[i];
        text += fmt::format(
            "t{} {}x{}x{}{} at {:#x}, {} bytes; rows {} in {}; columns {} in {}; '{}'\n", i,
            t.height, t.width, t.channels, layout_text(t), t.base, t.bytes(),
            spans_text(t.own_rows), spans_text(t.window_rows), spans_text(t.own_columns),
            spans_text(t.window_columns), t.name);
    }
    for (const ParameterLayer& layer : plan.layers) {
        const LayerSchedule& s = layer.schedule;
        text += fmt::format("layer {}: {} rows of {} bytes; {} groups of {} lanes, {} rows {}{}{}",
                            layer.name, layer.row_count(), layer.row_bytes, s.groups, s.lanes,
                            s.group_rows, s.inner ? "inner" : fmt::format("x {} chunks", s.chunks),
                            layer.relayed ? ", relayed" : "", layer.streamed ? ", streamed" : "");
        text += cycles_text(layer);
        for (const auto& piece : layer.pieces)
            text += fmt::format("; tile {} row {:#x} + {}", piece.tile, piece.row, piece.count);
        text += "\n";
    }
    for (const Step& step : plan.steps) {
        text += fmt::format("{}: {} of", place_of(plan, step), std::visit(StepText{}, step.kind));
        for (const TensorId in : step.in) text += fmt::format(" t{}", in);
        text += fmt::format(" -> t{}", step.out);
        if (step.first_channel != 0) text += fmt::format(" from channel {}", step.first_channel);
        text += "\n";
    }
    return text;
}

}  // namespace reef::edgetpu::lowering

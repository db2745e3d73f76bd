#include "edgetpu/params/own_selections.h"

#include <algorithm>
#include <numeric>

namespace reef::edgetpu {
namespace {

using model::Op;
using model::Operator;
using model::Tensor;

constexpr std::uint32_t channels_of_word = 4;

std::uint32_t in_words(std::uint32_t channels) {
    return (channels + channels_of_word - 1) / channels_of_word * channels_of_word;
}

/// `count` channels from one on.
Selection from_channel(std::uint32_t in_channels, std::uint32_t first, std::uint32_t count) {
    Selection one{.in_channels = in_channels};
    one.sources.resize(count);
    std::iota(one.sources.begin(), one.sources.end(), first);
    return one;
}

bool is_last(std::int32_t axis, const Tensor& tensor) {
    return axis == -1 || axis + 1 == static_cast<std::int32_t>(tensor.shape.size());
}

/// Each part begins at a word: the gaps that leaves are taken out.
std::vector<Selection> of_joined(const PlainGraph& graph, const Operator& op) {
    const auto* options = std::get_if<model::ConcatenationOptions>(&op.options);
    const Tensor* out = graph.tensor(op.outputs, 0);
    if (options == nullptr || out == nullptr || !is_last(options->axis, *out)) return {};
    Selection all;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const Tensor* in = graph.tensor(op.inputs, i);
        if (in == nullptr) return {};
        const std::uint32_t channels = PlainGraph::image_of(*in).channels;
        for (std::uint32_t c = 0; c < channels; ++c) all.sources.push_back(all.in_channels + c);
        all.in_channels += in_words(channels);
    }
    if (all.sources.empty() || all.sources.back() + 1 == all.sources.size()) return {};
    return {std::move(all)};
}

/// Of the channels that an output begins with, those that begin no word.
std::vector<Selection> of_parts(const PlainGraph& graph, const Operator& op) {
    const Op kind = op.code.builtin;
    const Tensor* in = graph.tensor(op.inputs, kind == Op::split ? 1 : 0);
    if (in == nullptr) return {};
    const std::uint32_t channels = PlainGraph::image_of(*in).channels;
    const bool divides = kind == Op::split || kind == Op::split_v;
    std::uint32_t first = 0;
    if (divides) {
        const auto axis = graph.numbers(op, kind == Op::split ? 0 : 2);
        if (axis.size() != 1 || !is_last(axis[0], *in)) return {};
    } else {
        const auto begin = graph.numbers(op, 1);
        if (begin.size() != in->shape.size() || begin.empty()) return {};
        const auto* options = std::get_if<model::StridedSliceOptions>(&op.options);
        const auto last = begin.size() - 1;
        const bool masked = options != nullptr && (options->begin_mask >> last & 1) != 0;
        std::int64_t at = masked ? 0 : begin.back();
        if (at < 0) at += channels;
        if (at < 0 || at >= channels) return {};
        first = static_cast<std::uint32_t>(at);
    }
    std::vector<Selection> all;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
        const Tensor* out = graph.tensor(op.outputs, i);
        if (out == nullptr) return {};
        const std::uint32_t count = PlainGraph::image_of(*out).channels;
        if (first % channels_of_word != 0) all.push_back(from_channel(channels, first, count));
        first += count;
    }
    return all;
}

/// A block of pixels, whose channels fill no words, becomes one; or one becomes a block.
std::vector<Selection> of_blocks(const PlainGraph& graph, const Operator& op) {
    const Tensor *in = graph.tensor(op.inputs, 0), *out = graph.tensor(op.outputs, 0);
    if (in == nullptr || out == nullptr) return {};
    const bool from_channels = op.code.builtin == Op::depth_to_space;
    const std::uint32_t many = PlainGraph::image_of(from_channels ? *in : *out).channels;
    const std::uint32_t few = PlainGraph::image_of(from_channels ? *out : *in).channels;
    if (few == 0 || few % channels_of_word == 0 || many % few != 0) return {};
    std::vector<Selection> all;
    if (!from_channels) {
        all.push_back(from_channel(few, 0, many));
        all.back().taps = many / few;
        return all;
    }
    for (std::uint32_t first = 0; first < many; first += few)
        all.push_back(from_channel(many, first, few));
    return all;
}

}  // namespace

std::vector<Selection> own_selections_of(const PlainGraph& graph, const Operator& op) {
    switch (op.code.builtin) {
        case Op::concatenation:
            return of_joined(graph, op);
        case Op::split:
        case Op::split_v:
        case Op::slice:
        case Op::strided_slice:
            return of_parts(graph, op);
        case Op::space_to_depth:
        case Op::depth_to_space:
            return of_blocks(graph, op);
        default:
            return {};
    }
}

}  // namespace reef::edgetpu

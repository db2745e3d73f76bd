#include "compiler/legalise.h"

#include <algorithm>
#include <memory>

namespace reef::compiler {
namespace {

void read_instead(Graph& graph, ValueId old, ValueId now) {
    for (Node& node : graph.nodes) std::ranges::replace(node.inputs, old, now);
}

bool keeps_bytes(const Graph& graph, const Node& node) {
    if (node.inputs.size() != 1 || node.outputs.size() != 1) return false;
    const Value &in = graph.values[node.inputs[0]], &out = graph.values[node.outputs[0]];
    if (!in.same_numbers(out)) return false;
    if (std::holds_alternative<Reshape>(node.operation))
        return in.same_shape(out) || (in.pixels() == 1 && out.pixels() == 1);
    const auto* rescale = std::get_if<Rescale>(&node.operation);
    return rescale != nullptr && rescale->activation == Activation::none && in.same_shape(out);
}

/// Nobody but the CPU looks at its shape.
bool is_for_the_cpu(const Graph& graph, ValueId value) {
    return std::ranges::all_of(graph.readers(value), [&](std::size_t reader) {
        const auto& operation = graph.nodes[reader].operation;
        if (std::holds_alternative<Unknown>(operation)) return true;
        const auto* folded = std::get_if<Folded>(&operation);
        return folded != nullptr && folded->copies;
    });
}

/// Only what is between them and the host: a RESHAPE's bytes are its input's.
void fold_last_reshapes(Graph& graph) {
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
        Node& node = graph.nodes[i];
        if (!std::holds_alternative<Reshape>(node.operation)) continue;
        if (!is_for_the_cpu(graph, node.outputs[0])) continue;
        node.operation = Folded{.copies = true};
        read_instead(graph, node.outputs[0], node.inputs[0]);
    }
}

void fold_copies(Graph& graph) {
    for (Node& node : graph.nodes) {
        if (!keeps_bytes(graph, node)) continue;
        node.operation = Folded{.copies = true};
        read_instead(graph, node.outputs[0], node.inputs[0]);
    }
}

/// The convolutions that read `value`; none when anything else does.
std::vector<Convolution*> convolutions_of(Graph& graph, ValueId value) {
    std::vector<Convolution*> found;
    if (graph.is_output(value)) return found;
    for (const std::size_t reader : graph.readers(value)) {
        auto* conv = std::get_if<Convolution>(&graph.nodes[reader].operation);
        if (conv == nullptr) return {};
        found.push_back(conv);
    }
    return found;
}

void fold_pads(Graph& graph) {
    for (Node& node : graph.nodes) {
        const auto* pad = std::get_if<Pad>(&node.operation);
        if (pad == nullptr || pad->channels != 0) continue;
        const auto readers = convolutions_of(graph, node.outputs[0]);
        if (readers.empty()) continue;
        for (Convolution* conv : readers) {
            conv->window.top += pad->top;
            conv->window.left += pad->left;
        }
        node.operation = Folded{};
        read_instead(graph, node.outputs[0], node.inputs[0]);
    }
}

/// A fully connected layer of all elements of an image is a convolution as large as the image.
void fold_flattening(Graph& graph, std::int64_t most_taps) {
    for (Node& node : graph.nodes) {
        if (!std::holds_alternative<Reshape>(node.operation)) continue;
        const Value &in = graph.values[node.inputs[0]], &out = graph.values[node.outputs[0]];
        const auto readers = convolutions_of(graph, node.outputs[0]);
        const bool flat = std::ranges::all_of(readers, [](const Convolution* conv) {
            return !conv->depthwise && conv->window == Window{};
        });
        if (readers.empty() || !flat || out.pixels() != 1 || in.pixels() > most_taps) continue;
        for (Convolution* conv : readers) {
            conv->window.kernel_h = in.height;
            conv->window.kernel_w = in.width;
            conv->in_channels = in.channels;
        }
        node.operation = Folded{};
        read_instead(graph, node.outputs[0], node.inputs[0]);
    }
}

/// One that is too large is a product of the image as one row.
void flatten_large(Graph& graph, std::int64_t most_taps) {
    for (Node& node : graph.nodes) {
        auto* conv = std::get_if<Convolution>(&node.operation);
        if (conv == nullptr || conv->depthwise) continue;
        const Value &in = graph.values[node.inputs[0]], &out = graph.values[node.outputs[0]];
        const Window whole{.kernel_h = in.height, .kernel_w = in.width};
        if (in.pixels() <= most_taps || out.pixels() != 1 || conv->window != whole ||
            conv->in_channels != in.channels)
            continue;
        Convolution row = std::move(*conv);
        row.window = {};
        row.in_channels = static_cast<std::int32_t>(in.pixels() * in.channels);
        node.operation = RowProduct{std::move(row)};
    }
}

/// A word of results is made of a word of the input: else the convolution is an ordinary one.
bool is_by_words(const Convolution& conv) {
    const std::int32_t in = conv.in_channels;
    return in > 1 && (conv.out_channels == in || in <= 4 || in % 4 == 0);
}

/// [kernel h][kernel w][out] to [out][kernel h][kernel w][in].
void widen_depthwise(Graph& graph) {
    for (Node& node : graph.nodes) {
        auto* conv = std::get_if<Convolution>(&node.operation);
        if (conv == nullptr || !conv->depthwise || is_by_words(*conv)) continue;
        const auto taps = static_cast<std::size_t>(conv->window.kernel_h) *
                          static_cast<std::size_t>(conv->window.kernel_w);
        const auto outs = static_cast<std::size_t>(conv->out_channels);
        const auto ins = static_cast<std::size_t>(conv->in_channels);
        const Bytes old = conv->weights.view();
        auto turned = std::make_shared<std::vector<std::byte>>(
            old.size() * ins, static_cast<std::byte>(conv->weight_zero));
        for (std::size_t o = 0; o < outs; ++o)
            for (std::size_t t = 0; t < taps; ++t)
                (*turned)[(o * taps + t) * ins + o * ins / outs] = old[t * outs + o];
        conv->weights = SharedBytes(*turned, turned);
        conv->depthwise = false;
    }
}

}  // namespace

void legalise(Graph& graph, const Excluded& excluded, std::int64_t most_taps) {
    for (const auto& [index, why] : excluded) graph.nodes[index].operation = Unknown{why};
    fold_copies(graph);
    fold_pads(graph);
    fold_flattening(graph, most_taps);
    fold_last_reshapes(graph);
    flatten_large(graph, most_taps);
    widen_depthwise(graph);
}

ValueId source_of(const Graph& graph, ValueId value) {
    for (;;) {
        const auto producer = graph.producer(value);
        if (!producer) return value;
        const auto* folded = std::get_if<Folded>(&graph.nodes[*producer].operation);
        if (folded == nullptr || !folded->copies) return value;
        value = graph.nodes[*producer].inputs[0];
    }
}

}  // namespace reef::compiler

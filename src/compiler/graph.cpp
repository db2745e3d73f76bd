#include "compiler/graph.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::compiler {
namespace {

std::string window_text(const Window& w) {
    std::string text = fmt::format("{}x{}", w.kernel_h, w.kernel_w);
    if (w.stride_h != 1 || w.stride_w != 1)
        text += fmt::format(" stride {}x{}", w.stride_h, w.stride_w);
    if (w.dilation_h != 1 || w.dilation_w != 1)
        text += fmt::format(" dilation {}x{}", w.dilation_h, w.dilation_w);
    if (w.top != 0 || w.left != 0) text += fmt::format(" from -{},-{}", w.top, w.left);
    return text;
}

struct TextOf {
    std::string operator()(const Unknown& o) const { return "left: " + o.why; }
    std::string operator()(const Folded& o) const {
        return o.copies ? "folded: a copy" : "folded into its readers";
    }
    std::string operator()(const Convolution& o) const {
        return fmt::format("{} {} from {} channels to {}, {}",
                           o.depthwise ? "depthwise" : "convolution", window_text(o.window),
                           o.in_channels, o.out_channels,
                           o.per_channel() ? "scales by channel" : "one scale");
    }
    std::string operator()(const Sum&) const { return "sum"; }
    std::string operator()(const Difference&) const { return "difference"; }
    std::string operator()(const Product&) const { return "product"; }
    std::string operator()(const Maximum&) const { return "maximum of two"; }
    std::string operator()(const Minimum&) const { return "minimum of two"; }
    std::string operator()(const LeakyRelu& o) const {
        return fmt::format("below zero times {}", o.slope);
    }
    std::string operator()(const HardSwish&) const { return "hard swish"; }
    std::string operator()(const Prelu&) const { return "below zero times a slope by channel"; }
    std::string operator()(const ByElement&) const { return "with an image of constants"; }
    std::string operator()(const RowProduct& o) const {
        return fmt::format("convolution of rows of {}", o.of.in_channels);
    }
    std::string operator()(const Rescale&) const { return "rescale"; }
    std::string operator()(const Logistic&) const { return "logistic"; }
    std::string operator()(const Softmax&) const { return "softmax"; }
    std::string operator()(const Tanh&) const { return "tanh"; }
    std::string operator()(const Concatenation&) const { return "concatenation"; }
    std::string operator()(const MaxPool& o) const { return "maximum " + window_text(o.window); }
    std::string operator()(const AveragePool& o) const {
        return (o.total ? "sum " : "average ") + window_text(o.window);
    }
    std::string operator()(const Resize& o) const {
        return o.nearest ? "resize to the nearest" : "resize bilinear";
    }
    std::string operator()(const Pad& o) const {
        return fmt::format("pad {},{} {},{}", o.top, o.bottom, o.left, o.right);
    }
    std::string operator()(const Slice& o) const {
        std::string text = "slice";
        for (const auto& p : o.parts)
            text += fmt::format(" from {},{},{} by {}x{}", p.y, p.x, p.channel, p.step_y, p.step_x);
        return text;
    }
    std::string operator()(const Reshape&) const { return "reshape"; }
    std::string operator()(const TransposedConvolution& o) const {
        return "transposed " + (*this)(o.of);
    }
    std::string operator()(const Blocks& o) const {
        return fmt::format("blocks of {} {} channels", o.side, o.from_channels ? "from" : "to");
    }
    std::string operator()(const Lstm& o) const {
        return fmt::format("lstm of {} units on {} channels", o.units, o.input[0].in_channels);
    }
    std::string operator()(const Transpose& o) const {
        return fmt::format("transpose {} {} {}", static_cast<int>(o.from[0]),
                           static_cast<int>(o.from[1]), static_cast<int>(o.from[2]));
    }
};

}  // namespace

std::vector<std::size_t> Graph::readers(ValueId value) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (holds(nodes[i].inputs, value)) found.push_back(i);
    return found;
}

std::optional<std::size_t> Graph::producer(ValueId value) const {
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (holds(nodes[i].outputs, value)) return i;
    return std::nullopt;
}

bool Graph::is_output(ValueId value) const {
    return holds(outputs, value);
}

std::string to_text(const Graph& graph) {
    std::string text;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        text += fmt::format("{} {}: {};", i, node.name, std::visit(TextOf{}, node.operation));
        for (const ValueId in : node.inputs) text += fmt::format(" v{}", in);
        text += " ->";
        for (const ValueId out : node.outputs) {
            const Value& v = graph.values[out];
            text += fmt::format(" v{} {}x{}x{}", out, v.height, v.width, v.channels);
        }
        text += "\n";
    }
    return text;
}

}  // namespace reef::compiler

#include "edgetpu/compiler/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "edgetpu/compiler/lstm.h"
#include "edgetpu/compiler/rearrangement.h"

namespace reef::edgetpu::lowering {
namespace {

using compiler::Activation;
using compiler::Graph;
using compiler::Node;
using compiler::Value;

/// Of a transposed convolution.
constexpr std::int64_t most_phases = 64;
/// What the vendor documents.
constexpr std::int32_t most_softmax = 16000;
/// Weights of a selection are the square of it.
constexpr std::int32_t most_selected = 4096;
/// They are computed on one tile, a word at a time.
constexpr std::int32_t most_scaled = 16384;

std::string refuse_activation(Activation activation) {
    const bool known = activation == Activation::none || activation == Activation::relu ||
                       activation == Activation::relu6;
    return known ? "" : "its activation is none of RELU and RELU6";
}

/// Beyond it addresses could overflow before anything is found not to fit.
std::string refuse_reach(const compiler::Window& w) {
    constexpr std::int32_t most_reach = 4096;
    const bool far = w.reach_h() > most_reach || w.reach_w() > most_reach || w.top > most_reach ||
                     w.left > most_reach;
    return far ? fmt::format("its window reaches over more than {} pixels", most_reach) : "";
}

/// How far from the zero point a byte can be.
std::int64_t farthest_from(std::int32_t zero) {
    return std::max(std::abs(zero), std::abs(255 - zero));
}

/// Of one output channel, its weights' distances from their zero point.
std::int64_t largest_distance(const compiler::Convolution& o) {
    const Bytes weights = o.weights.view();
    const auto channels = static_cast<std::size_t>(o.out_channels);
    const std::size_t each = weights.size() / channels;
    std::vector<std::int64_t> sums(channels, 0);
    for (std::size_t i = 0; i < weights.size(); ++i)
        sums[o.depthwise ? i % channels : i / each] +=
            std::abs(std::to_integer<std::int32_t>(weights[i]) - o.weight_zero);
    return std::ranges::max(sums);
}

std::int64_t largest_bias(const compiler::Convolution& o) {
    std::int64_t largest = 0;
    for (const std::int32_t b : o.biases) largest = std::max(largest, std::abs(std::int64_t{b}));
    return largest;
}

/// What the chip makes of a sum beyond 32 bits is not known.
constexpr std::int64_t largest_sum = std::numeric_limits<std::int32_t>::max();
constexpr const char* too_large_sums = "its sums may need more than 32 bits";

std::string refuse_sums(const compiler::Convolution& o, const Value& in) {
    const std::int64_t products =
        std::int64_t{o.window.kernel_h} * o.window.kernel_w * (o.depthwise ? 1 : o.in_channels);
    const std::int64_t most = (largest_sum - largest_bias(o)) / farthest_from(in.zero);
    // Large layers are looked through only where their size alone could be too much.
    const bool fits =
        products * farthest_from(o.weight_zero) <= most || largest_distance(o) <= most;
    return fits ? "" : too_large_sums;
}

std::string refuse_sums(const compiler::Lstm& o, const Value& in, const Value& out) {
    for (std::size_t gate = 0; gate < o.input.size(); ++gate) {
        const auto &of_input = o.input[gate], &of_last = o.recurrent[gate];
        const std::int64_t sum = largest_bias(of_input) + largest_bias(of_last) +
                                 largest_distance(of_input) * farthest_from(in.zero) +
                                 largest_distance(of_last) * farthest_from(out.zero);
        if (sum > largest_sum) return too_large_sums;
    }
    return {};
}

struct RefusalOf {
    const Graph& graph;
    const Node& node;

    [[nodiscard]] const Value& in(std::size_t i = 0) const { return graph.values[node.inputs[i]]; }
    [[nodiscard]] const Value& out() const { return graph.values[node.outputs[0]]; }

    std::string operator()(const compiler::Unknown& o) const { return o.why; }
    std::string operator()(const compiler::Folded&) const { return {}; }

    std::string operator()(const compiler::Convolution& o) const {
        if (auto why = refuse_activation(o.activation); !why.empty()) return why;
        if (std::int64_t{o.window.kernel_h} * o.window.kernel_w > most_taps)
            return fmt::format("its kernel has more than {} taps", most_taps);
        if (auto why = refuse_sums(o, in()); !why.empty()) return why;
        return refuse_reach(o.window);
    }
    std::string operator()(const compiler::TransposedConvolution& o) const {
        if (std::int64_t{o.of.window.kernel_h} * o.of.window.kernel_w > most_taps)
            return fmt::format("its kernel has more than {} taps", most_taps);
        if (std::int64_t{o.of.window.stride_h} * o.of.window.stride_w > most_phases)
            return fmt::format("its strides make more than {} convolutions", most_phases);
        if (auto why = refuse_sums(o.of, in()); !why.empty()) return why;
        return refuse_reach(o.of.window);
    }
    std::string operator()(const compiler::Blocks& o) const {
        if (o.side > 8) return "its blocks have more than 8 x 8 pixels";
        const Value& coarse = o.from_channels ? in() : out();
        if (coarse.channels > most_selected)
            return fmt::format("it selects of more than {} channels", most_selected);
        return {};
    }
    std::string operator()(const compiler::Sum& o) const { return refuse_activation(o.activation); }
    std::string operator()(const compiler::Difference& o) const {
        return refuse_activation(o.activation);
    }
    std::string operator()(const compiler::Product& o) const {
        return refuse_activation(o.activation);
    }
    std::string operator()(const compiler::Maximum&) const { return refuse_scales(); }
    std::string operator()(const compiler::Minimum&) const { return refuse_scales(); }
    [[nodiscard]] std::string refuse_scales() const {
        if (!in(0).same_numbers(in(1)) || !in(0).same_numbers(out()))
            return "its tensors have different scales";
        return {};
    }
    std::string operator()(const compiler::LeakyRelu& o) const {
        if (!in().same_shape(out())) return "its shapes do not agree";
        return std::isfinite(o.slope) ? "" : "its slope is no number";
    }
    std::string operator()(const compiler::HardSwish&) const {
        return in().same_shape(out()) ? "" : "its shapes do not agree";
    }
    std::string operator()(const compiler::Prelu&) const { return {}; }
    std::string operator()(const compiler::ByElement& o) const {
        if (auto why = refuse_activation(o.flat.activation); !why.empty()) return why;
        if (o.flat.in_channels > most_scaled)
            return fmt::format("its constant has more than {} values", most_scaled);
        Value flat = in();
        flat.channels = o.flat.in_channels;
        flat.height = flat.width = 1;
        if (!reaches_every_word(order_of_reshape(flat), in(), flat) ||
            !reaches_every_word(order_of_reshape(out()), flat, out()))
            return "a word of its elements has bytes of more places than one loop nest reaches";
        return {};
    }
    std::string operator()(const compiler::RowProduct& o) const {
        if (auto why = refuse_activation(o.of.activation); !why.empty()) return why;
        if (auto why = refuse_sums(o.of, in()); !why.empty()) return why;
        const Value rows = rows_of(o, out());
        if (!reaches_every_word(order_of_reshape(rows), in(), rows))
            return "a word of its rows has bytes of more places than one loop nest reaches";
        return {};
    }
    std::string operator()(const compiler::Rescale& o) const {
        if (!in().same_shape(out())) return "its shapes do not agree";
        return refuse_activation(o.activation);
    }
    std::string operator()(const compiler::Logistic&) const {
        if (!in().same_shape(out())) return "its shapes do not agree";
        if (out().scale != 1.0F / 256 || out().zero != 0)
            return "its output has another scale than 1/256";
        return {};
    }
    std::string operator()(const compiler::Softmax& o) const {
        if (!std::isfinite(in().scale * o.beta) || !(o.beta > 0)) return "its beta is no factor";
        if (in().pixels() != 1) return "it has several rows";
        if (in().channels > most_softmax)
            return fmt::format("it has more than {} values", most_softmax);
        if (!in().same_shape(out())) return "its shapes do not agree";
        if (out().scale != 1.0F / 256 || out().zero != 0)
            return "its output has another scale than 1/256";
        return {};
    }
    std::string operator()(const compiler::Tanh&) const {
        if (!in().same_shape(out())) return "its shapes do not agree";
        if (out().scale != 1.0F / 128 || out().zero != 128)
            return "its output has other values than -1 to 127/128";
        return {};
    }

    std::string operator()(const compiler::Concatenation& o) const {
        if (o.activation != Activation::none) return "it has an activation";
        return {};
    }
    std::string operator()(const compiler::MaxPool& o) const {
        if (!in().same_numbers(out())) return "its output has another scale than its input";
        if (o.activation != Activation::none) return "it has an activation";
        return refuse_reach(o.window);
    }
    std::string operator()(const compiler::AveragePool& o) const {
        if (o.window.kernel_h != in().height || o.window.kernel_w != in().width)
            if (auto why = refuse_reach(o.window); !why.empty()) return why;
        return refuse_activation(o.activation);
    }
    std::string operator()(const compiler::Resize& o) const {
        if (out().height != 2 * in().height || out().width != 2 * in().width)
            return "it does not enlarge to twice the height and width";
        if (!in().same_numbers(out())) return "it changes the scale";
        if (!o.nearest && in().pixels() == 1) return "no known program enlarges one pixel";
        if (o.align_corners) return "it aligns corners";
        if (!o.nearest && !o.half_pixel_centers) return "its pixels have no centres at halves";
        return {};
    }
    std::string operator()(const compiler::Slice& o) const {
        for (const auto& part : o.parts)
            if (part.channel % 4 != 0 && in().channels > most_selected)
                return fmt::format("a part begins at channel {} of {}, within a word of 4",
                                   part.channel, in().channels);
        return {};
    }
    std::string operator()(const compiler::Pad&) const { return {}; }
    std::string operator()(const compiler::Reshape&) const {
        return refuse_order(order_of_reshape(out()));
    }
    std::string operator()(const compiler::Lstm& o) const {
        if (o.cell_scale != lstm_cell_scale) return "known programs have a cell in steps of 2^-12";
        if (o.cell_clip != 0 && !(o.cell_clip >= lstm_largest_cell))
            return "no known program limits the cell";
        if (out().pixels() > most_lstm_steps)
            return fmt::format("it has more than {} steps", most_lstm_steps);
        return refuse_sums(o, in(), out());
    }
    std::string operator()(const compiler::Transpose& o) const {
        return refuse_order(order_of_transpose(in(), o));
    }
    [[nodiscard]] std::string refuse_order(const ElementOrder& order) const {
        return reaches_every_word(order, in(), out())
                   ? ""
                   : "a word of its result has bytes of more places than one loop nest reaches";
    }
};

}  // namespace

std::string Target::refusal(const Graph& graph, const Node& node) const {
    return std::visit(RefusalOf{graph, node}, node.operation);
}

}  // namespace reef::edgetpu::lowering

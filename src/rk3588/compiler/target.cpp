#include "rk3588/compiler/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/functions.h"
#include "rk3588/compiler/lowering.h"

namespace reef::rk3588::lowering {
namespace {

using compiler::Activation;
using compiler::Graph;
using compiler::Node;
using compiler::Value;
using compiler::ValueId;

constexpr std::int32_t most_side = 2047;      // DATAIN_WIDTH and _HEIGHT: 11 bits
constexpr std::int32_t most_channels = 8192;  // DATA_CUBE_CHANNEL: 13 bits, less one
constexpr std::int32_t most_stride = 7;
constexpr std::int32_t most_padding = 15;
constexpr std::int32_t most_dilation = 32;
constexpr std::int64_t most_kernel_bytes = (1 << 19) - 1;
constexpr std::int32_t most_pool = 16;         // fields of 4 bits, less one
constexpr std::int32_t most_pool_padding = 7;  // 3 bits

std::string refuse_cube(const Value& value) {
    if (value.height > most_side || value.width > most_side)
        return fmt::format("'{}' has a side above {} pixels", value.name, most_side);
    if (value.channels > most_channels)
        return fmt::format("'{}' has more than {} channels", value.name, most_channels);
    return {};
}

/// Parts of a concatenation stand in the result from the beginning, whoever makes them.
std::string refuse_parts(const Graph& graph, const Node& node) {
    const Value& out = graph.values[node.outputs[0]];
    std::int32_t channel = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId in = node.inputs[i];
        const Value& part = graph.values[in];
        if (!part.same_numbers(out)) return "its parts have other scales than its result";
        if (channel % static_cast<std::int32_t>(spec::atom_bytes) != 0)
            return fmt::format("a part begins at channel {}, within an atom of {}", channel,
                               spec::atom_bytes);
        channel += part.channels;
        if (std::ranges::count(node.inputs, in) > 1) return "a part stands in it twice";
        for (const std::size_t reader : graph.readers(in)) {
            const Node& other = graph.nodes[reader];
            if (std::holds_alternative<compiler::Concatenation>(other.operation) && &other != &node)
                return "a part stands in another concatenation, too";
        }
    }
    return {};
}

constexpr const char* by_assumed_table = " (`assume` lut)";

struct RefusalOf {
    const Graph& graph;
    const Node& node;
    const Options& options;

    [[nodiscard]] const Value& in(std::size_t i = 0) const { return graph.values[node.inputs[i]]; }
    [[nodiscard]] const Value& out() const { return graph.values[node.outputs[0]]; }

    std::string operator()(const compiler::Unknown& o) const { return o.why; }
    std::string operator()(const compiler::Folded&) const { return {}; }
    std::string operator()(const compiler::Convolution& o) const {
        if (o.depthwise && o.in_channels != o.out_channels)
            return "it makes several channels of one";
        if (auto why = refuse_shape(shape_of(graph, node, o)); !why.empty()) return why;
        const auto fine = with_fine_biases(o, in());
        if (auto numbers = numbers_of(graph, node, fine ? *fine : o, options); !numbers)
            return numbers.error();
        return {};
    }
    std::string operator()(const compiler::AveragePool& o) const {
        if (auto why = refuse_shape(shape_of(graph, node, o)); !why.empty()) return why;
        if (auto numbers = numbers_of(graph, node, o, options); !numbers) return numbers.error();
        return {};
    }
    [[nodiscard]] std::string refuse_operands() const {
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            if (!in(i).same_shape(out())) return "its shapes do not agree";
        return refuse_pixels();
    }
    [[nodiscard]] std::string refuse_pixels() const {
        if (out().pixels() < std::int64_t{spec::least_operand_atoms})
            return fmt::format("operands of element-wise operators have at least {} pixels",
                               spec::least_operand_atoms);
        return {};
    }
    [[nodiscard]] std::string refuse_elements(Activation activation) const {
        if (auto why = refuse_operands(); !why.empty()) return why;
        return refuse_activation(activation);
    }
    [[nodiscard]] std::string refuse_activation(Activation activation) const {
        const auto range = range_of(activation, out());
        if (!range) return "its activation is none of RELU and RELU6";
        if (range->high < 127) return "its activation has an upper bound below its range";
        return {};
    }
    [[nodiscard]] std::string refuse_pair(Activation activation) const {
        if (auto why = refuse_elements(activation); !why.empty()) return why;
        if (auto why = refuse_ratio(
                static_cast<double>(in(0).scale) / static_cast<double>(in(1).scale), "inputs'");
            !why.empty())
            return why;
        return refuse_ratio(ratio_of(graph, node), "input's and output's");
    }
    std::string operator()(const compiler::Sum& o) const { return refuse_pair(o.activation); }
    std::string operator()(const compiler::Difference& o) const {
        return refuse_pair(o.activation);
    }
    std::string operator()(const compiler::Product& o) const {
        if (auto why = refuse_elements(o.activation); !why.empty()) return why;
        const double product = static_cast<double>(in(0).scale) * static_cast<double>(in(1).scale);
        constexpr double most_of_product = 128;  // what a result is of products of two bytes
        if (product / static_cast<double>(out().scale) < most_of_product) return {};
        return "its products are far above what its output holds";
    }
    [[nodiscard]] std::string refuse_table() const {
        if (!options.assume_lut)
            return std::string("no stream at hand of a real chip has a function by table") +
                   by_assumed_table;
        if (auto why = refuse_operands(); !why.empty()) return why;
        return refuse_function(graph, node);
    }
    std::string operator()(const compiler::Logistic&) const { return refuse_table(); }
    std::string operator()(const compiler::Tanh&) const { return refuse_table(); }
    std::string operator()(const compiler::HardSwish&) const { return refuse_table(); }
    std::string operator()(const compiler::LeakyRelu&) const { return refuse_table(); }
    std::string operator()(const compiler::Prelu& o) const {
        const Bytes slopes = o.slopes.weights.view();
        if (std::ranges::any_of(slopes, [&](std::byte s) { return s != slopes.front(); }))
            return "it has more than one slope";
        return refuse_table();
    }
    std::string operator()(const compiler::Rescale& o) const {
        if (options.assume_lut && needs_table(graph, node)) return refuse_table();
        if (auto why = refuse_operands(); !why.empty()) return why;
        auto why = refuse_activation(o.activation);
        if (why.empty()) why = refuse_ratio(ratio_of(graph, node), "two");
        return why.empty() ? why : why + by_assumed_table;
    }
    std::string operator()(const compiler::MaxPool& o) const {
        if (!options.assume_ppu)
            return "no real chip has shown the greatest of int8 windows in the PPU (`assume` ppu)";
        const auto range = range_of(o.activation, out());
        if (!range || !range->whole()) return "it has an activation";
        if (!in().same_numbers(out())) return "its result has another scale than its input";
        const auto& w = o.window;
        if (w.kernel_h > most_pool || w.kernel_w > most_pool || w.stride_h > most_pool ||
            w.stride_w > most_pool)
            return fmt::format("its windows or strides are above {} pixels", most_pool);
        const auto behind = [](std::int32_t outs, std::int32_t stride, std::int32_t kernel,
                               std::int32_t size, std::int32_t before) {
            return (outs - 1) * stride + kernel - size - before;
        };
        const std::int32_t paddings[] = {
            w.top, w.left, behind(out().height, w.stride_h, w.kernel_h, in().height, w.top),
            behind(out().width, w.stride_w, w.kernel_w, in().width, w.left)};
        if (std::ranges::max(paddings) > most_pool_padding)
            return fmt::format("its padding is above {} pixels", most_pool_padding);
        return {};
    }
    std::string operator()(const compiler::Slice& o) const {
        const auto& part = o.parts[0];
        if (o.parts.size() > 1) return "it gives more than one part";
        if (part.step_y != 1 || part.step_x != 1 || in().height != out().height ||
            in().width != out().width)
            return "it takes rows or columns, and no channels of every pixel";
        if (part.channel % static_cast<std::int32_t>(spec::atom_bytes) != 0)
            return fmt::format("it begins at channel {}, within an atom of {}", part.channel,
                               spec::atom_bytes);
        if (!in().same_numbers(out())) return "its result has another scale than its input";
        return refuse_pixels();
    }
    std::string operator()(const compiler::Concatenation& o) const {
        if (o.axis != compiler::Axis::channels)
            return "it joins along another dimension than the channels";
        if (o.activation != Activation::none) return "it has an activation";
        if (options.assume_planes)
            return "what is written behind one of its parts would lie in the next (`assume` "
                   "planes)";
        return refuse_parts(graph, node);
    }
    std::string operator()(const compiler::RowProduct&) const {
        return "its rows are not the pixels of its input";
    }
    // What is left has no form that the facts show for int8.
    std::string operator()(const auto&) const {
        return "no form of it in int8 is known on this chip";
    }
};

}  // namespace

std::string refuse_shape(const ConvolutionShape& s) {
    const auto& w = s.window;
    if (w.kernel_h > most_kernel || w.kernel_w > most_kernel)
        return fmt::format("its kernel has a side above {} pixels", most_kernel);
    if (w.stride_h > most_stride || w.stride_w > most_stride)
        return fmt::format("its stride is above {} pixels", most_stride);
    if (w.dilation_h > most_dilation || w.dilation_w > most_dilation)
        return fmt::format("its dilation is above {} pixels", most_dilation);
    if (w.top > most_padding || w.left > most_padding)
        return fmt::format("its padding is above {} pixels", most_padding);
    if (s.bytes_per_kernel() > most_kernel_bytes)
        return fmt::format("a kernel has more than {} bytes", most_kernel_bytes);
    if (channels_of_task(s) == 0)
        return "16 of its kernels and the windows of one result do not fit the convolution buffer";
    return {};
}

std::string refuse_ratio(double ratio, std::string_view of) {
    constexpr double most_ratio = 256;
    if (ratio < most_ratio && ratio > 1 / most_ratio) return {};
    return fmt::format("its {} scales differ by more than {}", of, most_ratio);
}

std::string Target::refusal(const Graph& graph, const Node& node) const {
    for (const auto* list : {&node.inputs, &node.outputs})
        for (const ValueId id : *list)
            if (auto why = refuse_cube(graph.values[id]); !why.empty()) return why;
    return std::visit(RefusalOf{graph, node, options_}, node.operation);
}

}  // namespace reef::rk3588::lowering

// From a model's operators to the compiler's graph: options, constants and shapes resolved.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <tuple>

#include "compiler/graph.h"

namespace reef::compiler {
namespace {

using model::Op;
using model::Operator;
using model::Padding;
using model::Tensor;
using model::TensorIndex;

/// An operation, or why it is none that chips compute.
using Read = std::expected<Operation, std::string>;

bool is_byte(ElementType type) {
    return type == ElementType::uint8 || type == ElementType::int8;
}

std::int32_t flip_of(ElementType type) {
    return type == ElementType::int8 ? 128 : 0;
}

constexpr std::int64_t most_elements = std::int64_t{1} << 28;

void set_shape(Value& value, const std::vector<std::int32_t>& shape) {
    std::array<std::int32_t, 4> padded{1, 1, 1, 1};
    if (shape.size() > 4) {
        value.problem = fmt::format("'{}' has {} dimensions", value.name, shape.size());
        return;
    }
    std::ranges::copy_backward(shape, padded.end());
    if (padded[0] != 1) value.problem = fmt::format("'{}' is a batch of {}", value.name, padded[0]);
    if (std::ranges::any_of(shape, [](auto n) { return n < 1; }))
        value.problem = fmt::format("'{}' has no elements", value.name);
    std::int64_t elements = 1;
    for (const auto n : shape) {
        if (n > 65535) value.problem = fmt::format("'{}' has a side above 65535", value.name);
        elements = std::min(elements * std::max(n, 1), most_elements);
    }
    if (elements >= most_elements)
        value.problem = fmt::format("'{}' has too many elements for any chip", value.name);
    std::tie(value.height, value.width, value.channels) = std::tie(padded[1], padded[2], padded[3]);
}

Value value_of(const Tensor& tensor) {
    Value value{.name = tensor.name, .type = tensor.type};
    set_shape(value, tensor.shape);
    const auto& q = tensor.quantization;
    if (!is_byte(tensor.type)) {
        value.problem = fmt::format("'{}' is {}, not of 8 bits", tensor.name, name_of(tensor.type));
    } else if (!q || q->scale.size() != 1 || !(q->scale[0] > 0)) {
        value.problem = fmt::format("'{}' has not one scale", tensor.name);
    } else if (tensor.is_variable) {
        value.problem = fmt::format("'{}' keeps its value between runs", tensor.name);
    } else {
        value.scale = q->scale[0];
        const auto stored = q->zero_point.empty() ? 0 : q->zero_point[0];
        value.zero = static_cast<std::int32_t>(stored) + flip_of(tensor.type);
    }
    return value;
}

class GraphReader {
  public:
    explicit GraphReader(const model::Model& model)
        : model_(model), subgraph_(model.subgraphs.front()) {}

    Graph run() {
        graph_.model = &model_;
        for (const Tensor& tensor : subgraph_.tensors) graph_.values.push_back(value_of(tensor));
        written_.assign(graph_.values.size(), false);
        for (std::size_t i = 0; i < written_.size(); ++i)
            written_[i] = subgraph_.tensors[i].is_variable;
        for (const TensorIndex i : subgraph_.inputs) {
            graph_.inputs.push_back(id(i));
            written_[id(i)] = true;
        }
        for (const TensorIndex i : subgraph_.outputs) graph_.outputs.push_back(id(i));
        for (const Operator& op : subgraph_.operators) add(op);
        return std::move(graph_);
    }

  private:
    static ValueId id(TensorIndex index) { return static_cast<ValueId>(index); }
    const Value& value(TensorIndex index) const { return graph_.values[id(index)]; }
    const Tensor& tensor(TensorIndex index) const { return subgraph_.tensors[id(index)]; }
    bool is_constant(TensorIndex index) const { return !model_.constant(tensor(index)).empty(); }

    void add(const Operator& op) {
        Node node{.name = op.code.name(), .inputs = {}, .outputs = {}, .operation = {}};
        for (const TensorIndex i : op.outputs) node.outputs.push_back(id(i));
        for (const TensorIndex i : op.inputs)
            if (i != model::absent_tensor && !is_constant(i)) node.inputs.push_back(id(i));
        auto problem = order_problem(node);
        if (problem.empty()) problem = problem_of(node);
        auto read = problem.empty() ? operation_of(op) : std::unexpected(std::move(problem));
        node.operation = read ? std::move(*read) : Operation{Unknown{std::move(read).error()}};
        graph_.nodes.push_back(std::move(node));
    }

    /// Each tensor is written once, before it is read.
    std::string order_problem(const Node& node) {
        std::string problem;
        for (const ValueId i : node.inputs)
            if (!written_[i]) problem = "it reads what nothing wrote before";
        for (const ValueId i : node.outputs) {
            if (written_[i]) problem = "it writes what something wrote before";
            written_[i] = true;
        }
        return problem;
    }

    std::string problem_of(const Node& node) const {
        if (node.inputs.empty()) return "it computes constants";
        for (const auto* list : {&node.inputs, &node.outputs})
            for (const ValueId i : *list)
                if (!graph_.values[i].problem.empty()) return graph_.values[i].problem;
        return {};
    }

    Read operation_of(const Operator& op);
    Read convolution(const Operator& op) const;
    Read depthwise(const Operator& op) const;
    Read fully_connected(const Operator& op) const;
    Read with_constants(const Operator& op, Convolution conv) const;
    Read concatenation(const Operator& op) const;
    Read pool(const Operator& op) const;
    Read mean(const Operator& op) const;
    Read resize(const Operator& op) const;
    Read pad(const Operator& op) const;
    Read split(const Operator& op) const;
    Read slice(const Operator& op) const;
    Read strided_slice(const Operator& op) const;
    Read slice_of(const Operator& op, std::span<const std::int32_t> begin,
                  std::span<const std::int32_t> step) const;
    Read reshape(const Operator& op) const;
    template <typename Result, typename Options>
    Read of_two(const Operator& op) const;

    /// Options as the operator has them, or as the schema presets them.
    template <typename T>
    static T options(const Operator& op) {
        const auto* held = std::get_if<T>(&op.options);
        return held != nullptr ? *held : T{};
    }

    template <typename T>
    std::optional<std::vector<T>> constant(TensorIndex index, ElementType type) const {
        if (index == model::absent_tensor || tensor(index).type != type) return std::nullopt;
        const Bytes bytes = model_.constant(tensor(index));
        if (bytes.empty()) return std::nullopt;
        std::vector<T> out(bytes.size() / sizeof(T));
        std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
        return out;
    }

    const model::Model& model_;
    const model::Subgraph& subgraph_;
    std::vector<bool> written_;  ///< by tensor: when the next operator runs
    Graph graph_;
};

/// Pixels in front of the image; nothing when the output does not have the size that follows.
std::optional<std::int32_t> front_of(Padding padding, std::int32_t in, std::int32_t out,
                                     std::int32_t reach, std::int32_t stride) {
    const std::int64_t covered = std::int64_t{out - 1} * stride + reach;
    if (padding == Padding::valid)
        return covered <= in && covered + stride > in ? std::optional(0) : std::nullopt;
    if (out != (in + stride - 1) / stride) return std::nullopt;
    return static_cast<std::int32_t>(std::max<std::int64_t>(covered - in, 0) / 2);
}

/// Fills in where the window begins. False when shapes do not agree.
bool place_window(Window& w, Padding padding, const Value& in, const Value& out) {
    for (const auto n :
         {w.kernel_h, w.kernel_w, w.stride_h, w.stride_w, w.dilation_h, w.dilation_w})
        if (n < 1 || n > 4096) return false;
    const auto top = front_of(padding, in.height, out.height, w.reach_h(), w.stride_h);
    const auto left = front_of(padding, in.width, out.width, w.reach_w(), w.stride_w);
    if (!top || !left) return false;
    w.top = *top;
    w.left = *left;
    return true;
}

const std::unexpected<std::string> shapes_disagree("its shapes do not agree");

Read GraphReader::with_constants(const Operator& op, Convolution conv) const {
    const Tensor& weights = tensor(op.inputs[1]);
    const Bytes bytes = model_.constant(weights);
    if (bytes.empty()) return std::unexpected("its weights are computed");
    if (!is_byte(weights.type) || !weights.quantization || !weights.quantization->quantized())
        return std::unexpected("its weights have not 8 bits");
    const auto elements = std::int64_t{conv.window.kernel_h} * conv.window.kernel_w *
                          conv.out_channels * (conv.depthwise ? 1 : conv.in_channels);
    if (elements != weights.element_count()) return shapes_disagree;
    conv.weight_scales = weights.quantization->scale;
    const auto& zeros = weights.quantization->zero_point;
    if (std::ranges::adjacent_find(zeros, std::not_equal_to{}) != zeros.end())
        return std::unexpected("its weights have more than one zero point");
    conv.weight_zero =
        (zeros.empty() ? 0 : static_cast<std::int32_t>(zeros[0])) + flip_of(weights.type);
    if (conv.per_channel() &&
        (conv.weight_scales.size() != static_cast<std::size_t>(conv.out_channels) ||
         conv.weight_zero != 128))
        return std::unexpected("its scales by channel are not symmetric ones of output channels");
    if (weights.type == ElementType::uint8) {
        conv.weights = SharedBytes(bytes, nullptr);
    } else {
        auto flipped = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
        for (std::byte& b : *flipped) b ^= std::byte{0x80};
        conv.weights = SharedBytes(*flipped, flipped);
    }
    conv.biases.assign(static_cast<std::size_t>(conv.out_channels), 0);
    if (op.inputs.size() > 2 && op.inputs[2] != model::absent_tensor) {
        auto biases = constant<std::int32_t>(op.inputs[2], ElementType::int32);
        if (!biases || biases->size() != conv.biases.size())
            return std::unexpected("its bias is no constant of 32 bits for each channel");
        conv.biases = std::move(*biases);
    }
    return conv;
}

Read GraphReader::convolution(const Operator& op) const {
    if (op.inputs.size() < 2) return shapes_disagree;
    const auto o = options<model::Conv2dOptions>(op);
    const auto& shape = tensor(op.inputs[1]).shape;
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (shape.size() != 4 || shape[0] != out.channels) return shapes_disagree;
    if (shape[3] != in.channels) return std::unexpected("it is a grouped convolution");
    Convolution conv{
        .window = {shape[1], shape[2], o.stride_h, o.stride_w, o.dilation_h, o.dilation_w},
        .activation = o.activation,
        .in_channels = in.channels,
        .out_channels = out.channels,
        .weights = {},
        .weight_scales = {},
        .biases = {}};
    if (!place_window(conv.window, o.padding, in, out)) return shapes_disagree;
    return with_constants(op, std::move(conv));
}

Read GraphReader::depthwise(const Operator& op) const {
    if (op.inputs.size() < 2) return shapes_disagree;
    const auto o = options<model::DepthwiseConv2dOptions>(op);
    const auto& shape = tensor(op.inputs[1]).shape;
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (shape.size() != 4 || shape[0] != 1 || shape[3] != out.channels) return shapes_disagree;
    // With one input channel the weights have the order of an ordinary convolution's but for the
    // output channel, which comes last: legalise() turns them round.
    Convolution conv{
        .window = {shape[1], shape[2], o.stride_h, o.stride_w, o.dilation_h, o.dilation_w},
        .depthwise = true,
        .activation = o.activation,
        .in_channels = in.channels,
        .out_channels = out.channels,
        .weights = {},
        .weight_scales = {},
        .biases = {}};
    if (!place_window(conv.window, o.padding, in, out)) return shapes_disagree;
    return with_constants(op, std::move(conv));
}

Read GraphReader::fully_connected(const Operator& op) const {
    if (op.inputs.size() < 2) return shapes_disagree;
    const auto o = options<model::FullyConnectedOptions>(op);
    if (o.weights_format != 0) return std::unexpected("its weights are shuffled");
    const auto& shape = tensor(op.inputs[1]).shape;
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (shape.size() != 2 || shape[0] != out.channels) return shapes_disagree;
    // The input's last dimension may be another than the weights': rows are made of all elements.
    Convolution conv{.window = {},
                     .activation = o.activation,
                     .in_channels = shape[1],
                     .out_channels = out.channels,
                     .weights = {},
                     .weight_scales = {},
                     .biases = {}};
    if (in.channels != shape[1]) {
        if (in.pixels() * in.channels != shape[1] || out.pixels() != 1) return shapes_disagree;
        conv.window.kernel_h = in.height;
        conv.window.kernel_w = in.width;
        conv.in_channels = in.channels;
    } else if (in.pixels() != out.pixels() || in.width != out.width) {
        return shapes_disagree;
    }
    return with_constants(op, std::move(conv));
}

template <typename Result, typename Options>
Read GraphReader::of_two(const Operator& op) const {
    if (op.inputs.size() != 2) return shapes_disagree;
    for (const TensorIndex i : op.inputs)
        if (is_constant(i)) return std::unexpected("one of its inputs is a constant");
    if (!value(op.inputs[0]).same_shape(value(op.inputs[1])) ||
        !value(op.inputs[0]).same_shape(value(op.outputs[0])))
        return std::unexpected("its inputs have different shapes");
    return Result{options<Options>(op).activation};
}

Read GraphReader::concatenation(const Operator& op) const {
    const auto o = options<model::ConcatenationOptions>(op);
    const auto rank = static_cast<std::int32_t>(tensor(op.outputs[0]).shape.size());
    if (o.axis != -1 && o.axis != rank - 1)
        return std::unexpected("it joins along another dimension than the channels");
    std::int64_t channels = 0;
    for (const TensorIndex i : op.inputs) {
        if (i == model::absent_tensor || is_constant(i))
            return std::unexpected("one of its inputs is a constant");
        const Value &in = value(i), &out = value(op.outputs[0]);
        if (in.height != out.height || in.width != out.width) return shapes_disagree;
        if (out.type == ElementType::int8 && !in.same_numbers(out))
            return std::unexpected("its inputs of int8 have different scales");
        channels += in.channels;
    }
    if (channels != value(op.outputs[0]).channels) return shapes_disagree;
    return Concatenation{o.activation};
}

Read GraphReader::pool(const Operator& op) const {
    const auto o = options<model::Pool2dOptions>(op);
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    Window w{o.filter_h, o.filter_w, o.stride_h, o.stride_w};
    if (in.channels != out.channels || !place_window(w, o.padding, in, out)) return shapes_disagree;
    if (op.code.builtin == Op::max_pool_2d) return MaxPool{w, o.activation};
    const bool inside = w.top == 0 && w.left == 0 &&
                        (out.height - 1) * w.stride_h + w.kernel_h <= in.height &&
                        (out.width - 1) * w.stride_w + w.kernel_w <= in.width;
    if (!inside) return std::unexpected("windows reach over the border and average fewer pixels");
    return AveragePool{w, o.activation};
}

Read GraphReader::mean(const Operator& op) const {
    if (op.inputs.size() != 2) return shapes_disagree;
    auto axes = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (!axes || tensor(op.inputs[0]).shape.size() != 4)
        return std::unexpected("its axes are not height and width");
    for (auto& axis : *axes)
        if (axis < 0) axis += 4;
    std::ranges::sort(*axes);
    if (*axes != std::vector<std::int32_t>{1, 2})
        return std::unexpected("its axes are not height and width");
    if (out.pixels() != 1 || out.channels != in.channels) return shapes_disagree;
    return AveragePool{Window{in.height, in.width}, Activation::none};
}

Read GraphReader::resize(const Operator& op) const {
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (in.channels != out.channels) return shapes_disagree;
    if (op.code.builtin == Op::resize_bilinear) {
        const auto o = options<model::ResizeBilinearOptions>(op);
        return Resize{false, o.half_pixel_centers, o.align_corners};
    }
    const auto o = options<model::ResizeNearestNeighborOptions>(op);
    return Resize{true, o.half_pixel_centers, o.align_corners};
}

Read GraphReader::pad(const Operator& op) const {
    if (op.inputs.size() != 2) return shapes_disagree;
    const auto widths = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (!widths || widths->size() != 8) return std::unexpected("its widths are no constant of 4x2");
    const auto& p = *widths;
    if (p[0] != 0 || p[1] != 0 || p[6] != 0)
        return std::unexpected("it pads in front of the channels");
    if (std::ranges::any_of(p, [](auto n) { return n < 0 || n > 4096; }) ||
        out.height != in.height + p[2] + p[3] || out.width != in.width + p[4] + p[5] ||
        out.channels != in.channels + p[7])
        return shapes_disagree;
    if (!in.same_numbers(out)) return std::unexpected("it changes the scale");
    return Pad{p[2], p[3], p[4], p[5], p[7]};
}

Read GraphReader::reshape(const Operator& op) const {
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (in.pixels() * in.channels != out.pixels() * out.channels) return shapes_disagree;
    if (!in.same_numbers(out)) return std::unexpected("it changes the scale");
    return Reshape{};
}

/// SPLIT and SPLIT_V.
Read GraphReader::split(const Operator& op) const {
    const bool with_sizes = op.code.builtin == Op::split_v;
    if (op.inputs.size() != (with_sizes ? 3U : 2U)) return shapes_disagree;
    const TensorIndex from = op.inputs[with_sizes ? 0 : 1];
    const auto axes = constant<std::int32_t>(op.inputs[with_sizes ? 2 : 0], ElementType::int32);
    const auto rank = static_cast<std::int32_t>(tensor(from).shape.size());
    if (!axes || axes->size() != 1 || rank == 0)
        return std::unexpected("its dimension is no constant");
    const std::int32_t axis = (*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0];
    if (axis < 0 || axis >= rank || axis + 4 - rank < 1)
        return std::unexpected("it cuts another dimension than height, width and channels");
    Slice slice;
    std::int32_t at = 0;
    for (const TensorIndex out : op.outputs) {
        if (!value(from).same_numbers(value(out))) return std::unexpected("it changes the scale");
        const auto& shape = tensor(out).shape;
        if (static_cast<std::int32_t>(shape.size()) != rank) return shapes_disagree;
        Slice::Part part;
        (axis + 4 - rank == 1 ? part.y : axis + 4 - rank == 2 ? part.x : part.channel) = at;
        slice.parts.push_back(part);
        at += shape[static_cast<std::size_t>(axis)];
    }
    if (at != tensor(from).shape[static_cast<std::size_t>(axis)]) return shapes_disagree;
    return slice;
}

/// One output, of a tensor with as many dimensions.
Read GraphReader::slice_of(const Operator& op, std::span<const std::int32_t> begin,
                           std::span<const std::int32_t> step) const {
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    const auto& shape = tensor(op.inputs[0]).shape;
    const std::size_t rank = shape.size();
    if (rank > 4 || begin.size() != rank || tensor(op.outputs[0]).shape.size() != rank)
        return std::unexpected("it changes the number of dimensions");
    if (!in.same_numbers(out)) return std::unexpected("it changes the scale");
    std::array<std::int32_t, 4> from{0, 0, 0, 0}, by{1, 1, 1, 1};
    std::ranges::copy_backward(begin, from.end());
    std::ranges::copy_backward(step, by.end());
    if (by[3] != 1) return std::unexpected("it leaves out channels between others");
    const Slice::Part part{from[1], from[2], from[3], by[1], by[2]};
    const bool inside = std::ranges::all_of(from, [](auto n) { return n >= 0; }) &&
                        std::ranges::all_of(by, [](auto n) { return n >= 1 && n <= 4096; }) &&
                        part.y + (out.height - 1) * std::int64_t{part.step_y} < in.height &&
                        part.x + (out.width - 1) * std::int64_t{part.step_x} < in.width &&
                        part.channel + std::int64_t{out.channels} <= in.channels;
    if (!inside || from[0] != 0) return shapes_disagree;
    return Slice{{part}};
}

Read GraphReader::slice(const Operator& op) const {
    if (op.inputs.size() != 3) return shapes_disagree;
    const auto begin = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    if (!begin) return std::unexpected("where it begins is no constant");
    const std::vector<std::int32_t> ones(begin->size(), 1);
    return slice_of(op, *begin, ones);
}

Read GraphReader::strided_slice(const Operator& op) const {
    if (op.inputs.size() != 4) return shapes_disagree;
    const auto o = options<model::StridedSliceOptions>(op);
    auto begin = constant<std::int32_t>(op.inputs[1], ElementType::int32);
    const auto step = constant<std::int32_t>(op.inputs[3], ElementType::int32);
    if (!begin || !step || begin->size() != step->size())
        return std::unexpected("where it begins is no constant");
    if (o.ellipsis_mask != 0 || o.new_axis_mask != 0 || o.shrink_axis_mask != 0 || o.offset)
        return std::unexpected("it changes the number of dimensions");
    const auto& shape = tensor(op.inputs[0]).shape;
    if (begin->size() != shape.size()) return shapes_disagree;
    for (std::size_t i = 0; i < begin->size(); ++i) {
        std::int32_t& at = (*begin)[i];
        if ((o.begin_mask >> i & 1) != 0) at = 0;
        if (at < 0) at += shape[i];
    }
    return slice_of(op, *begin, *step);
}

Read GraphReader::operation_of(const Operator& op) {
    for (std::size_t i = 0; i < std::min<std::size_t>(op.inputs.size(), 2); ++i)
        if (op.inputs[i] == model::absent_tensor) return std::unexpected("an input is missing");
    if (op.code.builtin == Op::split || op.code.builtin == Op::split_v) return split(op);
    if (op.outputs.size() != 1) return std::unexpected("it has several outputs");
    switch (op.code.builtin) {
        case Op::conv_2d:
            return convolution(op);
        case Op::depthwise_conv_2d:
            return depthwise(op);
        case Op::fully_connected:
            return fully_connected(op);
        case Op::add:
            return of_two<Sum, model::AddOptions>(op);
        case Op::mul:
            return of_two<Product, model::MulOptions>(op);
        case Op::quantize:
            return Rescale{};
        case Op::relu:
            return Rescale{Activation::relu};
        case Op::relu6:
            return Rescale{Activation::relu6};
        case Op::logistic:
            return Logistic{};
        case Op::tanh:
            return Tanh{};
        case Op::concatenation:
            return concatenation(op);
        case Op::max_pool_2d:
        case Op::average_pool_2d:
            return pool(op);
        case Op::mean:
            return mean(op);
        case Op::resize_bilinear:
        case Op::resize_nearest_neighbor:
            return resize(op);
        case Op::pad:
            return pad(op);
        case Op::slice:
            return slice(op);
        case Op::strided_slice:
            return strided_slice(op);
        case Op::reshape:
        case Op::squeeze:
        case Op::expand_dims:
            return reshape(op);
        default:
            return std::unexpected("the operator is not supported");
    }
}

}  // namespace

Graph read_graph(const model::Model& model) {
    return GraphReader(model).run();
}

}  // namespace reef::compiler

// From a model's operators to the compiler's graph: options, constants and shapes resolved.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "compiler/graph_reader.h"

namespace reef::compiler {
namespace {

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
        elements = std::min(elements * std::max(n, 1), most_elements);
    }
    if (elements >= most_elements)
        value.problem = fmt::format("'{}' has too many elements for any chip", value.name);
    if (padded[1] > 65535 || padded[2] > 65535)
        value.problem = fmt::format("'{}' has a side above 65535", value.name);
    std::tie(value.height, value.width, value.channels) = std::tie(padded[1], padded[2], padded[3]);
}

Value value_of(const Tensor& tensor) {
    Value value{.name = tensor.name, .type = tensor.type};
    set_shape(value, tensor.shape);
    const auto& q = tensor.quantization;
    if (!is_byte(tensor.type)) {
        value.problem = fmt::format("'{}' is {}, not of 8 bits", tensor.name, name_of(tensor.type));
    } else if (!q || q->scale.size() != 1 || !(q->scale[0] > 0) || !std::isfinite(q->scale[0])) {
        value.problem = fmt::format("'{}' has not one scale", tensor.name);
    } else {
        if (tensor.is_variable)
            value.problem = fmt::format("'{}' keeps its value between runs", tensor.name);
        value.scale = q->scale[0];
        const std::int64_t stored = q->zero_point.empty() ? 0 : q->zero_point[0];
        const std::int64_t least = -flip_of(tensor.type);
        if (stored < least || stored > least + 255)
            value.problem =
                fmt::format("'{}' has zero point {}, outside its type", tensor.name, stored);
        else
            value.zero = static_cast<std::int32_t>(stored - least);
    }
    return value;
}

}  // namespace

Graph GraphReader::run() {
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

void GraphReader::add(const Operator& op) {
    Node node{.name = op.code.name(), .inputs = {}, .outputs = {}, .operation = {}};
    for (const TensorIndex i : op.outputs) node.outputs.push_back(id(i));
    for (const TensorIndex i : op.inputs)
        if (i != model::absent_tensor && !is_constant(i)) node.inputs.push_back(id(i));
    auto problem = order_problem(node);
    if (problem.empty()) problem = problem_of(op, node);
    auto read = problem.empty() ? operation_of(op) : std::unexpected(std::move(problem));
    node.operation = read ? std::move(*read) : Operation{Unknown{std::move(read).error()}};
    graph_.nodes.push_back(std::move(node));
}

std::string GraphReader::order_problem(const Node& node) {
    std::string problem;
    for (const ValueId i : node.inputs)
        if (!written_[i]) problem = "it reads what nothing wrote before";
    for (const ValueId i : node.outputs) {
        if (written_[i]) problem = "it writes what something wrote before";
        written_[i] = true;
    }
    return problem;
}

std::string GraphReader::problem_of(const Operator& op, const Node& node) const {
    if (node.inputs.empty()) return "it computes constants";
    for (const auto* list : {&node.inputs, &node.outputs})
        for (const ValueId i : *list)
            if (!graph_.values[i].problem.empty() && !is_kept_by(op, i))
                return graph_.values[i].problem;
    return {};
}

std::string GraphReader::input_problem(const Operator& op) const {
    for (const TensorIndex i : op.inputs)
        if (i != model::absent_tensor && tensor(i).sparsity)
            return fmt::format("'{}' holds its values in sparse form", tensor(i).name);
    for (std::size_t i = 0; i < std::min<std::size_t>(op.inputs.size(), 2); ++i)
        if (op.inputs[i] == model::absent_tensor) return "an input is missing";
    return {};
}

Read GraphReader::operation_of(const Operator& op) {
    if (auto problem = input_problem(op); !problem.empty())
        return std::unexpected(std::move(problem));
    if (op.code.builtin == Op::split || op.code.builtin == Op::split_v) return split(op);
    if (op.outputs.size() != 1) return std::unexpected("it has several outputs");
    if (!has_own_shape(op)) return disagree();
    switch (op.code.builtin) {
        case Op::conv_2d:
            return windowed<model::Conv2dOptions>(op);
        case Op::depthwise_conv_2d:
            return windowed<model::DepthwiseConv2dOptions>(op);
        case Op::transpose_conv:
            return transposed(op);
        case Op::fully_connected:
            return fully_connected(op);
        case Op::max_pool_2d:
        case Op::average_pool_2d:
            return pool(op);
        case Op::mean:
        case Op::sum:
            return mean(op);
        case Op::resize_bilinear:
        case Op::resize_nearest_neighbor:
            return resize(op);
        case Op::unidirectional_sequence_lstm:
            return lstm(op);
        case Op::l2_normalization:
            return std::unexpected("how the chip computes it is not known of any program");
        default:
            break;
    }
    if (auto moved = movement_of(op)) return std::move(*moved);
    if (auto computed = elementwise_of(op)) return std::move(*computed);
    return std::unexpected("the operator is not supported");
}

std::optional<Read> GraphReader::movement_of(const Operator& op) const {
    switch (op.code.builtin) {
        case Op::concatenation:
            return concatenation(op);
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
        case Op::transpose:
            return transpose(op);
        case Op::space_to_depth:
        case Op::depth_to_space:
            return blocks(op);
        default:
            return std::nullopt;
    }
}

std::optional<Read> GraphReader::elementwise_of(const Operator& op) const {
    switch (op.code.builtin) {
        case Op::add:
            return sum(op);
        case Op::mul:
            return product(op);
        case Op::sub:
            return difference(op);
        case Op::maximum:
            return maximum(op);
        case Op::minimum:
            return minimum(op);
        case Op::prelu:
            return prelu(op);
        default:
            return function_of(op);
    }
}

std::optional<Read> GraphReader::function_of(const Operator& op) {
    switch (op.code.builtin) {
        case Op::leaky_relu:
            return LeakyRelu{REEF_TRY(options<model::LeakyReluOptions>(op)).alpha};
        case Op::hard_swish:
            return HardSwish{};
        case Op::quantize:
            return Rescale{};
        case Op::relu:
            return Rescale{Activation::relu};
        case Op::relu6:
            return Rescale{Activation::relu6};
        case Op::logistic:
            return Logistic{};
        case Op::softmax:
            return Softmax{REEF_TRY(options<model::SoftmaxOptions>(op)).beta};
        case Op::tanh:
            return Tanh{};
        default:
            return std::nullopt;
    }
}

Graph read_graph(const model::Model& model) {
    return GraphReader(model).run();
}

}  // namespace reef::compiler

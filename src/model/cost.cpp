#include "reef/model/cost.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace reef::model {
namespace {

// Sizes of a valid model are at most 2^40 bytes a tensor, products of two of them may not fit.
std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return std::numeric_limits<std::int64_t>::max();
    return product;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) return std::numeric_limits<std::int64_t>::max();
    return sum;
}

const Tensor* tensor_at(const Subgraph& subgraph, const std::vector<TensorIndex>& indices,
                        std::size_t position) {
    if (position >= indices.size() || indices[position] == absent_tensor) return nullptr;
    return &subgraph.tensors[static_cast<std::size_t>(indices[position])];
}

/// The tensor's size along `axis`; 0 without the tensor or the axis.
std::int64_t size_along(const Tensor* tensor, std::size_t axis) {
    return tensor != nullptr && axis < tensor->shape.size() ? tensor->shape[axis] : 0;
}

std::int64_t elements(const Tensor* tensor) {
    return tensor == nullptr ? 0 : tensor->element_count();
}

/// Every output element takes filter height * width * input channels (filter OHWI).
std::int64_t conv_macs(const Subgraph& subgraph, const Operator& op) {
    const Tensor* filter = tensor_at(subgraph, op.inputs, 1);
    const std::int64_t taps =
        times(times(size_along(filter, 1), size_along(filter, 2)), size_along(filter, 3));
    return times(elements(tensor_at(subgraph, op.outputs, 0)), taps);
}

/// Every output element takes filter height * width (filter 1HWC).
std::int64_t depthwise_macs(const Subgraph& subgraph, const Operator& op) {
    const Tensor* filter = tensor_at(subgraph, op.inputs, 1);
    return times(elements(tensor_at(subgraph, op.outputs, 0)),
                 times(size_along(filter, 1), size_along(filter, 2)));
}

/// Every input element goes into filter height * width * output channels (filter OHWI); the
/// operator's inputs are output shape, filter, input.
std::int64_t transpose_conv_macs(const Subgraph& subgraph, const Operator& op) {
    const Tensor* filter = tensor_at(subgraph, op.inputs, 1);
    const std::int64_t taps =
        times(times(size_along(filter, 0), size_along(filter, 1)), size_along(filter, 2));
    return times(elements(tensor_at(subgraph, op.inputs, 2)), taps);
}

/// Every output element takes one row of the weights.
std::int64_t fully_connected_macs(const Subgraph& subgraph, const Operator& op) {
    const Tensor* weights = tensor_at(subgraph, op.inputs, 1);
    return times(elements(tensor_at(subgraph, op.outputs, 0)), size_along(weights, 1));
}

/// Every output element takes the dimension that the matrices share: the first one's last, or its
/// last but one when that matrix is transposed.
std::int64_t batch_matmul_macs(const Subgraph& subgraph, const Operator& op) {
    const Tensor* a = tensor_at(subgraph, op.inputs, 0);
    if (a == nullptr || a->shape.size() < 2) return 0;
    const auto* options = std::get_if<BatchMatMulOptions>(&op.options);
    const std::size_t from_end = options != nullptr && options->adj_x ? 2 : 1;
    return times(elements(tensor_at(subgraph, op.outputs, 0)),
                 size_along(a, a->shape.size() - from_end));
}

/// Every batch uses the feature weights and the time weights once.
std::int64_t svdf_macs(const Subgraph& subgraph, const Operator& op) {
    return times(plus(elements(tensor_at(subgraph, op.inputs, 1)),
                      elements(tensor_at(subgraph, op.inputs, 2))),
                 size_along(tensor_at(subgraph, op.inputs, 0), 0));
}

/// Every sequence step of every batch uses all weight matrices once. Inputs 1 to 4 are the input
/// weights, 5 to 8 the recurrent ones, 9 to 11 the peephole vectors, 16 the projection.
std::int64_t lstm_macs(const Subgraph& subgraph, const Operator& op) {
    std::int64_t weights = elements(tensor_at(subgraph, op.inputs, 16));
    for (std::size_t i = 1; i <= 11; ++i) {
        weights = plus(weights, elements(tensor_at(subgraph, op.inputs, i)));
    }
    const Tensor* input = tensor_at(subgraph, op.inputs, 0);
    return times(weights, times(size_along(input, 0), size_along(input, 1)));
}

std::int64_t macs_of(const Subgraph& subgraph, const Operator& op) {
    switch (op.code.builtin) {
        case Op::conv_2d:
            return conv_macs(subgraph, op);
        case Op::depthwise_conv_2d:
            return depthwise_macs(subgraph, op);
        case Op::transpose_conv:
            return transpose_conv_macs(subgraph, op);
        case Op::fully_connected:
            return fully_connected_macs(subgraph, op);
        case Op::batch_matmul:
            return batch_matmul_macs(subgraph, op);
        case Op::svdf:
            return svdf_macs(subgraph, op);
        case Op::unidirectional_sequence_lstm:
            return lstm_macs(subgraph, op);
        default:
            return 0;
    }
}

}  // namespace

Cost cost_of(const Model& model, const Subgraph& subgraph, const Operator& op,
             std::span<const TensorIndex> known) {
    Cost cost;
    cost.macs = macs_of(subgraph, op);
    const auto count_activation = [&](TensorIndex index, const Tensor& tensor) {
        if (!std::ranges::binary_search(known, index))
            cost.activation_bytes = plus(cost.activation_bytes, tensor.byte_count().value_or(0));
    };
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const Tensor* tensor = tensor_at(subgraph, op.inputs, i);
        if (tensor == nullptr) continue;
        const auto constant = static_cast<std::int64_t>(model.constant(*tensor).size());
        cost.weight_bytes = plus(cost.weight_bytes, constant);
        if (constant == 0) count_activation(op.inputs[i], *tensor);
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
        count_activation(op.outputs[i], *tensor_at(subgraph, op.outputs, i));
    return cost;
}

Cost cost_of(const Model& model, const Subgraph& subgraph, std::span<const TensorIndex> known) {
    Cost sum;
    for (const Operator& op : subgraph.operators) {
        const Cost cost = cost_of(model, subgraph, op, known);
        sum.macs = plus(sum.macs, cost.macs);
        sum.weight_bytes = plus(sum.weight_bytes, cost.weight_bytes);
        sum.activation_bytes = plus(sum.activation_bytes, cost.activation_bytes);
    }
    return sum;
}

}  // namespace reef::model

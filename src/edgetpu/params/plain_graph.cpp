#include "edgetpu/params/plain_graph.h"

#include <algorithm>
#include <cstring>

namespace reef::edgetpu {

using model::Op;
using model::Operator;
using model::Tensor;
using model::TensorIndex;

PlainGraph::PlainGraph(const model::Model& plain)
    : plain_(plain), graph_(plain.subgraphs.front()) {}

const Tensor* PlainGraph::tensor(const std::vector<TensorIndex>& list, std::size_t position) const {
    if (position >= list.size() || list[position] == model::absent_tensor) return nullptr;
    return &tensor_at(list[position]);
}

bool PlainGraph::quantized(const std::vector<TensorIndex>& list, std::size_t position) const {
    const Tensor* one = tensor(list, position);
    return one != nullptr && (one->type == ElementType::int8 || one->type == ElementType::uint8) &&
           one->quantization && one->quantization->quantized();
}

const Tensor* PlainGraph::weights(const Operator& op, std::size_t position,
                                  std::size_t dimensions) const {
    if (!quantized(op.inputs, position)) return nullptr;
    const Tensor* one = tensor(op.inputs, position);
    const bool constant = !plain_.constant(*one).empty() && one->shape.size() == dimensions;
    return constant ? one : nullptr;
}

std::vector<std::int32_t> PlainGraph::numbers(const Operator& op, std::size_t position) const {
    const Tensor* one = tensor(op.inputs, position);
    if (one == nullptr || one->type != ElementType::int32) return {};
    const Bytes bytes = plain_.constant(*one);
    std::vector<std::int32_t> values(bytes.size() / 4);
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * 4);
    return values;
}

std::optional<std::size_t> PlainGraph::constant_of_pair(const Operator& op) const {
    if (op.inputs.size() != 2) return std::nullopt;
    const Tensor *first = tensor(op.inputs, 0), *second = tensor(op.inputs, 1);
    if (first == nullptr || second == nullptr) return std::nullopt;
    const bool a = !plain_.constant(*first).empty(), b = !plain_.constant(*second).empty();
    if (a == b) return std::nullopt;
    return a ? 0 : 1;
}

PlainGraph::Image PlainGraph::image_of(const Tensor& tensor) {
    std::array<std::int32_t, 3> sides{1, 1, 1};
    const std::size_t known = std::min<std::size_t>(tensor.shape.size(), 3);
    std::copy_n(tensor.shape.end() - static_cast<std::ptrdiff_t>(known), known,
                sides.end() - known);
    return {static_cast<std::uint32_t>(std::max(sides[0], 0)),
            static_cast<std::uint32_t>(std::max(sides[1], 0)),
            static_cast<std::uint32_t>(std::max(sides[2], 0))};
}

std::vector<PlainGraph::Image> PlainGraph::images_of(TensorIndex tensor,
                                                     std::uint64_t elements) const {
    std::vector<Image> images;
    const auto known = [&](const Image& one) {
        return std::ranges::any_of(images, [&](const Image& other) {
            return other.height == one.height && other.width == one.width;
        });
    };
    // Operators may write what they read: no chain is longer than they are many.
    for (std::size_t i = 0; i <= operators().size() && tensor != model::absent_tensor; ++i) {
        const Image image = image_of(tensor_at(tensor));
        const bool whole = image.pixels() > 1 && image.pixels() * image.channels == elements;
        if (whole && !known(image)) images.push_back(image);
        const auto producer = std::ranges::find_if(operators(), [&](const Operator& op) {
            return std::ranges::find(op.outputs, tensor) != op.outputs.end();
        });
        if (producer == operators().end() || producer->inputs.empty()) break;
        const Op op = producer->code.builtin;
        if (op != Op::reshape && op != Op::squeeze && op != Op::expand_dims && op != Op::quantize)
            break;
        tensor = producer->inputs[0];
    }
    return images;
}

bool PlainGraph::fits(const StoredForm& form) {
    // layout_of() refuses larger layers as they are.
    constexpr double largest = 0x1p30;
    const bool whole =
        form.channels > 0 && form.in_channels > 0 && form.kernel_h > 0 && form.kernel_w > 0;
    return whole && 4.0 * form.channels * form.kernel_h * form.kernel_w * form.words() <= largest;
}

}  // namespace reef::edgetpu

#include "edgetpu/retarget/other_numbers.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

namespace reef::test {
namespace {

using model::Model;
using model::Op;
using model::Operator;
using model::Tensor;
using model::TensorIndex;

bool has_weights(const Operator& op) {
    return op.code.builtin == Op::conv_2d || op.code.builtin == Op::depthwise_conv_2d ||
           op.code.builtin == Op::fully_connected;
}

bool known(const Operator& op) {
    switch (op.code.builtin) {
        case Op::add:
        case Op::average_pool_2d:
        case Op::concatenation:
        case Op::conv_2d:
        case Op::depthwise_conv_2d:
        case Op::fully_connected:
        case Op::logistic:
        case Op::mul:
        case Op::pad:
        case Op::quantize:
        case Op::reshape:
        case Op::resize_bilinear:
        case Op::softmax:
            return true;
        default:
            return false;
    }
}

/// A bias is in steps of input scale times weight scale.
void scale_bias(model::Subgraph& graph, const Operator& op) {
    if (!has_weights(op) || op.inputs.size() < 3 || op.inputs[2] == model::absent_tensor) return;
    const auto at = [&](std::size_t position) -> Tensor& {
        return graph.tensors[static_cast<std::size_t>(op.inputs[position])];
    };
    if (!at(2).quantization || !at(2).quantization->quantized()) return;
    at(2).quantization->scale = at(1).quantization->scale;
    for (float& scale : at(2).quantization->scale) scale *= at(0).quantization->scale.front();
    at(2).quantization->zero_point.assign(at(2).quantization->scale.size(), 0);
}

class Changer {
  public:
    Changer(const Model& plain, unsigned seed, Change change)
        : model_(plain), change_(change), random_(seed), group_(graph().tensors.size()) {
        std::iota(group_.begin(), group_.end(), std::size_t{0});
    }

    Model run() {
        for (const Operator& op : graph().operators) note(op);
        for (std::size_t i = 0; i < group_.size(); ++i) {
            Tensor& tensor = graph().tensors[i];
            if (!tensor.quantization || !tensor.quantization->quantized()) continue;
            if (biases_.contains(i)) continue;
            if (weights_.contains(i)) {
                change_weights(tensor);
            } else {
                change_activation(tensor, i);
            }
        }
        for (const std::size_t bias : biases_) change_bias(graph().tensors[bias]);
        for (const Operator& op : graph().operators) scale_bias(graph(), op);
        return std::move(model_);
    }

  private:
    model::Subgraph& graph() { return model_.subgraphs.front(); }

    std::size_t root(std::size_t tensor) const {
        while (group_[tensor] != tensor) tensor = group_[tensor];
        return tensor;
    }

    void join(TensorIndex a, TensorIndex b) {
        group_[root(static_cast<std::size_t>(b))] = root(static_cast<std::size_t>(a));
    }

    void note(const Operator& op) {
        if (has_weights(op)) {
            weights_.insert(static_cast<std::size_t>(op.inputs[1]));
            if (op.inputs.size() > 2 && op.inputs[2] != model::absent_tensor) {
                biases_.insert(static_cast<std::size_t>(op.inputs[2]));
            }
        }
        const bool with_number =
            op.code.builtin == Op::mul &&
            graph().tensors[static_cast<std::size_t>(op.inputs[1])].element_count() == 1;
        if (!known(op) || with_number) {
            fixed_.insert(fixed_.end(), op.inputs.begin(), op.inputs.end());
            fixed_.insert(fixed_.end(), op.outputs.begin(), op.outputs.end());
            fixed_.insert(fixed_.end(), op.intermediates.begin(), op.intermediates.end());
            std::erase(fixed_, model::absent_tensor);
        }
        if (op.code.builtin == Op::resize_bilinear) {
            join(op.inputs[0], op.outputs[0]);
            still_.push_back(op.inputs[0]);
        }
        const bool rescales = op.code.builtin == Op::quantize && !renames(op);
        const bool moves = op.code.builtin == Op::reshape ||
                           (op.code.builtin == Op::quantize && !rescales) ||
                           op.code.builtin == Op::pad || op.code.builtin == Op::average_pool_2d;
        if (moves) join(op.inputs[0], op.outputs[0]);
        if (op.code.builtin == Op::concatenation) {
            for (const TensorIndex in : op.inputs) join(op.outputs[0], in);
        }
        if (op.code.builtin == Op::softmax || op.code.builtin == Op::logistic)
            fixed_.push_back(op.outputs[0]);
    }

    bool renames(const Operator& op) {
        const auto scale = [&](TensorIndex index) {
            const auto& quantization =
                graph().tensors[static_cast<std::size_t>(index)].quantization;
            return quantization ? quantization->scale : std::vector<float>{};
        };
        return scale(op.inputs[0]) == scale(op.outputs[0]);
    }

    bool in_group_of(const std::vector<TensorIndex>& list, std::size_t tensor) const {
        return std::ranges::any_of(list, [&](TensorIndex other) {
            return root(static_cast<std::size_t>(other)) == root(tensor);
        });
    }

    float factor(std::mt19937& random) const {
        const float most = change_ == Change::all ? 2.0F : 1.1F;
        return std::uniform_real_distribution<float>(1 / most, most)(random);
    }

    void change_weights(Tensor& tensor) {
        auto& scales = tensor.quantization->scale;
        const bool equal = std::ranges::adjacent_find(scales, std::not_equal_to{}) == scales.end();
        const float all = factor(random_);
        for (float& scale : scales) scale *= equal ? all : factor(random_);
        const bool is_unsigned = tensor.type == ElementType::uint8;
        auto& zero = tensor.quantization->zero_point;
        if (is_unsigned) {
            const auto near = zero.front() + (zero.front() < 128 ? 1 : -1);
            zero = {change_ == Change::all ? static_cast<std::int64_t>(random_() % 256) : near};
        }
        const Bytes old = model_.constant(tensor);
        std::vector<std::byte> bytes(old.begin(), old.end());
        for (std::byte& byte : bytes) {
            const int drawn = static_cast<int>(random_() % 255) - 127;
            const int held = is_unsigned ? std::to_integer<int>(byte)
                                         : static_cast<std::int8_t>(std::to_integer<int>(byte));
            const int near =
                std::clamp(held + drawn % 4, is_unsigned ? 0 : -127, is_unsigned ? 255 : 127);
            const int value = change_ == Change::all ? drawn : near;
            byte = std::byte{static_cast<std::uint8_t>(value)};
        }
        replace(tensor, bytes);
    }

    /// Two tensors of one group get one scale, and one zero point in the chip's unsigned domain.
    void change_activation(Tensor& tensor, std::size_t index) {
        std::mt19937 random(static_cast<unsigned>(root(index)) * 7919U + seed_of_group_);
        const float by = factor(random);
        const auto drawn = static_cast<std::int64_t>(random() % 256);
        if (in_group_of(fixed_, index)) return;
        tensor.quantization->scale.front() *= by;
        if (in_group_of(still_, index)) return;
        const std::int64_t shift = tensor.type == ElementType::int8 ? 128 : 0;
        const auto& points = tensor.quantization->zero_point;
        const std::int64_t old = (points.empty() ? 0 : points.front()) + shift;
        const std::int64_t near = old + (old < 128 ? 1 : -1) * (drawn % 8);
        tensor.quantization->zero_point = {(change_ == Change::all ? drawn : near) - shift};
    }

    void change_bias(Tensor& tensor) {
        const Bytes old = model_.constant(tensor);
        if (std::ranges::all_of(old, [](std::byte b) { return b == std::byte{0}; })) return;
        std::vector<std::int32_t> values(old.size() / 4);
        std::memcpy(values.data(), old.data(), values.size() * 4);
        for (std::int32_t& value : values) {
            const auto drawn = static_cast<std::int32_t>(random_() % 20000) - 9999;
            value = change_ == Change::all
                        ? drawn
                        : static_cast<std::int32_t>(static_cast<float>(value) * factor(random_)) +
                              drawn % 100;
        }
        const auto bytes = std::as_bytes(std::span(values));
        replace(tensor, {bytes.begin(), bytes.end()});
    }

    void replace(Tensor& tensor, const std::vector<std::byte>& bytes) {
        tensor.buffer = static_cast<std::uint32_t>(model_.buffers.size());
        model_.buffers.push_back(SharedBytes::copy_of(bytes));
    }

    Model model_;
    Change change_;
    std::mt19937 random_;
    unsigned seed_of_group_ = static_cast<unsigned>(random_());
    std::vector<std::size_t> group_;
    std::set<std::size_t> weights_, biases_;
    std::vector<TensorIndex> fixed_, still_;
};

}  // namespace

namespace {

/// Tensors of bytes with one scale that operators read or give.
std::vector<std::size_t> scaled_tensors(const model::Subgraph& graph) {
    std::set<std::size_t> found;
    for (const Operator& op : graph.operators)
        for (const auto* list : {&op.inputs, &op.outputs})
            for (const TensorIndex index : *list) {
                if (index == model::absent_tensor) continue;
                const Tensor& tensor = graph.tensors[static_cast<std::size_t>(index)];
                const bool of_bytes =
                    tensor.type == ElementType::int8 || tensor.type == ElementType::uint8;
                if (of_bytes && tensor.quantization && tensor.quantization->scale.size() == 1)
                    found.insert(static_cast<std::size_t>(index));
            }
    return {found.begin(), found.end()};
}

}  // namespace

Model with_other_scales(const Model& plain, unsigned seed, ScaleChange change) {
    Model model = plain;
    model::Subgraph& graph = model.subgraphs.front();
    std::mt19937 random(seed);
    std::vector<std::size_t> tensors = scaled_tensors(graph);
    std::ranges::shuffle(tensors, random);
    const auto scale = [&](std::size_t tensor) -> float& {
        return graph.tensors[tensor].quantization->scale.front();
    };
    if (tensors.empty()) return model;
    const auto other = std::ranges::find_if(
        tensors, [&](std::size_t tensor) { return scale(tensor) != scale(tensors.front()); });
    if (change == ScaleChange::halved || other == tensors.end())
        scale(tensors.front()) /= 2;
    else if (change == ScaleChange::copied)
        scale(tensors.front()) = scale(*other);
    else
        std::swap(scale(tensors.front()), scale(*other));
    for (const Operator& op : graph.operators) scale_bias(graph, op);
    return model;
}

Model with_other_numbers(const Model& plain, unsigned seed, Change change) {
    return Changer(plain, seed, change).run();
}

}  // namespace reef::test

#include "edgetpu/params/other_numbers.h"

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

bool padded(const Operator& op) {
    return std::visit(
        [](const auto& options) {
            if constexpr (requires { options.padding; }) {
                return options.padding == model::Padding::same;
            }
            return false;
        },
        op.options);
}

class Changer {
  public:
    Changer(const Model& plain, unsigned seed)
        : model_(plain), random_(seed), group_(graph().tensors.size()) {
        std::iota(group_.begin(), group_.end(), std::size_t{0});
    }

    Model run() {
        for (const Operator& op : graph().operators) note(op);
        for (std::size_t i = 0; i < group_.size(); ++i) {
            Tensor& tensor = graph().tensors[i];
            if (!tensor.quantization || !tensor.quantization->quantized()) continue;
            if (weights_.contains(i)) {
                change_weights(tensor);
            } else {
                change_activation(tensor, i);
            }
        }
        for (const std::size_t bias : biases_) change_bias(graph().tensors[bias]);
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
        const bool moves = op.code.builtin == Op::reshape || op.code.builtin == Op::quantize ||
                           op.code.builtin == Op::average_pool_2d;
        if (moves) join(op.inputs[0], op.outputs[0]);
        if (op.code.builtin == Op::concatenation) {
            for (const TensorIndex in : op.inputs) join(op.outputs[0], in);
        }
        if (op.code.builtin == Op::softmax) fixed_.push_back(op.outputs[0]);
        if (padded(op)) still_.push_back(op.inputs[0]);
    }

    bool in_group_of(const std::vector<TensorIndex>& list, std::size_t tensor) const {
        return std::ranges::any_of(list, [&](TensorIndex other) {
            return root(static_cast<std::size_t>(other)) == root(tensor);
        });
    }

    static float factor(std::mt19937& random) {
        return std::uniform_real_distribution<float>(0.5F, 2.0F)(random);
    }

    void change_weights(Tensor& tensor) {
        auto& scales = tensor.quantization->scale;
        const bool equal = std::ranges::adjacent_find(scales, std::not_equal_to{}) == scales.end();
        const float all = factor(random_);
        for (float& scale : scales) scale *= equal ? all : factor(random_);
        if (tensor.type == ElementType::uint8) {
            tensor.quantization->zero_point = {static_cast<std::int64_t>(random_() % 256)};
        }
        std::vector<std::byte> bytes(model_.constant(tensor).size());
        for (std::byte& byte : bytes) {
            const int value = static_cast<int>(random_() % 255) - 127;
            byte = std::byte{static_cast<std::uint8_t>(value)};
        }
        replace(tensor, bytes);
    }

    /// Two tensors of one group get one scale, and one zero point in the chip's unsigned domain.
    void change_activation(Tensor& tensor, std::size_t index) {
        std::mt19937 random(static_cast<unsigned>(root(index)) * 7919U + seed_of_group_);
        const float by = factor(random);
        const auto zero = static_cast<std::int64_t>(random() % 256);
        if (in_group_of(fixed_, index)) return;
        tensor.quantization->scale.front() *= by;
        if (in_group_of(still_, index) || relu(index)) return;
        tensor.quantization->zero_point = {zero - (tensor.type == ElementType::int8 ? 128 : 0)};
    }

    /// Made by an operator whose activation cuts off below zero: its zero point stays.
    bool relu(std::size_t index) {
        return std::ranges::any_of(graph().operators, [&](const Operator& op) {
            const auto activation = std::visit(
                [](const auto& options) {
                    if constexpr (requires { options.activation; }) return options.activation;
                    return model::Activation::none;
                },
                op.options);
            return activation != model::Activation::none &&
                   root(static_cast<std::size_t>(op.outputs[0])) == root(index);
        });
    }

    void change_bias(Tensor& tensor) {
        const Bytes old = model_.constant(tensor);
        if (std::ranges::all_of(old, [](std::byte b) { return b == std::byte{0}; })) return;
        std::vector<std::int32_t> values(old.size() / 4);
        for (std::int32_t& value : values)
            value = static_cast<std::int32_t>(random_() % 20000) - 9999;
        const auto bytes = std::as_bytes(std::span(values));
        replace(tensor, {bytes.begin(), bytes.end()});
    }

    void replace(Tensor& tensor, const std::vector<std::byte>& bytes) {
        tensor.buffer = static_cast<std::uint32_t>(model_.buffers.size());
        model_.buffers.push_back(SharedBytes::copy_of(bytes));
    }

    Model model_;
    std::mt19937 random_;
    unsigned seed_of_group_ = static_cast<unsigned>(random_());
    std::vector<std::size_t> group_;
    std::set<std::size_t> weights_, biases_;
    std::vector<TensorIndex> fixed_, still_;
};

}  // namespace

Model with_other_numbers(const Model& plain, unsigned seed) {
    return Changer(plain, seed).run();
}

}  // namespace reef::test

// What a file says twice and otherwise the second time: no kernel of the CPU takes it, and no chip
// computes it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "compiler/graph.h"
#include "random_network.h"
#include "support/cpu_executor.h"

namespace reef::compiler {
namespace {

using model::Model;
using model::Operator;
using model::Tensor;

class Contradiction {
  public:
    explicit Contradiction(unsigned seed) : random_(seed) {}

    /// One thing of the model is another; false where nothing was changed.
    bool make(Model& model) {
        auto& graph = model.subgraphs.front();
        Operator& op = graph.operators[draw(graph.operators.size())];
        switch (draw(4)) {
            case 0:
                return other_options(op);
            case 1:
                return other_numbers(op);
            case 2:
                return other_constant(model, op);
            default:
                return other_shape(graph.tensors[static_cast<std::size_t>(op.outputs[0])]);
        }
    }

  private:
    std::size_t draw(std::size_t end) {
        return std::uniform_int_distribution<std::size_t>(0, end - 1)(random_);
    }

    bool other_options(Operator& op) {
        using model::Activation;
        const std::array<model::Options, 4> others = {
            model::AddOptions{.activation = Activation::relu6},
            model::MulOptions{.activation = Activation::relu},
            model::ReducerOptions{.keep_dims = true}, model::ReshapeOptions{.new_shape = {1, 2}}};
        const auto& other = others[draw(others.size())];
        if (other.index() == op.options.index()) return false;
        op.options = other;
        return true;
    }

    bool other_numbers(Operator& op) {
        if (auto* o = std::get_if<model::ReducerOptions>(&op.options))
            return o->keep_dims = !o->keep_dims, true;
        if (auto* o = std::get_if<model::SplitOptions>(&op.options)) return ++o->num_splits, true;
        if (auto* o = std::get_if<model::SplitVOptions>(&op.options)) return --o->num_splits, true;
        if (auto* o = std::get_if<model::FullyConnectedOptions>(&op.options))
            return o->keep_num_dims = !o->keep_num_dims, true;
        if (auto* o = std::get_if<model::Conv2dOptions>(&op.options)) return ++o->stride_h, true;
        if (auto* o = std::get_if<model::DepthwiseConv2dOptions>(&op.options))
            return ++o->dilation_w, true;
        if (auto* o = std::get_if<model::TransposeConvOptions>(&op.options))
            return ++o->stride_w, true;
        if (auto* o = std::get_if<model::Pool2dOptions>(&op.options)) return ++o->filter_w, true;
        if (auto* o = std::get_if<model::ConcatenationOptions>(&op.options)) return --o->axis, true;
        if (auto* o = std::get_if<model::StridedSliceOptions>(&op.options))
            return o->end_mask ^= 1 << draw(4), true;
        return false;
    }

    bool other_constant(Model& model, Operator& op) {
        const auto index = op.inputs[draw(op.inputs.size())];
        if (index == model::absent_tensor) return false;
        const Tensor& tensor = model.subgraphs.front().tensors[static_cast<std::size_t>(index)];
        const Bytes held = model.constant(tensor);
        if (tensor.type != ElementType::int32 || held.empty() || held.size() > 32) return false;
        std::vector<std::byte> bytes(held.begin(), held.end());
        const std::size_t at = draw(bytes.size() / 4) * 4;
        std::int32_t number = 0;
        std::memcpy(&number, &bytes[at], 4);
        number = std::array{number + 1, number - 1, -1, 0}[draw(4)];
        std::memcpy(&bytes[at], &number, 4);
        model.buffers[tensor.buffer] = SharedBytes::copy_of(bytes);
        return true;
    }

    bool other_shape(Tensor& tensor) {
        auto& shape = tensor.shape;
        switch (draw(4)) {
            case 0:
                std::swap(shape[draw(shape.size())], shape[draw(shape.size())]);
                return true;
            case 1:
                shape[draw(shape.size())] += 1;
                return true;
            case 2:
                if (shape.size() < 2 || shape[0] != 1) return false;
                shape.erase(shape.begin());
                return true;
            default:
                if (shape.size() >= 4) return false;
                shape.insert(shape.begin(), 1);
                return true;
        }
    }

    std::mt19937 random_;
};

bool computes_all(const Graph& graph) {
    return std::ranges::none_of(graph.nodes, [](const Node& node) {
        return std::holds_alternative<Unknown>(node.operation);
    });
}

class Contradictions : public testing::TestWithParam<Model (*)(unsigned)> {};

TEST_P(Contradictions, AreComputedByNoChip) {
    std::size_t found = 0, harmless = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
        const Model model = GetParam()(seed);
        ASSERT_TRUE(computes_all(read_graph(model))) << "seed " << seed;
        for (unsigned change = 0; change < 40; ++change) {
            Model other = model;
            if (!Contradiction(seed * 1000 + change).make(other)) continue;
            const auto plan = graph::Executor::plan(other, test::executor_options({}));
            if (plan || plan.error().cause != Cause::bad_input) {
                ++harmless;
                continue;
            }
            ++found;
            EXPECT_FALSE(computes_all(read_graph(other)))
                << "seed " << seed << ", change " << change << ": " << plan.error().message();
        }
    }
    fmt::print("{} contradictions, {} other changes\n", found, harmless);
    EXPECT_GE(found, 200U);
}

INSTANTIATE_TEST_SUITE_P(
    RandomNetworks, Contradictions,
    testing::Values(test::random_network, test::random_network_of_small_images,
                    test::random_deciding_network),
    [](const auto& one) {
        return std::string(std::array{"of_images", "of_small_images", "that_decide"}[one.index]);
    });

TEST(SparseConstants, AreComputedByNoChip) {
    std::size_t tried = 0;
    for (unsigned seed = 1; seed <= 20; ++seed) {
        Model model = test::random_network(seed);
        auto& graph = model.subgraphs.front();
        for (const Operator& op : graph.operators) {
            if (op.inputs.size() < 2 || op.inputs[1] == model::absent_tensor) continue;
            Tensor& tensor = graph.tensors[static_cast<std::size_t>(op.inputs[1])];
            const Bytes held = model.constant(tensor);
            if (held.size() < 4) continue;
            // Half of the values are left out, as the reader of files allows.
            model.buffers[tensor.buffer] = SharedBytes::copy_of(held.first(held.size() / 2));
            tensor.sparsity.emplace();
            const Graph read = read_graph(model);
            const auto unknown = std::ranges::find_if(read.nodes, [](const Node& node) {
                return std::holds_alternative<Unknown>(node.operation);
            });
            ASSERT_NE(unknown, read.nodes.end()) << "seed " << seed;
            EXPECT_THAT(std::get<Unknown>(unknown->operation).why,
                        testing::HasSubstr("sparse form"));
            ++tried;
            break;
        }
    }
    EXPECT_GE(tried, 10U);
}

}  // namespace
}  // namespace reef::compiler

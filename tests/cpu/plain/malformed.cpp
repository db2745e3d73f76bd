#include "cpu/plain/malformed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "cpu/plain/operator_case.h"
#include "reef/model/tflite.h"

namespace reef::plain {
namespace {

using Change = void (*)(model::Subgraph& graph, model::Operator& op, std::size_t i);

void set_scale(model::Subgraph& graph, model::TensorIndex index, float scale) {
    if (index == model::absent_tensor) return;
    auto& quantization = graph.tensors[static_cast<std::size_t>(index)].quantization;
    if (quantization)
        for (float& each : quantization->scale) each = scale;
}

constexpr float least_scale = std::numeric_limits<float>::denorm_min();
constexpr float most_scale = std::numeric_limits<float>::max();

constexpr Change on_inputs[] = {
    [](auto&, auto& op, auto i) { op.inputs.resize(i); },
    [](auto&, auto& op, auto i) { op.inputs[i] = model::absent_tensor; },
    [](auto&, auto& op, auto i) { op.inputs.push_back(op.inputs[i]); },
    [](auto&, auto& op, auto i) { op.inputs[i] = op.inputs[0]; },
    [](auto& graph, auto& op, auto i) {
        if (op.inputs[i] != model::absent_tensor)
            graph.tensors[static_cast<std::size_t>(op.inputs[i])].quantization = {};
    },
    [](auto& graph, auto& op, auto i) { set_scale(graph, op.inputs[i], least_scale); },
    [](auto& graph, auto& op, auto i) { set_scale(graph, op.inputs[i], most_scale); },
};
constexpr Change on_outputs[] = {
    [](auto& graph, auto& op, auto i) {
        graph.tensors.push_back(graph.tensors[static_cast<std::size_t>(op.outputs[i])]);
        op.outputs.push_back(static_cast<model::TensorIndex>(graph.tensors.size() - 1));
    },
    [](auto& graph, auto& op, auto i) {
        graph.tensors[static_cast<std::size_t>(op.outputs[i])].quantization = {};
    },
    [](auto& graph, auto& op, auto i) { set_scale(graph, op.outputs[i], least_scale); },
    [](auto& graph, auto& op, auto i) { set_scale(graph, op.outputs[i], most_scale); },
};
constexpr Change on_operator[] = {
    [](auto&, auto&, auto) {},
    [](auto&, auto& op, auto) { op.options = {}; },
};

std::vector<model::Model> variants_of(const model::Model& whole) {
    std::vector<model::Model> variants;
    const auto add = [&](std::size_t count, std::span<const Change> changes) {
        for (std::size_t i = 0; i < count; ++i)
            for (const Change change : changes) {
                model::Model changed = whole;
                model::Subgraph& graph = changed.subgraphs[0];
                change(graph, graph.operators[0], i);
                variants.push_back(std::move(changed));
            }
    };
    const model::Operator& op = whole.subgraphs[0].operators[0];
    add(1, on_operator);
    add(op.inputs.size(), on_inputs);
    add(op.outputs.size(), on_outputs);
    return variants;
}

}  // namespace

void each_malformed(
    std::uint64_t seeds,
    const std::function<bool(const model::Model& model, const std::string& name)>& visit) {
    std::vector<NamedMaker> makers = all_makers();
    std::ranges::copy(hybrid_makers(), std::back_inserter(makers));
    for (const NamedMaker& maker : makers)
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            Choices choices(seed);
            const auto whole = model_of(maker.make(choices));
            ASSERT_TRUE(whole) << whole.error().message();
            std::size_t number = 0;
            for (const model::Model& variant : variants_of(*whole)) {
                const std::string name = model::builtin_name(maker.op) + ", seed " +
                                         std::to_string(seed) + ", change " +
                                         std::to_string(number++);
                if (model::validate(variant) && !visit(variant, name)) return;
            }
        }
}

}  // namespace reef::plain

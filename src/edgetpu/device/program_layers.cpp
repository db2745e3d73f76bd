#include "reef/edgetpu/device/program_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reef/edgetpu/device/layer_binding.h"
#include "reef/graph/executor.h"

namespace reef::edgetpu {
namespace {

using TensorBytes = std::function<Bytes(model::TensorIndex)>;

/// The run has changed the state that it began with.
Result<std::vector<std::vector<std::byte>>> inputs_of(const model::Subgraph& graph,
                                                      const TensorBytes& tensor,
                                                      const model::Operator& op,
                                                      const Package& package) {
    const Executable* executable = REEF_TRY(computing_executable(package));
    const auto binding =
        REEF_TRY(LayerBinding::of(executable->inputs, executable->outputs, graph, op));
    std::vector<std::vector<std::byte>> inputs;
    for (const LayerBinding::Place& place : binding.input_places()) {
        const model::TensorIndex index = op.inputs[place.index];
        const Bytes bytes = tensor(index);
        auto& input = inputs.emplace_back(bytes.begin(), bytes.end());
        const auto& of = graph.tensors[static_cast<std::size_t>(index)];
        if (of.is_variable) std::ranges::fill(input, graph::state_at_start(of));
    }
    return inputs;
}

/// Layers of several operators have names of their own.
void set_apart(std::vector<GatheredLayer>& layers, std::size_t op) {
    std::set<std::string> names;
    for (const auto& layer : layers) names.insert(layer.name);
    const auto rename = [&](std::string& name) {
        if (names.contains(name)) name = fmt::format("op{}_{}", op, name);
    };
    for (auto& layer : layers) {
        for (std::string& source : layer.sources) rename(source);
        layer.name = fmt::format("op{}_{}", op, layer.name);
    }
}

}  // namespace

Result<std::vector<GatheredLayer>> program_layers(const model::Subgraph& graph,
                                                  const TensorBytes& tensor) {
    const auto& operators = graph.operators;
    const auto count = std::ranges::count_if(operators, is_compiled);
    if (count == 0)
        return fail(Cause::unsupported, "the model has no operator compiled for the Edge TPU", {},
                    "give the file that the Edge TPU compiler wrote");
    std::vector<GatheredLayer> all;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        if (!is_compiled(operators[i])) continue;
        const std::string place = fmt::format("operator {}", i);
        const auto package = REEF_TRY(in_place(package_of(operators[i]), place));
        const auto inputs =
            REEF_TRY(in_place(inputs_of(graph, tensor, operators[i], package), place));
        const std::vector<Bytes> views(inputs.begin(), inputs.end());
        auto layers = REEF_TRY(in_place(program_layers(package, views), place));
        if (count > 1) set_apart(layers, i);
        std::ranges::move(layers, std::back_inserter(all));
    }
    return all;
}

Result<std::vector<GatheredLayer>> program_layers(const runtime::Session& session) {
    return program_layers(session.graph(),
                          [&](model::TensorIndex index) { return session.tensor(index); });
}

}  // namespace reef::edgetpu

#include "reef/runtime/program_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace reef::runtime {
namespace {

Result<std::vector<Bytes>> inputs_of(const Session& session, const model::Operator& op,
                                     const edgetpu::Package& package) {
    const edgetpu::Executable* executable = REEF_TRY(edgetpu::computing_executable(package));
    std::vector<Bytes> inputs;
    const auto& tensors = session.graph().tensors;
    for (const edgetpu::Layer& layer : executable->inputs) {
        const auto found = std::ranges::find_if(op.inputs, [&](model::TensorIndex index) {
            return index >= 0 && tensors[static_cast<std::size_t>(index)].name == layer.name;
        });
        if (found == op.inputs.end())
            return fail(Cause::bad_input, "none of the operator's tensors has the layer's name",
                        layer.name, "its tensors were renamed after it was compiled");
        if (tensors[static_cast<std::size_t>(*found)].is_variable)
            return fail(Cause::unsupported, "the run has changed the state that it began with",
                        layer.name);
        inputs.push_back(session.tensor(*found));
    }
    return inputs;
}

/// Layers of several operators have names of their own.
void set_apart(std::vector<edgetpu::GatheredLayer>& layers, std::size_t op) {
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

Result<std::vector<edgetpu::GatheredLayer>> program_layers(const Session& session) {
    const auto& operators = session.graph().operators;
    const auto count = std::ranges::count_if(operators, edgetpu::is_compiled);
    if (count == 0)
        return fail(Cause::unsupported, "the model has no operator compiled for the Edge TPU", {},
                    "give the file that the Edge TPU compiler wrote");
    std::vector<edgetpu::GatheredLayer> all;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        if (!edgetpu::is_compiled(operators[i])) continue;
        const std::string place = fmt::format("operator {}", i);
        const auto package = REEF_TRY(in_place(edgetpu::package_of(operators[i]), place));
        const auto inputs = REEF_TRY(in_place(inputs_of(session, operators[i], package), place));
        auto layers = REEF_TRY(in_place(edgetpu::program_layers(package, inputs), place));
        if (count > 1) set_apart(layers, i);
        std::ranges::move(layers, std::back_inserter(all));
    }
    return all;
}

}  // namespace reef::runtime

#include "reef/edgetpu/layer_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "layers.h"

namespace reef::edgetpu {
namespace {

std::string name_of(std::size_t layer) {
    return fmt::format("layer_{:03}", layer);
}

GatheredLayer describe(const trace::Trace& trace, layers::TracedLayer& traced, std::size_t index) {
    GatheredLayer layer;
    layer.name = name_of(index);
    layer.problem = std::move(traced.problem);
    std::map<std::uint32_t, const sim::ProgramInstruction*> instructions;
    for (const std::size_t i : traced.executions) {
        const trace::Execution& execution = trace.executions[i];
        instructions[execution.instruction->number] = execution.instruction;
        layer.tiles = static_cast<std::uint16_t>(layer.tiles | 1U << execution.tile);
    }
    for (const auto& [number, instruction] : instructions)
        layer.instructions.push_back(sim::place_of(*instruction));
    layer.keeps_bytes = trace::keeps_bytes(*trace.executions[traced.executions.front()].op);
    layer.first = instructions.begin()->second->source;
    layer.first_bytes = SharedBytes::copy_of(layer.first.bytes);
    layer.first.bytes = layer.first_bytes.view();
    const auto& inputs = trace.programs.back().executable.inputs;
    for (const std::int32_t source : traced.sources)
        if (source >= 0)
            layer.sources.push_back(name_of(static_cast<std::size_t>(source)));
        else if (static_cast<std::size_t>(-1 - source) < inputs.size())
            layer.sources.push_back(inputs[static_cast<std::size_t>(-1 - source)].name);
    if (!layer.problem.empty()) return layer;
    layer.tensor.type = traced.element_bytes == 1 ? ElementType::uint8 : ElementType::uint16;
    layer.tensor.shape = {traced.height, traced.width, traced.channels};
    layer.tensor.data = std::move(traced.tensor);
    return layer;
}

/// Bytes that are put together anew (a RESHAPE, a TRANSPOSE) lie on no grid, but what reads them
/// may lie on that of where they were: numbers of the instructions that only move them.
std::set<std::uint32_t> moves_without_tensor(const trace::Trace& trace) {
    std::set<std::uint32_t> moves;
    for (const auto& layer : layers::find_layers(trace)) {
        if (layer.problem.empty()) continue;
        for (const std::size_t i : layer.executions)
            if (trace::keeps_bytes(*trace.executions[i].op))
                moves.insert(trace.executions[i].instruction->number);
    }
    return moves;
}

}  // namespace

Result<std::vector<std::vector<GatheredLayer>>> program_layers(
    const Package& package, std::span<const std::vector<Bytes>> pictures) {
    std::vector<std::vector<GatheredLayer>> all;
    if (pictures.empty()) return all;
    auto trace = REEF_TRY(trace::trace_bytes(package, pictures));
    if (const auto moves = moves_without_tensor(trace); !moves.empty())
        trace = REEF_TRY(trace::trace_bytes(package, pictures, moves));
    for (auto& results : trace.results) {
        for (std::size_t i = 0; i < trace.executions.size(); ++i)
            trace.executions[i].results = std::move(results[i]);
        auto traced = layers::find_layers(trace);
        auto& layers = all.emplace_back();
        for (std::size_t i = 0; i < traced.size(); ++i)
            layers.push_back(describe(trace, traced[i], i));
    }
    return all;
}

Result<std::vector<GatheredLayer>> program_layers(const Package& package,
                                                  std::span<const Bytes> inputs) {
    const std::vector<Bytes> picture(inputs.begin(), inputs.end());
    auto all = REEF_TRY(program_layers(package, std::span(&picture, 1)));
    return std::move(all.front());
}

}  // namespace reef::edgetpu

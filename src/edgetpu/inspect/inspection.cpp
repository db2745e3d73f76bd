#include "edgetpu/inspect/inspection.h"

#include <algorithm>
#include <map>

#include "edgetpu/inspect/placement.h"
#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {
namespace {

/// Bytes of the hints' transfers of a region; of the layers where the hints name none, as in
/// programs whose order only the chip knows.
std::int64_t transferred(const Executable& executable, BaseAddress base,
                         const std::vector<Layer>& layers) {
    std::int64_t bytes = 0;
    if (executable.dma_hints) {
        for (const auto& hint : executable.dma_hints->hints) {
            const auto* transfer = std::get_if<DmaDescriptorHint>(&hint.what);
            if (transfer != nullptr && transfer->meta.base == base) bytes += transfer->size_bytes;
        }
    }
    if (bytes > 0) return bytes;
    for (const Layer& layer : layers) {
        bytes += std::int64_t{layer.size_bytes} * layer.executions_per_inference;
    }
    return bytes;
}

}  // namespace

InstructionCounts count_instructions(const Executable& executable) {
    std::map<std::string, std::size_t> counts;
    for (const auto& stream : executable.bitstreams) {
        InstructionCursor cursor(stream.instructions.view());
        while (const auto instruction = cursor.next()) {
            counts[instruction->info == nullptr ? "data" : std::string(instruction->info->name)] +=
                1;
        }
    }
    InstructionCounts sorted(counts.begin(), counts.end());
    std::ranges::stable_sort(sorted, std::greater(), &InstructionCounts::value_type::second);
    return sorted;
}

InferenceTraffic traffic_of(const Package& package) {
    InferenceTraffic traffic;
    for (const Executable& executable : package.executables) {
        if (executable.type == ExecutableType::parameter_caching) continue;
        for (const auto& stream : executable.bitstreams) {
            traffic.instructions += static_cast<std::int64_t>(stream.instructions.size());
        }
        traffic.parameters += static_cast<std::int64_t>(executable.parameters.size());
        traffic.inputs += transferred(executable, BaseAddress::input_activation, executable.inputs);
        traffic.outputs +=
            transferred(executable, BaseAddress::output_activation, executable.outputs);
    }
    return traffic;
}

ModelInspection::ModelInspection(const model::Model& model) : compiled_(packages_of(model)) {
    if (compiled_ && compiled_->empty()) return;
    for (const model::Subgraph& graph : model.subgraphs)
        placements_.push_back(place_operators(model, graph));
}

std::string_view ModelInspection::not_compiled() const {
    return "not compiled for the Edge TPU; reef compile MODEL --target edgetpu compiles what is "
           "quantised to 8 bits";
}

}  // namespace reef::edgetpu

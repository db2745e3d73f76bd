// What `reef inspect` says about the Edge TPU: the compiled parts of a model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "inspect/operator_placement.h"
#include "outputs/console.h"
#include "outputs/json_output.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/parameter_memory.h"
#include "reef/model/cost.h"

namespace reef::tool {

/// Instructions of one executable by name, most frequent first; "data" for words that are none.
using InstructionCounts = std::vector<std::pair<std::string, std::size_t>>;
[[nodiscard]] InstructionCounts count_instructions(const edgetpu::Executable& executable);

/// Bytes that cross between host and chip for one inference, parameters loaded once not counted.
struct InferenceTraffic {
    std::int64_t instructions = 0;
    std::int64_t parameters = 0;
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
};
[[nodiscard]] InferenceTraffic traffic_of(const edgetpu::Package& package);

struct EdgetpuReport {
    /// Empty for a plain model.
    Result<std::vector<edgetpu::CompiledOperator>> compiled;
    /// Per subgraph and operator; empty for a plain model.
    std::vector<std::vector<OperatorPlacement>> placements;

    /// False for a plain model; true as well when the packages cannot be read.
    [[nodiscard]] bool is_compiled() const { return !placements.empty(); }
};
[[nodiscard]] EdgetpuReport report_on_edgetpu(const model::Model& model);

inline constexpr std::string_view not_compiled_text =
    "not compiled for the Edge TPU; edgetpu_compiler makes FILE_edgetpu.tflite from a model that "
    "is "
    "quantised to 8 bits";

/// The operators of a subgraph by where they run and why. `costs` has one entry per operator.
void print_placement(Console& console, const model::Subgraph& graph,
                     const std::vector<OperatorPlacement>& placements,
                     const std::vector<model::Cost>& costs);
/// Parameter memory, traffic and executables of every compiled operator. `all`: every DMA hint.
void print_packages(Console& console, const EdgetpuReport& report, bool all);

/// {"compiled": ..., "operators": [...]}
[[nodiscard]] Json edgetpu_json(const EdgetpuReport& report);

}  // namespace reef::tool

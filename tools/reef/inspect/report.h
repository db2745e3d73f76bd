// What `reef inspect` finds out about a model, before it is printed in one form or another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/chip/compiler.h"
#include "reef/chip/inspector.h"
#include "reef/graph/executor.h"
#include "reef/model/cost.h"
#include "reef/model/graph.h"

namespace reef::tool {

enum class TensorRole : std::uint8_t { input, output, constant, variable, computed, unused };
[[nodiscard]] std::string_view to_string(TensorRole role);

/// One subgraph; vectors are in the order of the graph's own.
struct SubgraphReport {
    std::vector<model::Cost> costs;  ///< per operator
    model::Cost total;
    std::vector<TensorRole> roles;    ///< per tensor
    Result<graph::MemoryReport> cpu;  ///< the plan for the CPU device, or why it cannot run there
};

/// What a chip's inspector says.
struct ChipReport {
    const chip::Inspector* inspector = nullptr;
    std::unique_ptr<chip::Inspection> inspection;
};

/// Which operators of a plain model a chip's compiler takes.
struct MappingReport {
    const chip::Compiler* compiler = nullptr;
    std::vector<chip::CompiledOperator> operators;  ///< of the first subgraph
};

struct ModelReport {
    std::string path;
    std::size_t file_bytes = 0;
    model::Model model;
    std::vector<SubgraphReport> subgraphs;
    std::vector<ChipReport> chips;        ///< of those that are enrolled
    std::vector<MappingReport> mappings;  ///< of a plain model

    /// The chip that operators of the model are compiled for; null for a plain model.
    [[nodiscard]] const ChipReport* compiled_for() const;
};

/// Of a TFLite model. Errors: other kinds of files, with the kinds that are known.
[[nodiscard]] Result<ModelReport> report_on(const std::string& path, const SharedBytes& file);

}  // namespace reef::tool

#include "inspect/report.h"

#include <algorithm>
#include <span>

#include "inputs/file_kinds.h"
#include "reef/chip/file_kind.h"
#include "reef/cpu/placer.h"
#include "reef/model/tflite.h"
#include "reef/runtime/registry.h"

namespace reef::tool {
namespace {

void mark(std::vector<TensorRole>& roles, const std::vector<model::TensorIndex>& indices,
          TensorRole role) {
    for (const model::TensorIndex index : indices) {
        if (index != model::absent_tensor) roles[static_cast<std::size_t>(index)] = role;
    }
}

std::vector<TensorRole> roles_in(const model::Model& model, const model::Subgraph& graph) {
    std::vector<TensorRole> roles(graph.tensors.size(), TensorRole::unused);
    for (const model::Operator& op : graph.operators) {
        mark(roles, op.inputs, TensorRole::computed);
        mark(roles, op.intermediates, TensorRole::computed);
        mark(roles, op.outputs, TensorRole::computed);
    }
    for (std::size_t i = 0; i < roles.size(); ++i) {
        if (graph.tensors[i].is_variable) roles[i] = TensorRole::variable;
        if (!model.constant(graph.tensors[i]).empty()) roles[i] = TensorRole::constant;
    }
    mark(roles, graph.outputs, TensorRole::output);
    mark(roles, graph.inputs, TensorRole::input);
    return roles;
}

Result<graph::MemoryReport> plan_on_cpu(const model::Model& model, std::size_t subgraph) {
    return graph::Executor::plan(
        model,
        {.placers = {runtime::refused_programs(runtime::Registry::of_process()), cpu::placer()},
         .subgraph = subgraph});
}

}  // namespace

std::string_view to_string(TensorRole role) {
    switch (role) {
        case TensorRole::input:
            return "input";
        case TensorRole::output:
            return "output";
        case TensorRole::constant:
            return "constant";
        case TensorRole::variable:
            return "variable";
        case TensorRole::computed:
            return "computed";
        case TensorRole::unused:
            return "unused";
    }
    return "unused";
}

const ChipReport* ModelReport::compiled_for() const {
    const auto found = std::ranges::find_if(
        chips, [](const ChipReport& chip) { return chip.inspection->is_compiled(); });
    return found == chips.end() ? nullptr : &*found;
}

Result<ModelReport> report_on(const std::string& path, const SharedBytes& file) {
    REEF_CHECK(in_place(refuse_unknown_kind<chip::FileInspector>(file.view()), path));
    model::prefetch_tables(file.view());
    model::Model read = REEF_TRY(in_place(model::read_tflite(file), path));
    ModelReport report{path, file.size(), std::move(read), {}, {}, {}};
    for (const auto* inspector : runtime::Registry::of_process().parts<chip::Inspector>())
        report.chips.push_back({inspector, inspector->inspect(report.model)});
    const model::Model& model = report.model;
    if (report.compiled_for() == nullptr)
        for (const auto* compiler : runtime::Registry::of_process().parts<chip::Compiler>())
            if (auto mapping = compiler->mapping(model, {}))
                report.mappings.push_back({compiler, std::move(*mapping)});
    for (std::size_t i = 0; i < model.subgraphs.size(); ++i) {
        const model::Subgraph& graph = model.subgraphs[i];
        auto plan = plan_on_cpu(model, i);
        std::span<const model::TensorIndex> known;
        if (plan) known = plan->known_tensors;
        std::vector<model::Cost> costs;
        for (const model::Operator& op : graph.operators)
            costs.push_back(model::cost_of(model, graph, op, known));
        const model::Cost total = model::cost_of(model, graph, known);
        report.subgraphs.push_back(
            {std::move(costs), total, roles_in(model, graph), std::move(plan)});
    }
    return report;
}

}  // namespace reef::tool

#include "compiler/remainder.h"

#include "reef/model/part.h"

namespace reef::compiler {
namespace {

using model::Model;
using model::Operator;
using model::Subgraph;
using model::TensorIndex;

Operator operator_of(const Program& program, const ProgramOperator& made) {
    Operator op;
    op.code = made.code;
    op.custom_options = made.options;
    for (const auto& port : program.inputs)
        op.inputs.push_back(static_cast<TensorIndex>(port.tensor));
    for (const auto& port : program.outputs)
        op.outputs.push_back(static_cast<TensorIndex>(port.tensor));
    return op;
}

}  // namespace

Model with_programs(const Graph& graph, const Partition& partition,
                    std::span<const ProgramOperator> programs) {
    Model model = *graph.model;
    Subgraph& subgraph = model.subgraphs.front();
    std::vector<Operator> operators;
    for (const auto& item : partition.order) {
        if (item.program)
            operators.push_back(operator_of(partition.programs[item.index], programs[item.index]));
        else
            operators.push_back(subgraph.operators[item.index]);
    }
    subgraph.operators = std::move(operators);
    model::prune(model);
    return model;
}

}  // namespace reef::compiler

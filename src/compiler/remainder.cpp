#include "compiler/remainder.h"

#include <algorithm>
#include <optional>

namespace reef::compiler {
namespace {

using model::Model;
using model::Operator;
using model::Subgraph;
using model::Tensor;
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

/// Tensors that inputs, outputs and operators name, numbered anew in their order.
class TensorPruner {
  public:
    explicit TensorPruner(Subgraph& graph) : graph_(graph), used_(graph.tensors.size(), false) {
        each([this](TensorIndex& i) { used_[static_cast<std::size_t>(i)] = true; });
    }

    /// Gives the new index of each old one.
    std::vector<TensorIndex> run() {
        std::vector<TensorIndex> now(used_.size(), model::absent_tensor);
        std::vector<Tensor> kept;
        for (std::size_t i = 0; i < used_.size(); ++i) {
            if (!used_[i]) continue;
            now[i] = static_cast<TensorIndex>(kept.size());
            kept.push_back(std::move(graph_.tensors[i]));
        }
        graph_.tensors = std::move(kept);
        each([&](TensorIndex& i) { i = now[static_cast<std::size_t>(i)]; });
        return now;
    }

  private:
    template <typename F>
    void each(F&& visit) {
        const auto in = [&](std::vector<TensorIndex>& list) {
            for (TensorIndex& i : list)
                if (i != model::absent_tensor) visit(i);
        };
        in(graph_.inputs);
        in(graph_.outputs);
        for (Operator& op : graph_.operators) {
            in(op.inputs);
            in(op.outputs);
            in(op.intermediates);
        }
    }

    Subgraph& graph_;
    std::vector<bool> used_;
};

void prune_buffers(Model& model) {
    std::vector<bool> used(model.buffers.size(), false);
    const auto each = [&](auto&& visit) {
        for (auto& graph : model.subgraphs)
            for (auto& tensor : graph.tensors) visit(tensor.buffer);
        for (auto& metadata : model.metadata) visit(metadata.buffer);
    };
    each([&](std::uint32_t& b) { used[b] = true; });
    if (used.empty()) return;
    used[0] = true;
    for (const auto b : model.metadata_buffer)
        if (b >= 0) used[static_cast<std::size_t>(b)] = true;
    std::vector<std::uint32_t> now(used.size(), 0);
    std::vector<SharedBytes> kept;
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (!used[i]) continue;
        now[i] = static_cast<std::uint32_t>(kept.size());
        kept.push_back(std::move(model.buffers[i]));
    }
    model.buffers = std::move(kept);
    each([&](std::uint32_t& b) { b = now[b]; });
    for (auto& b : model.metadata_buffer)
        if (b >= 0) b = static_cast<std::int32_t>(now[static_cast<std::size_t>(b)]);
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
    const auto now = TensorPruner(subgraph).run();
    for (auto& signature : model.signatures) {
        if (signature.subgraph != 0) continue;
        std::erase_if(signature.inputs, [&](const auto& t) { return now[t.tensor] < 0; });
        std::erase_if(signature.outputs, [&](const auto& t) { return now[t.tensor] < 0; });
        for (auto* list : {&signature.inputs, &signature.outputs})
            for (auto& t : *list) t.tensor = static_cast<std::uint32_t>(now[t.tensor]);
    }
    prune_buffers(model);
    return model;
}

}  // namespace reef::compiler

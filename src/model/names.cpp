#include "reef/model/names.h"

#include <fmt/format.h>

#include <set>

namespace reef::model {
namespace {

class Namer {
  public:
    explicit Namer(const Subgraph& graph) : graph_(graph), named_(graph.tensors.size(), false) {
        for (const Tensor& tensor : graph.tensors) {
            names_.push_back(tensor.name);
            all_.insert(tensor.name);
        }
    }

    std::vector<std::string> run() {
        std::set<std::string> inputs, outputs;
        for (const TensorIndex i : graph_.inputs) name(i, inputs);
        for (const TensorIndex i : graph_.outputs) name(i, outputs);
        std::set<std::string> others = inputs;
        others.insert(outputs.begin(), outputs.end());
        for (std::size_t i = 0; i < names_.size(); ++i)
            if (graph_.tensors[i].is_variable) name(static_cast<TensorIndex>(i), others);
        for (const Operator& op : graph_.operators)
            for (const TensorIndex i : op.outputs) name(i, others);
        return std::move(names_);
    }

  private:
    void name(TensorIndex index, std::set<std::string>& taken) {
        if (index == absent_tensor) return;
        const auto i = static_cast<std::size_t>(index);
        std::string& held = names_[i];
        const bool was_named = named_[i];
        named_[i] = true;
        const bool is_free = taken.insert(held).second;
        if (was_named || (is_free && !held.empty())) return;
        held = held.empty() ? fmt::format("tensor_{}", i) : fmt::format("{}_{}", held, i);
        while (!all_.insert(held).second) held += '_';
        taken.insert(held);
    }

    const Subgraph& graph_;
    std::vector<bool> named_;
    std::vector<std::string> names_;
    std::set<std::string> all_;
};

}  // namespace

std::vector<std::string> distinct_names(const Subgraph& graph) {
    return Namer(graph).run();
}

std::optional<Model> with_distinct_names(const Model& model) {
    if (model.subgraphs.empty()) return std::nullopt;
    auto names = distinct_names(model.subgraphs.front());
    std::optional<Model> named;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == model.subgraphs.front().tensors[i].name) continue;
        if (!named) named = model;
        named->subgraphs.front().tensors[i].name = std::move(names[i]);
    }
    return named;
}

}  // namespace reef::model

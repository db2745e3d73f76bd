#include "reef/model/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace reef::model {
namespace {

/// Visits every number of a tensor that the subgraph's lists hold, by reference.
template <typename Graph, typename Visit>
void each_tensor(Graph& graph, Visit&& visit) {
    const auto in = [&](auto& list) {
        for (auto& i : list)
            if (i != absent_tensor) visit(i);
    };
    in(graph.inputs);
    in(graph.outputs);
    for (auto& op : graph.operators) {
        in(op.inputs);
        in(op.outputs);
        in(op.intermediates);
    }
}

/// Gives the new index of each old one.
std::vector<TensorIndex> prune_tensors(Subgraph& graph) {
    std::vector<bool> used(graph.tensors.size(), false);
    each_tensor(graph, [&](TensorIndex i) { used[static_cast<std::size_t>(i)] = true; });
    std::vector<TensorIndex> now(used.size(), absent_tensor);
    std::vector<Tensor> kept;
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (!used[i]) continue;
        now[i] = static_cast<TensorIndex>(kept.size());
        kept.push_back(std::move(graph.tensors[i]));
    }
    graph.tensors = std::move(kept);
    each_tensor(graph, [&](TensorIndex& i) { i = now[static_cast<std::size_t>(i)]; });
    return now;
}

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

/// Where a tensor is used: by operators before the range, in it, and behind it.
struct Uses {
    bool written = false, read = false;  ///< in the range
    bool read_behind = false;
    bool outside = false;
};

std::vector<Uses> uses_of(const Subgraph& graph, OperatorRange range) {
    std::vector<Uses> uses(graph.tensors.size());
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const bool inside = o >= range.first && o - range.first < range.count;
        const bool behind = o >= range.first + range.count;
        for (const TensorIndex i : graph.operators[o].inputs) {
            if (i == absent_tensor) continue;
            Uses& use = uses[static_cast<std::size_t>(i)];
            use.read = use.read || inside;
            use.read_behind = use.read_behind || behind;
            use.outside = use.outside || !inside;
        }
        for (const TensorIndex i : graph.operators[o].outputs) {
            if (i == absent_tensor) continue;
            Uses& use = uses[static_cast<std::size_t>(i)];
            use.written = use.written || inside;
            use.outside = use.outside || !inside;
        }
    }
    return uses;
}

}  // namespace

void prune(Model& model) {
    const auto now = prune_tensors(model.subgraphs.front());
    for (auto& signature : model.signatures) {
        if (signature.subgraph != 0) continue;
        for (auto* list : {&signature.inputs, &signature.outputs}) {
            std::erase_if(*list, [&](const auto& t) { return now[t.tensor] < 0; });
            for (auto& t : *list) t.tensor = static_cast<std::uint32_t>(now[t.tensor]);
        }
    }
    prune_buffers(model);
}

Result<Model> part_of(const Model& model, OperatorRange range) {
    if (model.subgraphs.size() != 1)
        return fail(Cause::unsupported, "a model with several subgraphs is not divided");
    const Subgraph& whole = model.subgraphs.front();
    const std::size_t all = whole.operators.size();
    if (range.count == 0 || range.first >= all || range.count > all - range.first)
        return fail(Cause::bad_argument, fmt::format("the model has no operators {} to {}",
                                                     range.first, range.first + range.count));
    const auto uses = uses_of(whole, range);
    Model part = model;
    part.signatures.clear();
    part.metadata.clear();
    part.metadata_buffer.clear();
    Subgraph& graph = part.subgraphs.front();
    const auto begin = whole.operators.begin() + static_cast<std::ptrdiff_t>(range.first);
    graph.operators.assign(begin, begin + static_cast<std::ptrdiff_t>(range.count));
    const auto use_of = [&](TensorIndex i) { return uses[static_cast<std::size_t>(i)]; };
    std::erase_if(graph.inputs, [&](TensorIndex i) { return !use_of(i).read; });
    std::erase_if(graph.outputs, [&](TensorIndex i) { return !use_of(i).written; });
    for (std::size_t t = 0; t < uses.size(); ++t) {
        const Tensor& tensor = whole.tensors[t];
        const auto index = static_cast<TensorIndex>(t);
        const bool used = uses[t].read || uses[t].written;
        if (tensor.is_variable) {
            if (used && uses[t].outside)
                return fail(Cause::unsupported, "operators of two parts use the same state",
                            place_of_tensor(whole, index));
            continue;
        }
        const auto lists = [index](const std::vector<TensorIndex>& list) {
            return std::ranges::find(list, index) != list.end();
        };
        const bool computed = model.constant(tensor).empty() && !uses[t].written;
        if (uses[t].read && computed && !lists(graph.inputs)) graph.inputs.push_back(index);
        if (uses[t].written && uses[t].read_behind && !lists(graph.outputs))
            graph.outputs.push_back(index);
    }
    prune(part);
    return part;
}

}  // namespace reef::model

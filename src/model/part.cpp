#include "reef/model/part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include "reef/model/names.h"

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

std::vector<Uses> uses_of(const Subgraph& graph, const std::vector<std::size_t>& operators) {
    std::vector<Uses> uses(graph.tensors.size());
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const bool inside = std::ranges::binary_search(operators, o);
        const bool behind = o > operators.back();
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

bool holds(const std::vector<TensorIndex>& list, TensorIndex index) {
    return std::ranges::find(list, index) != list.end();
}

Status check_divisible(const Model& model) {
    if (model.subgraphs.size() == 1) return {};
    return fail(Cause::unsupported, "a model with several subgraphs is not divided");
}

Status check_states(const Subgraph& graph, const std::vector<Uses>& uses) {
    for (std::size_t t = 0; t < uses.size(); ++t)
        if (graph.tensors[t].is_variable && uses[t].outside && (uses[t].read || uses[t].written))
            return fail(Cause::unsupported, "operators of two parts use the same state",
                        place_of_tensor(graph, static_cast<TensorIndex>(t)));
    return {};
}

/// Operators that the part's outputs do without, and inputs that they alone read. Those that keep
/// something, or have no results, are for something else.
void leave_out_unread(const Subgraph& graph, PartEnds& ends, std::vector<std::size_t>& operators) {
    std::vector<bool> read(graph.tensors.size(), false);
    const auto is_read = [&](TensorIndex i) {
        return i != absent_tensor && read[static_cast<std::size_t>(i)];
    };
    const auto keeps_something = [&](TensorIndex i) {
        if (i == absent_tensor) return false;
        const Tensor& tensor = graph.tensors[static_cast<std::size_t>(i)];
        return tensor.is_variable || tensor.type == ElementType::resource;
    };
    for (const TensorIndex i : ends.outputs) read[static_cast<std::size_t>(i)] = true;
    std::vector<std::size_t> kept;
    for (const std::size_t o : operators | std::views::reverse) {
        const Operator& op = graph.operators[o];
        if (!op.outputs.empty() && std::ranges::none_of(op.outputs, is_read) &&
            std::ranges::none_of(op.outputs, keeps_something) &&
            std::ranges::none_of(op.inputs, keeps_something))
            continue;
        kept.push_back(o);
        for (const TensorIndex i : op.inputs)
            if (i != absent_tensor) read[static_cast<std::size_t>(i)] = true;
    }
    std::ranges::reverse(kept);
    operators = std::move(kept);
    std::erase_if(ends.inputs, [&](TensorIndex i) { return !is_read(i); });
}

Model only(const Model& model, const std::vector<std::size_t>& operators, PartEnds ends) {
    Model part = model;
    part.signatures.clear();
    part.metadata.clear();
    part.metadata_buffer.clear();
    Subgraph& graph = part.subgraphs.front();
    graph.operators.clear();
    for (const std::size_t o : operators)
        graph.operators.push_back(model.subgraphs.front().operators[o]);
    graph.inputs = std::move(ends.inputs);
    graph.outputs = std::move(ends.outputs);
    return part;
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

namespace {

/// As part_of(), of a model whose names tell its tensors apart.
Result<Part> part_by_names(const Model& model, OperatorRange range) {
    const Subgraph& whole = model.subgraphs.front();
    const std::size_t all = whole.operators.size();
    if (range.count == 0 || range.first >= all || range.count > all - range.first)
        return fail(Cause::bad_argument, fmt::format("the model has no operators {} to {}",
                                                     range.first, range.first + range.count));
    std::vector<std::size_t> operators(range.count);
    std::iota(operators.begin(), operators.end(), range.first);
    const auto uses = uses_of(whole, operators);
    REEF_CHECK(check_states(whole, uses));
    PartEnds ends{whole.inputs, whole.outputs};
    const auto use_of = [&](TensorIndex i) { return uses[static_cast<std::size_t>(i)]; };
    std::erase_if(ends.inputs, [&](TensorIndex i) { return !use_of(i).read; });
    std::erase_if(ends.outputs, [&](TensorIndex i) { return !use_of(i).written; });
    for (std::size_t t = 0; t < uses.size(); ++t) {
        const Tensor& tensor = whole.tensors[t];
        if (tensor.is_variable) continue;
        const auto index = static_cast<TensorIndex>(t);
        const bool computed = model.constant(tensor).empty() && !uses[t].written;
        if (uses[t].read && computed && !holds(ends.inputs, index)) ends.inputs.push_back(index);
        if (uses[t].written && uses[t].read_behind && !holds(ends.outputs, index))
            ends.outputs.push_back(index);
    }
    leave_out_unread(whole, ends, operators);
    Part part{only(model, operators, std::move(ends)), std::move(operators)};
    prune(part.model);
    return part;
}

}  // namespace

// Parts are put together by names.
Result<Part> part_of(const Model& model, OperatorRange range) {
    REEF_CHECK(check_divisible(model));
    const auto named = with_distinct_names(model);
    return part_by_names(named ? *named : model, range);
}

std::optional<PartEnds> ends_in(const Model& whole, const Model& part) {
    if (whole.subgraphs.size() != 1 || part.subgraphs.empty()) return std::nullopt;
    const Subgraph& graph = whole.subgraphs.front();
    const auto names = distinct_names(graph);
    std::map<std::string_view, TensorIndex> by_name;
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        if (!whole.constant(graph.tensors[t]).empty()) continue;
        const auto [known, fresh] = by_name.try_emplace(names[t], static_cast<TensorIndex>(t));
        if (!fresh) known->second = absent_tensor;
    }
    const Subgraph& other = part.subgraphs.front();
    const auto find = [&](const std::vector<TensorIndex>& list) {
        std::vector<TensorIndex> found;
        for (const TensorIndex i : list) {
            const auto at = by_name.find(other.tensors[static_cast<std::size_t>(i)].name);
            found.push_back(at == by_name.end() ? absent_tensor : at->second);
        }
        return found;
    };
    PartEnds ends{find(other.inputs), find(other.outputs)};
    if (holds(ends.inputs, absent_tensor) || holds(ends.outputs, absent_tensor))
        return std::nullopt;
    if (std::ranges::is_permutation(ends.inputs, graph.inputs) &&
        std::ranges::is_permutation(ends.outputs, graph.outputs))
        return std::nullopt;
    return ends;
}

Result<std::vector<std::size_t>> operators_between(const Model& model, const PartEnds& ends) {
    REEF_CHECK(check_divisible(model));
    const Subgraph& graph = model.subgraphs.front();
    std::vector<bool> needed(graph.tensors.size(), false);
    for (const TensorIndex i : ends.outputs) needed[static_cast<std::size_t>(i)] = true;
    for (const TensorIndex i : ends.inputs) needed[static_cast<std::size_t>(i)] = false;
    std::vector<std::size_t> operators;
    std::vector<bool> computed(graph.tensors.size(), false);
    for (std::size_t o = graph.operators.size(); o-- > 0;) {
        const Operator& op = graph.operators[o];
        const auto in_part = [&](TensorIndex i) {
            return i != absent_tensor && needed[static_cast<std::size_t>(i)];
        };
        if (std::ranges::none_of(op.outputs, in_part)) continue;
        operators.push_back(o);
        for (const TensorIndex i : op.outputs)
            if (i != absent_tensor) computed[static_cast<std::size_t>(i)] = true;
        for (const TensorIndex i : op.inputs)
            if (i != absent_tensor && !holds(ends.inputs, i))
                needed[static_cast<std::size_t>(i)] = true;
    }
    for (std::size_t t = 0; t < needed.size(); ++t) {
        const Tensor& tensor = graph.tensors[t];
        if (!needed[t] || computed[t] || tensor.is_variable || !model.constant(tensor).empty())
            continue;
        return fail(Cause::unsupported,
                    "the part's outputs are made from it, too, and it is none "
                    "of the part's inputs",
                    place_of_tensor(graph, static_cast<TensorIndex>(t)));
    }
    if (operators.empty()) return fail(Cause::unsupported, "no operator is the part's");
    for (const TensorIndex i : ends.outputs)
        if (!computed[static_cast<std::size_t>(i)])
            return fail(Cause::unsupported, "the part's operators do not compute it",
                        place_of_tensor(graph, i));
    std::ranges::reverse(operators);
    return operators;
}

Result<Model> part_between(const Model& model, const PartEnds& ends) {
    const auto operators = REEF_TRY(operators_between(model, ends));
    REEF_CHECK(check_states(model.subgraphs.front(), uses_of(model.subgraphs.front(), operators)));
    return only(model, operators, ends);
}

}  // namespace reef::model

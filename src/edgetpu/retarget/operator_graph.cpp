#include "edgetpu/retarget/operator_graph.h"

#include <algorithm>

#include "edgetpu/retarget/tensor_names.h"

namespace reef::edgetpu {

using model::Op;
using model::Operator;
using model::TensorIndex;

bool moves_only(Op op, bool own) {
    switch (op) {
        case Op::depth_to_space:
        case Op::expand_dims:
        case Op::resize_nearest_neighbor:
        case Op::slice:
        case Op::space_to_depth:
        case Op::split:
        case Op::split_v:
        case Op::squeeze:
        case Op::strided_slice:
        case Op::transpose:
            return own;
        case Op::pad:
        case Op::quantize:
        case Op::reshape:
        case Op::resize_bilinear:
            return true;
        default:
            return false;
    }
}

OperatorGraph::OperatorGraph(const CompiledParameters& opened,
                             const std::vector<Requantisation>& roles)
    : opened_(opened), roles_(roles) {
    const auto& graph = opened.plain().subgraphs.front();
    producer_.resize(graph.tensors.size(), graph.operators.size());
    for (std::size_t op = 0; op < graph.operators.size(); ++op) {
        for (const TensorIndex out : graph.operators[op].outputs) {
            if (out != model::absent_tensor) producer_[static_cast<std::size_t>(out)] = op;
        }
    }
    for (std::size_t op = 0; op < graph.operators.size(); ++op) {
        auto& operands = operands_.emplace_back();
        for (const TensorIndex in : graph.operators[op].inputs) {
            if (in == model::absent_tensor) continue;
            const auto& tensor = graph.tensors[static_cast<std::size_t>(in)];
            if (opened.plain().constant(tensor).empty()) operands.push_back(producers_of(in));
        }
        const bool known = std::ranges::find(roles_, op, &Requantisation::op) != roles_.end() ||
                           moves_only(graph.operators[op].code.builtin, opened_.is_own());
        has_unmodelled_ = has_unmodelled_ || (opened.on_chip()[op] && !known);
    }
}

Producers OperatorGraph::producers_of(TensorIndex tensor) const {
    Producers producers;
    std::set<TensorIndex> seen;
    add_producers(tensor, producers, seen);
    return producers;
}

void OperatorGraph::add_producers(TensorIndex tensor, Producers& producers,
                                  std::set<TensorIndex>& seen) const {
    const auto& graph = opened_.plain().subgraphs.front();
    if (tensor == model::absent_tensor || !seen.insert(tensor).second) return;
    if (!opened_.plain().constant(graph.tensors[static_cast<std::size_t>(tensor)]).empty()) return;
    const std::size_t op = producer_[static_cast<std::size_t>(tensor)];
    if (op == graph.operators.size() || !opened_.on_chip()[op]) {
        producers.from_host = true;
        return;
    }
    const auto of_op = [op](const Requantisation& role) { return role.op == op; };
    const bool known = std::ranges::any_of(roles_, of_op);
    if (known) producers.ops.insert(op);
    const bool certain = std::ranges::any_of(
        roles_, [&](const Requantisation& role) { return of_op(role) && role.required(); });
    if (certain) return;
    if (!known && !moves_only(graph.operators[op].code.builtin, opened_.is_own()))
        producers.unmodelled = true;
    for (const TensorIndex in : graph.operators[op].inputs) add_producers(in, producers, seen);
}

Producers OperatorGraph::output(std::string_view layer) const {
    const TensorIndex tensor = TensorNames(opened_).find(layer);
    return tensor == model::absent_tensor ? Producers{} : producers_of(tensor);
}

std::vector<Producers> OperatorGraph::output_by_channels(std::string_view layer) const {
    const auto& graph = opened_.plain().subgraphs.front();
    const TensorIndex tensor = TensorNames(opened_).find(layer);
    if (tensor == model::absent_tensor) return {};
    std::size_t op = producer_[static_cast<std::size_t>(tensor)];
    // Another number or name for the same channels. Operators come behind what they read.
    while (op < graph.operators.size() && graph.operators[op].code.builtin == Op::quantize &&
           !graph.operators[op].inputs.empty()) {
        const auto in = static_cast<std::size_t>(graph.operators[op].inputs[0]);
        if (producer_[in] != graph.operators.size() && producer_[in] >= op) return {};
        op = producer_[in];
    }
    if (op == graph.operators.size()) return {};
    const Operator& last = graph.operators[op];
    const auto* options = std::get_if<model::ConcatenationOptions>(&last.options);
    const auto rank =
        static_cast<std::int64_t>(graph.tensors[static_cast<std::size_t>(tensor)].shape.size());
    if (options == nullptr || (options->axis != -1 && options->axis != rank - 1)) return {};
    std::vector<Producers> all;
    for (const TensorIndex in : last.inputs) {
        const auto& shape = graph.tensors[static_cast<std::size_t>(in)].shape;
        if (shape.empty() || shape.back() % 4 != 0) return {};
        Producers producers = producers_of(in);
        producers.ops.insert(op);
        all.insert(all.end(), static_cast<std::size_t>(shape.back() / 4), producers);
    }
    return all;
}

}  // namespace reef::edgetpu

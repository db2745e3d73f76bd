#include "edgetpu/inspect/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "reef/base/text.h"
#include "reef/edgetpu/operators.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {
namespace {

bool in_8_bits(ElementType type) {
    return type == ElementType::uint8 || type == ElementType::int8;
}

/// A computed input, or an output, of another type than the chip's.
std::optional<std::string> foreign_type(const model::Model& model, const model::Subgraph& graph,
                                        const model::Operator& op) {
    for (const bool output : {false, true}) {
        for (const model::TensorIndex index : output ? op.outputs : op.inputs) {
            if (index == model::absent_tensor) continue;
            const auto& tensor = graph.tensors[static_cast<std::size_t>(index)];
            if (in_8_bits(tensor.type) || !model.constant(tensor).empty()) continue;
            return std::string(output ? "gives " : "takes ") + short_name(tensor.type);
        }
    }
    return std::nullopt;
}

/// What keeps the operator off the chip by itself; nothing when it could be there.
std::optional<std::string> own_reason(const model::Model& model, const model::Subgraph& graph,
                                      const model::Operator& op) {
    if (op.code.builtin == model::Op::custom) return "a custom operator, which is CPU code";
    if (find_operator(op.code.name()) == nullptr) {
        return "the Edge TPU compiler's documentation does not list this operator";
    }
    if (const auto type = foreign_type(model, graph, op)) {
        return *type + "; the chip computes in 8 bits";
    }
    return std::nullopt;
}

std::string limit_reason(const model::Operator& op) {
    const OperatorInfo* known = find_operator(op.code.name());
    if (known->limit.empty()) return "left out by the compiler; the file does not say why";
    return fmt::format(
        "left out by the compiler; the file does not say why. The compiler's "
        "documentation allows it with: {}",
        known->limit);
}

/// For each tensor, the first operator on the CPU that it depends on without the chip in between.
using CpuSources = std::map<model::TensorIndex, std::size_t>;

/// `none` when no input depends on an operator on the CPU.
std::size_t first_source(const CpuSources& sources, const model::Operator& op, std::size_t none) {
    std::size_t first = none;
    for (const model::TensorIndex input : op.inputs) {
        const auto found = sources.find(input);
        if (found != sources.end()) first = std::min(first, found->second);
    }
    return first;
}

std::string cpu_reason(const model::Model& model, const model::Subgraph& graph,
                       const model::Operator& op, std::size_t source) {
    if (const auto reason = own_reason(model, graph, op)) return *reason;
    if (source == graph.operators.size()) return limit_reason(op);
    return fmt::format("comes after operator {} {} on the CPU, where the compiler stops", source,
                       graph.operators[source].code.name());
}

}  // namespace

std::vector<chip::OperatorPlacement> place_operators(const model::Model& model,
                                                     const model::Subgraph& graph) {
    std::vector<chip::OperatorPlacement> placements;
    CpuSources sources;
    const std::size_t none = graph.operators.size();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const model::Operator& op = graph.operators[i];
        if (is_compiled(op)) {
            placements.push_back(
                {true, "compiled into it; the file does not list the operators inside"});
            continue;
        }
        const std::size_t source = first_source(sources, op, none);
        placements.push_back({false, cpu_reason(model, graph, op, source)});
        for (const model::TensorIndex output : op.outputs) {
            sources[output] = source == none ? i : source;
        }
    }
    return placements;
}

}  // namespace reef::edgetpu

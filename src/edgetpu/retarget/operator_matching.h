// Which operator's values each tensor instruction holds, by where its data come from and go to.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "edgetpu/retarget/operator_graph.h"
#include "edgetpu/retarget/program_flow.h"
#include "reef/base/result.h"
#include "reef/edgetpu/requantisation.h"

namespace reef::edgetpu {

/// Whether the instruction may have the role, by its own fields.
using RoleFits = std::function<bool(const Instruction&, const Requantisation&)>;
/// Whether it does not matter which of two roles an instruction has.
using RolesAlike = std::function<bool(std::size_t, std::size_t)>;

struct MatchingRules {
    RoleFits fits;
    RolesAlike alike;
    /// The layers' parts are where CompiledParameters has them: rows tell the operator.
    bool parts_are_placed = false;
};

/// By node of the flow, the index of its role; nothing: a copy, or of an operator whose
/// instructions are not known. Operators read what the graph says, in the program as in the model,
/// and one layer's rows are read by no other. Errors: unsupported, with the instruction, when there
/// is no such assignment or more than one.
[[nodiscard]] Result<std::vector<std::optional<std::size_t>>> match_operators(
    const CompiledParameters& opened, const ProgramFlow& flow, const OperatorGraph& graph,
    const std::vector<Requantisation>& roles, const MatchingRules& rules);

/// Of a sum with the matched role: whether the program takes the operator's second input first.
/// Nothing: both inputs come from the same operators.
[[nodiscard]] std::optional<bool> takes_second_first(
    const ProgramFlow& flow, const OperatorGraph& graph, const std::vector<Requantisation>& roles,
    const std::vector<std::optional<std::size_t>>& matched, std::size_t node);

}  // namespace reef::edgetpu

// Where each operator of a compiled model runs, and why.
#pragma once

#include <string>
#include <vector>

#include "reef/model/graph.h"

namespace reef::tool {

struct OperatorPlacement {
    bool on_chip = false;
    std::string reason;
};

/// One per operator. A compiled file does not say why its compiler left an operator to the CPU; the
/// reason is the first of these that holds: not an operator of the vendor's compiler, not in 8
/// bits, behind another operator on the CPU, a limit of the operator.
[[nodiscard]] std::vector<OperatorPlacement> place_operators(const model::Model& model,
                                                             const model::Subgraph& graph);

}  // namespace reef::tool

// Where each operator of a compiled model runs, and why.
#pragma once

#include "reef/chip/inspector.h"

namespace reef::edgetpu {

/// One per operator. A compiled file does not say why its compiler left an operator to the CPU; the
/// reason is the first of these that holds: not an operator that the vendor's documentation lists,
/// not in 8 bits, behind another operator on the CPU; then the documented limit of the operator is
/// named as what it is.
[[nodiscard]] std::vector<chip::OperatorPlacement> place_operators(const model::Model& model,
                                                                   const model::Subgraph& graph);

}  // namespace reef::edgetpu

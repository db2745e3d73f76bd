// Which operators of a plain model the vendor's compiler would place on the Edge TPU, and what is
// known of how that chip computes them.
#pragma once

#include <string>
#include <vector>

#include "cpu/prepare/arithmetic.h"
#include "reef/model/graph.h"

namespace reef::edgetpu::numerics {

/// What edgetpu::arithmetic() gives: the forms, sorted by operator number, and the reasons.
[[nodiscard]] const cpu::Arithmetic& arithmetic();

/// Per operator of a valid graph: why the compiler leaves it on the CPU, one clause; empty for
/// those that it places on the chip. The chip gets one program, so that nothing which needs the
/// result of an operator on the CPU that itself needs the chip can be part of it. `on_chip`: which
/// operators a compiled model has there, whatever follows on the CPU; empty: it is not known.
[[nodiscard]] std::vector<std::string> reasons_for_cpu(const model::Model& model,
                                                       const model::Subgraph& graph,
                                                       const std::vector<bool>& on_chip = {});

}  // namespace reef::edgetpu::numerics

// Which operators of a plain model the vendor's compiler would place on the Edge TPU, and what is
// known of how that chip computes them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/kernel.h"
#include "reef/model/graph.h"

namespace reef::cpu {

/// An operator whose arithmetic on the chip is known.
struct EdgetpuForm {
    model::Op op = model::Op::custom;
    Prepare prepare = nullptr;
    bool copies = false;        ///< bytes move and nothing is computed
    std::string_view supports;  ///< one sentence: what is known of it, and its limits
};

/// Sorted by operator number.
[[nodiscard]] std::span<const EdgetpuForm> edgetpu_forms();
/// Nothing when the operator's arithmetic on the chip is not known.
[[nodiscard]] const EdgetpuForm* find_edgetpu_form(model::Op op);

/// Per operator of a valid graph: why the compiler leaves it on the CPU, one clause; empty for
/// those that it places on the chip. The chip gets one program, so that nothing which needs the
/// result of an operator on the CPU that itself needs the chip can be part of it.
[[nodiscard]] std::vector<std::string> reasons_for_cpu(const model::Model& model,
                                                       const model::Subgraph& graph);

}  // namespace reef::cpu

// The CPU's kernels: how one is prepared, and the table of them all.
//
// prepare() checks an operator against the kernel's limits (refusals name the limit) and computes
// multipliers and sizes; what a kernel does then is in graph/kernel.h.
#pragma once

#include <span>
#include <string_view>

#include "graph/kernel.h"
#include "reef/cpu/placer.h"
#include "reef/model/graph.h"

namespace reef::cpu {

using graph::Frame;
using graph::Kernel;
using graph::OperatorView;
using graph::PreparedKernel;

struct PrepareOptions {
    KernelSet kernels = KernelSet::fast;
    int threads = 1;
};

using Prepare = PreparedKernel (*)(const OperatorView& op, const PrepareOptions& options);

/// One row of the registry: an operator and the function that prepares it.
struct KernelEntry {
    model::Op op = model::Op::custom;
    std::string_view custom;  ///< custom operator's name, when op is Op::custom
    Prepare prepare = nullptr;
    std::string_view supports;  ///< one sentence for the support matrix: types and limits
};

/// Every kernel, sorted by operator number.
[[nodiscard]] std::span<const KernelEntry> kernel_registry();
/// Nothing when no kernel has that operator code.
[[nodiscard]] const KernelEntry* find_kernel(const model::OperatorCode& code);

}  // namespace reef::cpu

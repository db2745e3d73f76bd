// The CPU's kernels: how one is prepared, and the table of them all.
//
// prepare() checks an operator against the kernel's limits (refusals name the limit) and computes
// multipliers and sizes; what a kernel does then is in graph/kernel.h.
#pragma once

#include <span>
#include <string_view>

#include "graph/kernel.h"
#include "reef/cpu/kernel_set.h"
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

/// How far float32 results lie from the real ones at most. Integer results are TFLite's, byte for
/// byte. Tested for every kernel on random operators.
struct FloatError {
    enum class Unit : std::uint8_t {
        none,     ///< there is no float32 form
        exact,    ///< values are moved, chosen or compared
        rounded,  ///< the real result, rounded once
        ulp,      ///< units in the last place of the result
        /// 2^-24 times the number of terms times the sum of their absolute values.
        terms,
    };
    Unit unit = Unit::none;
    double most = 0;  ///< of `ulp` and `terms`
};

/// One row of the registry: an operator and the function that prepares it.
struct KernelEntry {
    model::Op op = model::Op::custom;
    std::string_view custom;  ///< custom operator's name, when op is Op::custom
    Prepare prepare = nullptr;
    std::string_view supports;  ///< one sentence for the support matrix: types and limits
    FloatError float_error;
};

/// Every kernel, sorted by operator number.
[[nodiscard]] std::span<const KernelEntry> kernel_registry();
/// Nothing when no kernel has that operator code.
[[nodiscard]] const KernelEntry* find_kernel(const model::OperatorCode& code);

}  // namespace reef::cpu

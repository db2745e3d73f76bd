// The CPU's kernels for an executor: bit-exact with TFLite 2.9's builtin kernels, or with a
// machine's own arithmetic.
#pragma once

#include <memory>
#include <vector>

#include "reef/cpu/kernel_set.h"

namespace reef::graph {
class Placer;
}

namespace reef::cpu {

/// How a machine computes quantised operators: kernels that stand in for those that compute as
/// TFLite 2.9's builtin kernels do, so that the machine's tensors can be compared byte by byte. A
/// chip's room gives it. What the machine computes in a way that is not known is refused by name.
struct Arithmetic;

struct KernelOptions {
    KernelSet kernels = KernelSet::fast;
    /// Null: TFLite's. It lives as long as the process.
    const Arithmetic* arithmetic = nullptr;
    /// By operator, whether `arithmetic` computes it and not TFLite's; empty: all that it knows.
    std::vector<bool> in_arithmetic = {};
};

/// Takes every operator that the CPU has a kernel for, and knows why it has none for another. With
/// an arithmetic a placement's reason says why the operator has it, or why TFLite's; else it is
/// empty.
[[nodiscard]] std::shared_ptr<graph::Placer> placer(const KernelOptions& options = {});

}  // namespace reef::cpu

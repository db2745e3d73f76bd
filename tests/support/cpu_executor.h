// Models whose every operator runs on the CPU.
#pragma once

#include "reef/base/result.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef/model/graph.h"

namespace reef::test {

struct CpuOptions {
    cpu::KernelSet kernels = cpu::KernelSet::fast;
    const cpu::Arithmetic* arithmetic = nullptr;
    int threads = 1;
    bool keep_all_tensors = false;
    std::size_t subgraph = 0;
    std::vector<bool> in_arithmetic{};  ///< by operator; empty: all
};

[[nodiscard]] graph::ExecutorOptions executor_options(const CpuOptions& options);
[[nodiscard]] Result<graph::Executor> on_cpu(const model::Model& model,
                                             const CpuOptions& options = {});

}  // namespace reef::test

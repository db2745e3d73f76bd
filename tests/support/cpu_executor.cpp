#include "support/cpu_executor.h"

#include "reef/runtime/registry.h"

namespace reef::test {

graph::ExecutorOptions executor_options(const CpuOptions& options) {
    return {.placers = {runtime::refused_programs(runtime::Registry::of_process()),
                        cpu::placer({.kernels = options.kernels,
                                     .arithmetic = options.arithmetic,
                                     .in_arithmetic = options.in_arithmetic})},
            .threads = options.threads,
            .keep_all_tensors = options.keep_all_tensors,
            .subgraph = options.subgraph};
}

Result<graph::Executor> on_cpu(const model::Model& model, const CpuOptions& options) {
    return graph::Executor::create(model, executor_options(options));
}

}  // namespace reef::test

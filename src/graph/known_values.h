// What a run will compute is sometimes known before it: shapes, and what small operators make of
// them and of constants. Kernels that need a shape or a size to be prepared may ask for it.
#pragma once

#include "graph/kernel.h"

namespace reef::graph {

/// Whether the operator's outputs follow from constants, known values and shapes: small integers
/// and float32 numbers of a builtin operator.
[[nodiscard]] bool is_known_before(const OperatorView& op);

/// Runs a kernel of such an operator, which is used for nothing else, and adds its outputs. One
/// that fails here fails in the run, too, and adds nothing.
void add_known(const OperatorView& op, Kernel& kernel, WorkerPool& pool, KnownValues& known);

}  // namespace reef::graph

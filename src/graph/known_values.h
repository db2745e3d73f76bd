// What a run will compute is sometimes known before it: shapes, what operators make of them, and
// constants in another form (weights that a file stores as float16 and dequantises). Kernels that
// need a shape, a size or constant weights to be prepared may ask for it.
#pragma once

#include "graph/kernel.h"

namespace reef::graph {

/// Whether the outputs of a builtin operator follow from constants, known values and shapes, and
/// are small or at most four times its constants' bytes, as float32 is of bytes.
[[nodiscard]] bool is_known_before(const OperatorView& op);

/// Runs a kernel of such an operator, which is used for nothing else, and adds its outputs, aligned
/// as a Frame's are. One that fails here fails in the run, too, and adds nothing.
void add_known(const OperatorView& op, Kernel& kernel, WorkerPool& pool, KnownValues& known);

}  // namespace reef::graph

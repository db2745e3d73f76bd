// One random input, the same for all sides.
#pragma once

#include "reef/graph/executor.h"

namespace reef::peers {

/// Bytes of every value; float32 between -1 and 1.
void fill(graph::Executor& executor);

}  // namespace reef::peers

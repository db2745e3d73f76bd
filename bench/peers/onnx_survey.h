// Counts the nodes of an ONNX file.
#pragma once

#include "peers/node_program.h"
#include "reef/base/bytes.h"

namespace reef::peers {

/// Errors: bad_input for bytes that are no ONNX file.
[[nodiscard]] Result<OptimisedGraph> survey(Bytes file);

}  // namespace reef::peers

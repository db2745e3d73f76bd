// The tensors inside the compiled operators of a session that has run.
#pragma once

#include <functional>
#include <vector>

#include "reef/base/result.h"
#include "reef/edgetpu/layer_dump.h"
#include "reef/runtime/session.h"

namespace reef::edgetpu {

/// Of all compiled operators of a graph that has run once, which run again on simulated chips of
/// their own, with the inputs that its tensors hold at the end and the state of the start. With
/// several compiled operators, the layers' names begin with the operator's: "op3_layer_000".
/// Errors: those of program_layers() of a package; unsupported without a compiled operator.
[[nodiscard]] Result<std::vector<GatheredLayer>> program_layers(
    const model::Subgraph& graph, const std::function<Bytes(model::TensorIndex)>& tensor);

/// Precondition: the session keeps all tensors and has run once.
[[nodiscard]] Result<std::vector<GatheredLayer>> program_layers(const runtime::Session& session);

}  // namespace reef::edgetpu

// The plain model on the CPU, each operator given what a chip's operators before it gave.
#pragma once

#include <vector>

#include "compare/layer_dump.h"
#include "inputs/model_session.h"

namespace reef::tool {

/// What the CPU computed; by tensor of the first subgraph, empty for those that nobody computes.
using ComputedTensors = std::vector<std::vector<std::byte>>;

/// Operators one by one in TFLite's arithmetic. Values of the dump's layers that are tensors of the
/// model take the place of the CPU's where later operators read them. Errors: those of sessions.
[[nodiscard]] Result<ComputedTensors> run_fed_operators(const model::Model& plain,
                                                        const InputBytes& inputs,
                                                        const LayerDump& dump);

}  // namespace reef::tool

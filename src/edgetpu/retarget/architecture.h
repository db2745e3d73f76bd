// Whether two plain models are one network with other numbers.
#pragma once

#include <map>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

/// Tensors of the first subgraphs that stand for each other.
using TensorMap = std::map<model::TensorIndex, model::TensorIndex>;

/// Refuses, with the operator, other operators, options, shapes, types, connections, quantisation
/// per channel where the other has it per tensor, and other int32 constants than biases.
[[nodiscard]] Result<TensorMap> match_architectures(const model::Model& source,
                                                    const model::Model& target);

}  // namespace reef::edgetpu

// Models made of a part of another's operators.
#pragma once

#include <cstddef>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::model {

/// Operators of a model's first subgraph that follow one another.
struct OperatorRange {
    std::size_t first = 0;
    std::size_t count = 0;
    friend bool operator==(const OperatorRange&, const OperatorRange&) = default;
};

/// A model of these operators alone. Its inputs are the tensors that they read and do not compute,
/// the model's own first; its outputs those that operators behind them read and the model's own, by
/// the names that they have in the model. Constants are shared with it, signatures and metadata,
/// which speak of the whole, are left out. Errors: bad_argument where the range is not in the
/// model; unsupported for several subgraphs, and where operators outside the range use the same
/// state.
[[nodiscard]] Result<Model> part_of(const Model& model, OperatorRange range);

/// Takes out tensors of the first subgraph that no input, output and operator names, entries of
/// signatures that name them, and buffers of no tensor; what is left keeps its order.
void prune(Model& model);

}  // namespace reef::model

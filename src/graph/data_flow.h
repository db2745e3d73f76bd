// Who writes each tensor of a subgraph, and how long its bytes are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::graph {

enum class Storage : std::uint8_t {
    none,      ///< no operator touches it
    constant,  ///< the model's bytes
    variable,  ///< state kept between runs
    arena,     ///< a graph input, or written by an operator
    known,     ///< written by an operator, once, before the first run
};

struct TensorUse {
    Storage storage = Storage::none;
    std::size_t bytes = 0;
    std::size_t first = 0;  ///< operator index
    std::size_t last = 0;   ///< inclusive
};

/// One entry per tensor. A graph input is needed from the first operator to the last: who wrote it
/// may count on it in the next run. Errors: bad_input for a tensor that is read but never written,
/// read before it is written, written twice, or written though it is a constant, an input or state;
/// unsupported for types without a fixed element size, state with initial values and constant graph
/// inputs.
[[nodiscard]] Result<std::vector<TensorUse>> trace_tensors(const model::Model& model,
                                                           const model::Subgraph& graph);

}  // namespace reef::graph

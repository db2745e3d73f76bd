// Models made of a part of another's operators.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::model {

/// Operators of a model's first subgraph that follow one another.
struct OperatorRange {
    std::size_t first = 0;
    std::size_t count = 0;
    friend bool operator==(const OperatorRange&, const OperatorRange&) = default;
};

struct Part {
    Model model;
    std::vector<std::size_t> operators;  ///< of the whole's first subgraph, in the part's order
};

/// A model of these operators alone, but for those whose results nobody reads, which may be all.
/// Its inputs are the tensors that they read and do not compute, the model's own first; its outputs
/// those that operators behind them read and the model's own, by the names that they have in the
/// model, or by distinct_names() of it. Constants are shared with it, signatures and metadata,
/// which speak of the whole, are left out. Errors: bad_argument where the range is not in the
/// model; unsupported for several subgraphs, and where operators outside the range use the same
/// state.
[[nodiscard]] Result<Part> part_of(const Model& model, OperatorRange range);

/// Where a part begins and ends: tensors of a model's first subgraph, in the part's order.
struct PartEnds {
    std::vector<TensorIndex> inputs, outputs;
    friend bool operator==(const PartEnds&, const PartEnds&) = default;
};

/// A model's tensors by the names of the inputs and outputs of another, which is a part of it: a
/// segment of a pipeline, plain or compiled. Nothing where they are the model's own inputs and
/// outputs, and where a name is that of no tensor or of several.
[[nodiscard]] std::optional<PartEnds> ends_in(const Model& whole, const Model& part);

/// Operators that compute a part's outputs from its inputs, in the model's order. Errors:
/// unsupported for several subgraphs, where they read more than these inputs, and where they do not
/// compute one of the outputs.
[[nodiscard]] Result<std::vector<std::size_t>> operators_between(const Model& model,
                                                                 const PartEnds& ends);

/// A model of these operators with these inputs and outputs. Its tensors are all of the model's, by
/// their numbers there. Errors: those of operators_between(); unsupported where other operators use
/// the same state.
[[nodiscard]] Result<Model> part_between(const Model& model, const PartEnds& ends);

/// Takes out tensors of the first subgraph that no input, output and operator names, entries of
/// signatures that name them, and buffers of no tensor; what is left keeps its order.
void prune(Model& model);

}  // namespace reef::model

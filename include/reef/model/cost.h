// What an operator and a graph cost, from shapes alone.
#pragma once

#include <cstdint>
#include <span>

#include "reef/model/graph.h"

namespace reef::model {

struct Cost {
    std::int64_t macs = 0;              ///< multiply-accumulates; 0 for operators without any
    std::int64_t weight_bytes = 0;      ///< constant inputs
    std::int64_t activation_bytes = 0;  ///< inputs and outputs that a run reads and writes
    friend bool operator==(const Cost&, const Cost&) = default;
};

/// MACs are counted for CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED and
/// UNIDIRECTIONAL_SEQUENCE_LSTM, padding included, as the vendors' tools do. `known`, in rising
/// order: tensors that are computed before the first run, which are neither activations nor
/// constants of the file.
[[nodiscard]] Cost cost_of(const Model& model, const Subgraph& subgraph, const Operator& op,
                           std::span<const TensorIndex> known = {});
[[nodiscard]] Cost cost_of(const Model& model, const Subgraph& subgraph,
                           std::span<const TensorIndex> known = {});

}  // namespace reef::model

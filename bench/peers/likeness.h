// How alike the outputs of two libraries are on one input.
#pragma once

#include <optional>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/graph/executor.h"

namespace reef::peers {

struct Likeness {
    /// Share of equal values; nothing where no output is compared.
    std::optional<double> equal{};
    double farthest = 0;  ///< quantisation steps; of indices the share alone counts
    double mean = 0;      ///< the same, of all values that have steps
};

/// Outputs are compared that are 8-bit, indices, or what a DEQUANTIZE gives: their steps are those
/// of its input. Precondition: as many bytes as our outputs have.
[[nodiscard]] Likeness likeness(const graph::Executor& ours, const std::vector<Bytes>& theirs);
[[nodiscard]] std::vector<Bytes> outputs_of(const graph::Executor& executor);

}  // namespace reef::peers

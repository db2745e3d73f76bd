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
    /// The farthest of float32 outputs that have no steps, by the largest value of each.
    std::optional<double> relative{};
};

/// How far that may be, of what sums the same products of float32 in another order. Rounding of a
/// last bit is 6e-8; some dozens of layers pass it on.
constexpr double most_relative = 1e-4;

/// Outputs are compared that are 8-bit, indices, float32, or what a DEQUANTIZE gives: their steps
/// are those of its input. Precondition: as many bytes as our outputs have.
[[nodiscard]] Likeness likeness(const graph::Executor& ours, const std::vector<Bytes>& theirs);
[[nodiscard]] std::vector<Bytes> outputs_of(const graph::Executor& executor);

}  // namespace reef::peers

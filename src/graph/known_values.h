// What a run will compute is sometimes known before it: shapes, what operators make of them, and
// constants in another form (weights that a file stores as float16 and dequantises). Kernels that
// need a shape, a size or constant weights to be prepared may ask for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "graph/kernel.h"

namespace reef::graph {

/// What is known of a graph. Outputs of an operator that have at most 256 bytes are small. All
/// others together take at most eight times the bytes of the graph's constants, which is bytes as
/// float32 and these in another order, and at most arena_limit: what would go beyond stays with the
/// runs.
class KnownBefore {
  public:
    /// Large values take time and memory, and a memory plan needs only their sizes; but those of
    /// bytes, which may be weights, decide how a kernel multiplies them, and what it needs for
    /// that.
    enum class Large : std::uint8_t { computed, when_needed };
    KnownBefore(const model::Model& model, const model::Subgraph& graph, Large large);

    [[nodiscard]] KnownValues& values() { return values_; }
    /// Whether the outputs of a builtin operator follow from constants, known values and shapes,
    /// and are small, or at most four times the bytes that it reads and within what is left of all.
    [[nodiscard]] bool includes(const OperatorView& op) const;
    /// Operators whose values must be added (again) before those of `op`, in this order: zeros
    /// stand for their outputs, and what `op` gives is small, or bytes, and may be asked for.
    [[nodiscard]] std::vector<std::size_t> needed_by(const OperatorView& op);
    /// Runs a kernel of such an operator, which is used for nothing else, and adds its outputs,
    /// aligned as a Frame's are; with Large::when_needed zeros for those that are large and no
    /// bytes, unless `needed`. One that fails here fails in the run, too, and adds nothing.
    void add(const OperatorView& op, Kernel& kernel, WorkerPool& pool, bool needed = false);

  private:
    KnownValues values_;
    Large large_;
    std::size_t room_;                    ///< bytes that more large values may have
    std::vector<std::size_t> postponed_;  ///< operators for whose outputs zeros stand
    std::set<model::TensorIndex> zeros_;  ///< these outputs
};

}  // namespace reef::graph

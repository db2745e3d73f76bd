// Who runs an operator: the executor asks its placers in order, and the first that takes the
// operator makes its kernel. The CPU's kernels are one placer, a device is another.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "graph/kernel.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::graph {

/// An operator that a placer took, or nothing.
struct Placed {
    std::unique_ptr<Kernel> kernel;  ///< null: the operator is not for this placer
    std::string name;                ///< of the kernel, for placements
    std::string reason;  ///< why it runs there, one clause; empty when there is no choice
};

/// Serves one create() or plan() at a time.
class Placer {
  public:
    virtual ~Placer() = default;

    /// Fills in shapes of custom operators' outputs that the file leaves open. Called before the
    /// data flow is known.
    [[nodiscard]] virtual Status complete_shapes(model::Subgraph& /*graph*/) const { return {}; }
    /// Called once for a graph whose data flow is sound, before its operators come in their order.
    /// `threads`: how many the pool in the kernels' frames has.
    [[nodiscard]] virtual Status begin(const model::Model& /*model*/,
                                       const model::Subgraph& /*graph*/, int /*threads*/) {
        return {};
    }
    /// Errors, for an operator that is this placer's: unsupported and bad_input, without place.
    [[nodiscard]] virtual Result<Placed> place(const OperatorView& op) = 0;
    /// Whether it may take operators of that kind. What an error says of the rest of a network
    /// rests on it, nothing else.
    [[nodiscard]] virtual bool has(const OperatorView& /*op*/) const { return true; }
    /// Whether its kernels run at any time, before the graph is complete, too: what they make of
    /// known values is known then.
    [[nodiscard]] virtual bool runs_at_any_time() const { return false; }
    /// Why nobody runs the operator, from a placer that knows it. Asked in the same order, after
    /// all of them let the operator pass.
    [[nodiscard]] virtual std::optional<Error> refusal(const OperatorView& /*op*/) const {
        return std::nullopt;
    }
};

}  // namespace reef::graph

// An operator that a device runs: it sees tensors as bytes.
#pragma once

#include <span>
#include <string>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::graph {

class DeviceOperator {
  public:
    virtual ~DeviceOperator() = default;
    /// What runs it there, for placements.
    [[nodiscard]] virtual std::string kernel() const = 0;
    /// Tensors in the operator's order, with the sizes that the graph declares; variable inputs
    /// (state) may be written. Called from the thread that calls Executor::run().
    [[nodiscard]] virtual Status run(std::span<const MutableBytes> inputs,
                                     std::span<const MutableBytes> outputs) = 0;
};

}  // namespace reef::graph

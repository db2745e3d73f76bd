// An operator that a device runs: its kernel sees tensors as bytes.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "graph/kernel.h"
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

/// Hands an operator's tensors to its device.
[[nodiscard]] std::unique_ptr<Kernel> device_kernel(std::unique_ptr<DeviceOperator> on_device,
                                                    const OperatorView& op);

}  // namespace reef::graph

// Compiled operators on an Edge TPU.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/device_operator.h"
#include "graph/placer.h"
#include "reef/edgetpu/simulator.h"
#include "reef/runtime/session.h"

namespace reef::runtime {

/// Gives every compiled operator of a graph to one chip.
class EdgeTpuOperators : public graph::Placer {
  public:
    /// What the compiled operators did since forget_findings(), in strict runs.
    [[nodiscard]] virtual std::span<const edgetpu::Finding> findings() const { return {}; }
    virtual void forget_findings() {}
    /// Of the chip, once there is one.
    [[nodiscard]] virtual std::optional<edgetpu::usb::DeviceCounters> counters() const {
        return std::nullopt;
    }
};

/// A compiled operator's place.
[[nodiscard]] graph::Placed placed(std::unique_ptr<graph::DeviceOperator> on_device,
                                   const graph::OperatorView& op);

/// On a stick or a simulated one, through the driver; it is opened when the first compiled operator
/// comes.
[[nodiscard]] std::shared_ptr<EdgeTpuOperators> driven_operators(const DeviceUri& device,
                                                                 const SessionOptions& options);

/// On a simulated chip that watches what the programs do. There is no USB in between: which
/// accesses are findings depends on what the package declares, and a chip behind USB sees only
/// bytes.
[[nodiscard]] std::shared_ptr<EdgeTpuOperators> watched_operators(
    const edgetpu::SimulatorOptions& options);

}  // namespace reef::runtime

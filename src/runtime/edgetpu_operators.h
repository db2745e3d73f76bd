// Compiled operators on a simulated Edge TPU.
#pragma once

#include <memory>

#include "reef/cpu/executor.h"
#include "reef/edgetpu/simulator.h"

namespace reef::runtime {

/// Gives every compiled operator of a graph to one simulated chip.
class SimulatedOperators final : public cpu::DeviceOperators {
  public:
    explicit SimulatedOperators(const edgetpu::SimulatorOptions& options)
        : chip_(std::make_shared<edgetpu::Simulator>(options)) {}

    [[nodiscard]] Result<std::unique_ptr<cpu::DeviceOperator>> prepare(
        const model::Subgraph& graph, const model::Operator& op) override;

  private:
    std::shared_ptr<edgetpu::Simulator> chip_;
};

}  // namespace reef::runtime

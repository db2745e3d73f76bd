// Compiled operators on a simulated Edge TPU.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "reef/cpu/executor.h"
#include "reef/edgetpu/simulator.h"

namespace reef::runtime {

/// Gives every compiled operator of a graph to one simulated chip.
class SimulatedOperators final : public cpu::DeviceOperators {
  public:
    explicit SimulatedOperators(const edgetpu::SimulatorOptions& options)
        : chip_(std::make_shared<Chip>(options)) {}

    [[nodiscard]] Result<std::unique_ptr<cpu::DeviceOperator>> prepare(
        const model::Subgraph& graph, const model::Operator& op) override;

    /// What the compiled operators did since forget_findings(), in strict runs.
    [[nodiscard]] std::span<const edgetpu::Finding> findings() const { return chip_->findings; }
    void forget_findings() { chip_->findings.clear(); }

    /// The chip, and what its programs' runs left behind.
    struct Chip {
        explicit Chip(const edgetpu::SimulatorOptions& options) : simulator(options) {}
        edgetpu::Simulator simulator;
        std::vector<edgetpu::Finding> findings;
    };

  private:
    std::shared_ptr<Chip> chip_;
};

}  // namespace reef::runtime

// The driver of the family rk3588.
#pragma once

#include "reef/runtime/driver.h"

namespace reef::rk3588 {

class Driver final : public runtime::Driver {
  public:
    Driver();
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] std::string_view sentence() const override {
        return "the NPU of Rockchip's RK3588";
    }
    [[nodiscard]] std::span<const runtime::BackendInfo> backends() const override {
        return backends_;
    }
    [[nodiscard]] std::span<const runtime::OptionInfo> options() const override { return options_; }
    [[nodiscard]] const runtime::PlacementWords& words() const override { return words_; }
    [[nodiscard]] runtime::Enumeration enumerate() const override;
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override;
    [[nodiscard]] Result<std::shared_ptr<const runtime::Program>> prepare(
        const runtime::DeviceUri& device, const runtime::OptionValues& options,
        const model::Subgraph& graph, const model::Operator& op) const override;
    [[nodiscard]] Result<std::shared_ptr<runtime::Device>> open(
        const runtime::DeviceUri& device, const runtime::OptionValues& options,
        int threads) const override;
    /// Simulated kernels are each session's own.
    [[nodiscard]] bool shares(const runtime::DeviceUri& device,
                              const runtime::OptionValues& options) const override;

  private:
    std::vector<runtime::BackendInfo> backends_;
    std::vector<runtime::OptionInfo> options_;
    runtime::PlacementWords words_;
};

}  // namespace reef::rk3588

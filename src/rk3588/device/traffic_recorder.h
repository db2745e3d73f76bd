// Recordings of what a kernel's driver is asked and answers, as a part of the chip.
#pragma once

#include "reef/chip/traffic.h"

namespace reef::rk3588 {

class TrafficRecorder final : public chip::TrafficRecorder {
  public:
    [[nodiscard]] std::string_view family() const override { return "rk3588"; }
    [[nodiscard]] std::string_view device() const override {
        return "rk3588:rknpu?kernel=simulated";
    }
    [[nodiscard]] Result<chip::RecordedRuns> record(const std::string& device,
                                                    const chip::TrafficRuns& runs) const override;
    [[nodiscard]] Result<std::unique_ptr<chip::Traffic>> read(
        const std::string& path) const override;
};

}  // namespace reef::rk3588

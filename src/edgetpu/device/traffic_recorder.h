// Recordings of USB traffic, as a part of the chip.
#pragma once

#include "reef/chip/traffic.h"

namespace reef::edgetpu {

class TrafficRecorder final : public chip::TrafficRecorder {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] std::string_view device() const override { return "edgetpu:usb"; }
    [[nodiscard]] Result<chip::RecordedRuns> record(const std::string& device,
                                                    const chip::TrafficRuns& runs) const override;
    [[nodiscard]] Result<std::unique_ptr<chip::Traffic>> read(
        const std::string& path) const override;
};

}  // namespace reef::edgetpu

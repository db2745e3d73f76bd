// How the driver finds a stick and opens it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "edgetpu/usb/link.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/transport.h"

namespace reef::edgetpu::usb {

/// A stick on its way from power-on to an open, claimed chip.
class Opening {
  public:
    /// `port`: where the stick is looked for; empty: the first there is, whose port it becomes.
    Opening(Bus& bus, const DeviceOptions& options, std::string& port)
        : bus_(bus), options_(options), port_(port) {}

    /// `patience`: how long a stick may take to appear. Errors: device_missing, device_denied,
    /// device_failed; not_found for the firmware.
    [[nodiscard]] Result<std::unique_ptr<Connection>> run(Milliseconds patience);
    /// A stick was there, whatever became of it.
    [[nodiscard]] bool seen() const { return seen_; }

  private:
    [[nodiscard]] Status find(Milliseconds patience);
    void wait_for_change(TimePoint end);
    /// A device that has just re-enumerated may refuse for a moment.
    [[nodiscard]] Status open();
    Link link() { return {bus_, *connection_, options_.start_deadline}; }

    [[nodiscard]] Status check_descriptor();
    /// A bus reset, after which the device is found again at its port.
    [[nodiscard]] Status reset();
    [[nodiscard]] Status load_firmware();
    [[nodiscard]] Status load_any_firmware();

    Bus& bus_;
    const DeviceOptions& options_;
    std::string& port_;
    std::uint64_t changes_ = 0;  ///< of the bus, before it was listed last
    bool seen_ = false;
    DeviceInfo device_;
    std::unique_ptr<Connection> connection_;
};

}  // namespace reef::edgetpu::usb

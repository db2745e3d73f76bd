// An Edge TPU that is open: a stick on the system's USB, or a simulated one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/runtime/session.h"

namespace reef::runtime {

class Chip {
  public:
    /// Errors: those of usb::Device::open and usb::libusb_bus.
    [[nodiscard]] static Result<std::shared_ptr<Chip>> open(const DeviceUri& uri,
                                                            const SessionOptions& options);

    /// As usb::Device::run(); why a simulated chip stopped is part of the error.
    [[nodiscard]] Status run(const std::shared_ptr<const edgetpu::usb::Program>& program,
                             std::span<const Bytes> inputs, std::span<const MutableBytes> outputs);
    [[nodiscard]] bool simulated() const { return simulated_ != nullptr; }
    [[nodiscard]] const std::string& port() const { return device_->port(); }
    [[nodiscard]] edgetpu::usb::DeviceCounters counters() const { return device_->counters(); }

  private:
    std::shared_ptr<edgetpu::usb::SimulatedBus> simulated_;
    std::unique_ptr<edgetpu::usb::Device> device_;
};

struct Chips::Impl {
    /// The chip that the URI names, opened if nobody has it.
    [[nodiscard]] Result<std::shared_ptr<Chip>> get(const DeviceUri& uri,
                                                    const SessionOptions& options);

    std::mutex mutex;
    std::map<std::string, std::weak_ptr<Chip>> open;  ///< by URI with port
};

}  // namespace reef::runtime

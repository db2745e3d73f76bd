// An Edge TPU behind the driver: a stick, or what answers in a stick's place.
#pragma once

#include <memory>
#include <string>

#include "reef/edgetpu/usb/chip_core.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/runtime/device.h"

namespace reef::edgetpu {

/// What a driven device is made of.
struct DrivenChip {
    std::shared_ptr<usb::Bus> bus;
    usb::DeviceOptions options;
    std::string uri;     ///< empty: "edgetpu:usb:PORT", of the stick that is found
    std::string kernel;  ///< what runs its operators, for placements
    std::shared_ptr<usb::SimulatedBus> simulated{};      ///< the bus, when the chip is simulated
    std::shared_ptr<usb::NullPrograms> null_programs{};  ///< of a chip that computes nothing
};

/// Errors: those of usb::Device::open().
[[nodiscard]] Result<std::shared_ptr<runtime::Device>> open_driven(DrivenChip chip);

}  // namespace reef::edgetpu

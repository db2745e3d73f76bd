// The Edge TPU's driver among those of the runtime.
#pragma once

#include <memory>

#include "reef/runtime/driver.h"
#include "reef/runtime/registry.h"

namespace reef::edgetpu {

/// Everything that Reef knows of this chip, told to the registry. The build calls it (REEF_CHIPS in
/// src/chips.cmake).
void enrol(runtime::Registry& registry);

/// Devices edgetpu:sim, edgetpu:usb, edgetpu:replay and edgetpu:null.
[[nodiscard]] std::unique_ptr<runtime::Driver> driver();

}  // namespace reef::edgetpu

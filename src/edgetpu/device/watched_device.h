// A simulated Edge TPU that watches what the programs do.
#pragma once

#include <memory>
#include <string>

#include "reef/edgetpu/simulator.h"
#include "reef/runtime/device.h"

namespace reef::edgetpu {

/// There is no USB in between: which accesses are findings depends on what the package declares,
/// and a chip behind USB sees only bytes.
[[nodiscard]] std::shared_ptr<runtime::Device> watched_device(std::string uri,
                                                              const SimulatorOptions& options);

}  // namespace reef::edgetpu

// One simulated core among the devices.
#pragma once

#include <memory>
#include <string>

#include "reef/runtime/device.h"
#include "rk3588/sim/switches.h"

namespace reef::rk3588 {

[[nodiscard]] std::shared_ptr<runtime::Device> make_sim_device(std::string uri,
                                                               const sim::Switches& switches);

}  // namespace reef::rk3588

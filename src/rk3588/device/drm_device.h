// The NPU behind one of the kernel's drivers among the devices.
#pragma once

#include <memory>
#include <string>

#include "reef/runtime/device.h"
#include "rk3588/drm/port.h"

namespace reef::rk3588 {

[[nodiscard]] std::shared_ptr<runtime::Device> make_drm_device(std::string uri,
                                                               std::unique_ptr<drm::Port> port);

}  // namespace reef::rk3588

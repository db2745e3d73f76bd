// The NPU behind one of the kernel's drivers among the devices.
#pragma once

#include <memory>
#include <string>

#include "reef/runtime/device.h"
#include "rk3588/drm/port.h"

namespace reef::rk3588 {

/// Whether programs that were compiled for the chip's SRAM get it.
enum class Sram : bool { off, on };

[[nodiscard]] std::shared_ptr<runtime::Device> make_drm_device(std::string uri,
                                                               std::unique_ptr<drm::Port> port,
                                                               Sram sram);

}  // namespace reef::rk3588

// What stands behind the family's device URIs, below programs.
#pragma once

#include <memory>
#include <string_view>

#include "reef/runtime/options.h"
#include "reef/runtime/uri.h"
#include "rk3588/device/drm_device.h"
#include "rk3588/drm/port.h"

namespace reef::rk3588 {

/// Of a board's driver: this machine's kernel, or a simulated one. `options` are checked.
[[nodiscard]] std::shared_ptr<drm::Kernel> kernel_of(const runtime::DeviceUri& device,
                                                     const runtime::OptionValues& options);

/// Whether programs get the chip's SRAM. `options` are checked.
[[nodiscard]] Sram sram_of(const runtime::DeviceUri& device, const runtime::OptionValues& options);

/// The driver that the device names, on that kernel. Errors: those of drm::open_port().
[[nodiscard]] Result<std::unique_ptr<drm::Port>> open_port_of(
    const runtime::DeviceUri& device, const runtime::OptionValues& options,
    std::shared_ptr<drm::Kernel> on_kernel);
/// The same on its own kernel; also the simulated cores.
[[nodiscard]] Result<std::unique_ptr<drm::Port>> open_port_of(const runtime::DeviceUri& device,
                                                              const runtime::OptionValues& options);

/// Errors also: bad_argument for other devices and options.
[[nodiscard]] Result<std::unique_ptr<drm::Port>> open_port_of(std::string_view device);

}  // namespace reef::rk3588

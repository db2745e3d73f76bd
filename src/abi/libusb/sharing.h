// Sticks that processes share: a server behind a local socket, which the first of them begins.
#pragma once

#include <string>

#include "reef/edgetpu/usb/shared_sticks.h"

namespace reef::abi::libusb {

/// Sessions with the server at that socket. Where there is none, a process of its own becomes one
/// with the sticks of `server`, which ends some seconds after its last session. Errors: io_failed
/// with the path.
[[nodiscard]] Result<edgetpu::usb::SharedBus::Connect> join_server(
    const std::string& path, edgetpu::usb::StickServer& server);

}  // namespace reef::abi::libusb

// What a simulated stick says of itself: its descriptors (USB 3.1, 9.6).
#pragma once

#include "reef/edgetpu/usb/simulated_bus.h"

namespace reef::edgetpu::usb {

/// Of a bulk endpoint.
[[nodiscard]] std::size_t bulk_packet_bytes(Speed speed);

/// Of 1a6e:089a, and of 18d1:9302: on USB 3 the bytes of a real stick, but for the parts of the
/// endpoints' companions that no capture shows; on USB 2 made up from them.
[[nodiscard]] StickDescriptors boot_descriptors();
[[nodiscard]] StickDescriptors chip_descriptors(Speed speed);

}  // namespace reef::edgetpu::usb

// libusb's descriptor structs from the bytes that a device answers with (USB 2.0, 9.6).
#pragma once

#include <libusb-1.0/libusb.h>

#include "reef/base/bytes.h"

namespace reef::abi::libusb {

/// LIBUSB_ERROR_IO for bytes that are none.
[[nodiscard]] int read_device_descriptor(Bytes bytes, libusb_device_descriptor& descriptor);

/// A configuration with all its interfaces and endpoints; what no struct has room for is in the
/// `extra` of what it follows. To be freed with free_configuration. Returns a libusb_error.
[[nodiscard]] int read_configuration(Bytes bytes, libusb_config_descriptor*& configuration);
void free_configuration(libusb_config_descriptor* configuration);

}  // namespace reef::abi::libusb

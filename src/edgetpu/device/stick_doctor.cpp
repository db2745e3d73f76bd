#include "edgetpu/device/stick_doctor.h"

#include "edgetpu/usb/usb_checks.h"

namespace reef::edgetpu {

std::vector<chip::Check> StickDoctor::check() const {
    return usb::check_usb(usb::libusb_bus());
}

std::string_view StickDoctor::udev_rule() const {
    return usb::udev_rule();
}

}  // namespace reef::edgetpu

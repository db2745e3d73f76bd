#include "edgetpu/usb/doctor.h"

#include "edgetpu/usb/usb_checks.h"

namespace reef::edgetpu::usb {

std::vector<chip::Check> Doctor::check() const {
    return check_usb(libusb_bus());
}

std::string_view Doctor::udev_rule() const {
    return usb::udev_rule();
}

}  // namespace reef::edgetpu::usb

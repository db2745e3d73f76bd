#include "reef/edgetpu/usb/transport.h"

#include <algorithm>

#include "edgetpu/usb/protocol.h"

namespace reef::edgetpu::usb {

std::string_view to_string(Fault fault) {
    switch (fault) {
        case Fault::stall:
            return "stall";
        case Fault::timed_out:
            return "time-out";
        case Fault::overflow:
            return "overflow";
        case Fault::disconnected:
            return "disconnected";
        case Fault::cancelled:
            return "cancelled";
        case Fault::denied:
            return "denied";
        case Fault::busy:
            return "busy";
        case Fault::no_bus:
            return "no-bus";
        case Fault::failed:
            return "failed";
    }
    return "unknown";
}

std::string_view to_string(Speed speed) {
    switch (speed) {
        case Speed::unknown:
            return "unknown speed";
        case Speed::full:
            return "USB 1.1 (12 Mbit/s)";
        case Speed::high:
            return "USB 2 (480 Mbit/s)";
        case Speed::super:
            return "USB 3 (5 Gbit/s)";
        case Speed::super_plus:
            return "USB 3.1 (10 Gbit/s)";
    }
    return "unknown speed";
}

std::string state_of(const DeviceInfo& device) {
    const std::string state =
        device.vendor == chip_vendor ? "firmware runs" : "boot loader, no firmware yet";
    return device.simulated ? state + ", simulated" : state;
}

void Bus::wait_for_change(std::uint64_t, Milliseconds most) {
    sleep(std::min(most, Milliseconds(10)));
}

}  // namespace reef::edgetpu::usb

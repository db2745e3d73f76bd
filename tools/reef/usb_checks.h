// What reef doctor looks at before it says that an Edge TPU on USB can be used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reef/edgetpu/usb/transport.h"

namespace reef::tool {

struct Check {
    enum class State : std::uint8_t { good, warning, bad };
    std::string name;  ///< "stick 2-1.4: speed"
    State state = State::good;
    std::string what;  ///< what was found
    std::string fix;   ///< what to do; empty when good
};
[[nodiscard]] std::string_view to_string(Check::State state);

/// The udev rule that lets users open the stick, as in udev/60-reef.rules.
[[nodiscard]] std::string_view udev_rule();

/// The sticks that `bus` lists and what the system's files below `root` say about them: the bus,
/// permissions, the udev rule, speed, hubs, firmware, programs that hold the stick, containers.
[[nodiscard]] std::vector<Check> check_usb(edgetpu::usb::Bus& bus,
                                           const std::filesystem::path& root = "/");

/// "/dev/bus/usb/002/005" for port 2-1.4, address 5.
[[nodiscard]] std::string device_node(const edgetpu::usb::DeviceInfo& device);
/// "boot loader, no firmware yet" or "firmware runs"; names unknown identities.
[[nodiscard]] std::string state_of(const edgetpu::usb::DeviceInfo& device);

}  // namespace reef::tool

// What reef doctor looks at before it says that an Edge TPU on USB can be used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reef/edgetpu/usb/transport.h"

namespace reef::tool {

struct Check {
    enum class State : std::uint8_t {
        good,
        note,     ///< nothing to mend here and now
        unknown,  ///< cannot be looked at from here
        warning,
        bad,
    };
    std::string name;  ///< "stick 2-1.4: speed"
    State state = State::good;
    std::string what;  ///< what was found
    std::string fix;   ///< what to do, or how to find out; empty when good
};
[[nodiscard]] std::string_view to_string(Check::State state);

/// The udev rule that lets users open the stick, as in udev/60-reef.rules.
[[nodiscard]] std::string_view udev_rule();

/// What the checks look at.
struct CheckedSystem {
    std::filesystem::path root = "/";
    /// errno of opening a node for reading and writing; 0 when it opens.
    std::function<int(const std::filesystem::path& node)> open_node;
    bool superuser = false;

    /// This machine, for this process.
    CheckedSystem();
};

/// Whether USB starts, the sticks that it lists, and what the system's files say about them:
/// permissions, the udev rule, speed, hubs, firmware, programs that hold the stick, containers.
/// What needs no USB is checked without it, too.
[[nodiscard]] std::vector<Check> check_usb(const Result<std::shared_ptr<edgetpu::usb::Bus>>& bus,
                                           const CheckedSystem& system = {});

/// "/dev/bus/usb/002/005" for port 2-1.4, address 5.
[[nodiscard]] std::string device_node(const edgetpu::usb::DeviceInfo& device);

}  // namespace reef::tool

// What reef doctor looks at before it says that an Edge TPU on USB can be used.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reef/chip/doctor.h"
#include "reef/edgetpu/usb/transport.h"

namespace reef::edgetpu::usb {

using chip::Check;

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
[[nodiscard]] std::vector<Check> check_usb(const Result<std::shared_ptr<Bus>>& bus,
                                           const CheckedSystem& system = {});

/// "/dev/bus/usb/002/005" for port 2-1.4, address 5.
[[nodiscard]] std::string device_node(const DeviceInfo& device);

}  // namespace reef::edgetpu::usb

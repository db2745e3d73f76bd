// What the REEF_USB_* variables say: which simulated sticks are plugged in, and how they behave.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reef/edgetpu/usb/simulated_bus.h"

namespace reef::abi::libusb {

enum class CoreKind : std::uint8_t {
    simulator,  ///< runs the programs
    null,       ///< answers at once with made-up bytes
};

struct Settings {
    std::vector<edgetpu::usb::StickOptions> sticks;
    CoreKind core = CoreKind::simulator;
    std::vector<std::string> models;  ///< whose programs the null core knows
    std::string record;               ///< a recording to write; empty: none
    bool hotplug = true;              ///< programs are told of devices that come and leave
    std::string shared;               ///< socket of sticks that processes share; empty: its own
};

/// Reads one variable; empty when it is not set.
using Environment = std::function<std::string(const char* name)>;

/// docs/simulated-stick.md describes the variables. Errors: bad_argument with the variable and the
/// word.
[[nodiscard]] Result<Settings> read_settings(const Environment& environment);

/// A chip for one stick. Errors: those of loading the models.
[[nodiscard]] Result<std::unique_ptr<edgetpu::usb::ChipCore>> make_core(const Settings& settings);

}  // namespace reef::abi::libusb

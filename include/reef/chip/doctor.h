// Why a chip's hardware does not work here, one finding a check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reef/chip/part.h"

namespace reef::chip {

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

/// Of a family of chips, enrolled as a part of it.
class Doctor : public Part {
  public:
    /// Of this machine, for this process: what the chip needs of the system, then each device.
    [[nodiscard]] virtual std::vector<Check> check() const = 0;
    /// The udev rule that lets users open the chip's devices; empty when they need none.
    [[nodiscard]] virtual std::string_view udev_rule() const = 0;
};

}  // namespace reef::chip

// What small programs show of a device that no public fact tells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/chip/part.h"

namespace reef::chip {

struct ProbeAnswer {
    std::string question;
    std::string answer;
    std::string set;       ///< what to set because of it; empty: nothing
    bool expected = true;  ///< the device does what the simulator does unasked
};

/// Of a family of chips, enrolled as a part of it.
class Prober : public Part {
  public:
    /// Runs its programs on the device and, with each assumption, on the simulator. Errors: those
    /// of opening the device; a program that fails there is an answer.
    [[nodiscard]] virtual Result<std::vector<ProbeAnswer>> probe(
        const std::string& device) const = 0;
};

}  // namespace reef::chip

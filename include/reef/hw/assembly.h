// What text of instructions becomes, whatever the chip.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace reef::hw {

struct AssembledStream {
    std::string name;  ///< of its .stream directive; empty when there is none
    std::vector<std::byte> bytes;
};

}  // namespace reef::hw

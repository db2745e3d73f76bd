// What REEF_SIMD asks of peers.
#pragma once

#include <cstdlib>

namespace reef::peers {

/// Whether REEF_SIMD names an instruction set that Reef is limited to; empty it names none.
inline bool simd_is_limited() {
    const char* name = std::getenv("REEF_SIMD");
    return name != nullptr && *name != '\0';
}

}  // namespace reef::peers

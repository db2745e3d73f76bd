// How messages name sets of tiles and of what an enumeration lists.
#pragma once

#include <cstdint>
#include <string>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {

/// "tile 3", or "tiles 0x00ff": bit t is tile t.
[[nodiscard]] std::string tiles_text(std::uint16_t tiles);
/// "OP, MESH_0": bit v is the enumeration's value v.
[[nodiscard]] std::string names_in(const Enumeration& set, std::uint32_t bits);

}  // namespace reef::edgetpu

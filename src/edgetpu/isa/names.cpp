#include "names.h"

#include <fmt/format.h>

#include <bit>

namespace reef::edgetpu {

std::string tiles_text(std::uint16_t tiles) {
    if (std::has_single_bit(tiles)) return fmt::format("tile {}", std::countr_zero(tiles));
    return fmt::format("tiles {:#06x}", tiles);
}

std::string names_in(const Enumeration& set, std::uint32_t bits) {
    std::string names;
    for (const auto& value : set.values)
        if ((bits >> value.value & 1U) != 0)
            names.append(names.empty() ? "" : ", ").append(value.name);
    return names;
}

}  // namespace reef::edgetpu

// The FlexBuffer that a compiled model's custom operators hold their package in.
#pragma once

#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::edgetpu {

// Keys of the map: 1 a version, 2 a chip's name, 4 the package. 5 (an integer) and 6, 7 (vectors of
// integers) are written by the vendor's compiler; their meaning is unknown.
inline constexpr std::string_view package_key = "4";

/// A map with the package and what else the vendor's compiler writes.
[[nodiscard]] SharedBytes new_options(std::vector<std::byte> package);

/// The map in `options` with another package. Entries that cannot be copied are refused by name.
[[nodiscard]] Result<std::vector<std::byte>> options_with_package(Bytes options, Bytes package);

}  // namespace reef::edgetpu

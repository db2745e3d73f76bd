// What a package says when Reef's own compiler made it.
#pragma once

#include <string_view>

namespace reef::edgetpu {

/// Package::compiler_version.
inline constexpr std::string_view own_compiler_version = "reef";

}  // namespace reef::edgetpu

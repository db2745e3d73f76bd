// MD5 (RFC 1321), which the header of a cvimodel holds. It tells damage, not forgery.
#pragma once

#include <array>
#include <cstdint>

#include "reef/base/bytes.h"

namespace reef::sophgo {

using Md5 = std::array<std::uint8_t, 16>;

[[nodiscard]] Md5 md5(Bytes bytes);

}  // namespace reef::sophgo

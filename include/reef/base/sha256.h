// SHA-256 (FIPS 180-4), to tell files and transfers apart.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "reef/base/bytes.h"

namespace reef {

using Sha256 = std::array<std::uint8_t, 32>;

[[nodiscard]] Sha256 sha256(Bytes bytes);
/// Of all parts, one behind the other.
[[nodiscard]] Sha256 sha256_of(std::span<const Bytes> parts);
/// Lower-case hexadecimal, two digits a byte.
[[nodiscard]] std::string to_hex(Bytes bytes);
[[nodiscard]] std::string to_hex(const Sha256& digest);

}  // namespace reef

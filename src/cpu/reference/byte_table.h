// A function of a byte as a table of its 256 results.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace reef::cpu {

/// Signed elements as their bit patterns, as index and as result.
using ByteTable = std::array<std::uint8_t, 256>;

/// out[i] = table[in[i]], vectorised where the machine can. `out` may be `in`, and does not overlap
/// it otherwise.
void look_up_bytes(const ByteTable& table, const std::uint8_t* in, std::uint8_t* out,
                   std::size_t count);

/// out[i] = in[i] ^ 0x80, vectorised.
void flip_high_bits(const std::uint8_t* in, std::uint8_t* out, std::size_t count);

}  // namespace reef::cpu

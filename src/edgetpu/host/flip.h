// Signed numbers on the wire: the chip's number is the host's with the top bit flipped.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "reef/base/bytes.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu::host {

static_assert(std::endian::native == std::endian::little);

/// What is XORed into every 8 bytes of such elements.
[[nodiscard]] constexpr std::uint64_t flip_pattern(DataType type) {
    switch (type) {
        case DataType::signed_fixed_point8:
            return 0x8080808080808080;
        case DataType::signed_fixed_point16:
            return 0x8000800080008000;
        default:
            return 0;
    }
}

/// Precondition: `bytes` starts at an element.
inline void flip(MutableBytes bytes, std::uint64_t pattern) {
    if (pattern == 0) return;
    std::size_t at = 0;
    for (; at + sizeof pattern <= bytes.size(); at += sizeof pattern) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data() + at, sizeof word);
        word ^= pattern;
        std::memcpy(bytes.data() + at, &word, sizeof word);
    }
    for (; at < bytes.size(); ++at) {
        bytes[at] ^= static_cast<std::byte>(pattern >> (8 * (at % sizeof pattern)) & 0xff);
    }
}

}  // namespace reef::edgetpu::host

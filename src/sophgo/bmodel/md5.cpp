#include "sophgo/bmodel/md5.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace reef::sophgo {
namespace {

constexpr std::size_t md5_block = 64;
using Md5State = std::array<std::uint32_t, 4>;

/// The integer parts of 2^32 |sin n|, n from 1 to 64.
const std::array<std::uint32_t, 64>& sine_table() {
    static const auto table = [] {
        std::array<std::uint32_t, 64> out{};
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = static_cast<std::uint32_t>(
                std::floor(std::ldexp(std::abs(std::sin(static_cast<double>(i + 1))), 32)));
        return out;
    }();
    return table;
}

constexpr int rotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

std::uint32_t mixed(std::size_t round, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
    switch (round) {
        case 0:
            return (b & c) | (~b & d);
        case 1:
            return (b & d) | (c & ~d);
        case 2:
            return b ^ c ^ d;
        default:
            return c ^ (b | ~d);
    }
}

void add_block(Md5State& state, const std::byte* block) {
    constexpr std::size_t factors[4] = {1, 5, 3, 7}, offsets[4] = {0, 1, 5, 0};
    std::array<std::uint32_t, 16> words{};
    std::memcpy(words.data(), block, md5_block);
    auto [a, b, c, d] = state;
    for (std::size_t i = 0; i < 64; ++i) {
        const std::size_t round = i / 16;
        const std::uint32_t sum = a + mixed(round, b, c, d) + sine_table()[i] +
                                  words[(factors[round] * i + offsets[round]) % 16];
        a = d;
        d = c;
        c = b;
        b += std::rotl(sum, rotations[round][i % 4]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

}  // namespace

Md5 md5(Bytes bytes) {
    static_assert(std::endian::native == std::endian::little);
    Md5State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    const std::uint64_t bits = static_cast<std::uint64_t>(bytes.size()) * 8;
    for (; bytes.size() >= md5_block; bytes = bytes.subspan(md5_block))
        add_block(state, bytes.data());
    // What is left, a one bit, zeros, and the length in the last eight bytes.
    std::array<std::byte, 2 * md5_block> end{};
    std::ranges::copy(bytes, end.begin());
    end[bytes.size()] = std::byte{0x80};
    const std::size_t size = bytes.size() + 9 <= md5_block ? md5_block : 2 * md5_block;
    std::memcpy(end.data() + size - sizeof bits, &bits, sizeof bits);
    for (std::size_t at = 0; at < size; at += md5_block) add_block(state, end.data() + at);
    return std::bit_cast<Md5>(state);
}

}  // namespace reef::sophgo

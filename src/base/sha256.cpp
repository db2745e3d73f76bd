#include "reef/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

namespace reef {
namespace {

constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

std::uint32_t big_endian(const std::byte* bytes) {
    std::uint32_t value;
    std::memcpy(&value, bytes, sizeof value);
    return __builtin_bswap32(value);
}

void add_block(State& state, const std::byte* bytes) {
    std::array<std::uint32_t, 64> w;
    for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(bytes + 4 * i);
    for (std::size_t i = 16; i < 64; ++i) {
        const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
        const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
        const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const State added = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
}

constexpr std::size_t block_bytes = 64;

/// Takes up bytes as they come, a block at a time.
class Digester {
  public:
    void add(Bytes bytes) {
        all_ += bytes.size();
        if (held_ != 0) {
            const std::size_t taken = std::min(bytes.size(), block_bytes - held_);
            keep(bytes.first(taken));
            bytes = bytes.subspan(taken);
            if (held_ < block_bytes) return;
            add_block(state_, rest_.data());
            held_ = 0;
        }
        for (; bytes.size() >= block_bytes; bytes = bytes.subspan(block_bytes))
            add_block(state_, bytes.data());
        keep(bytes);
    }

    Sha256 digest() {
        const std::uint64_t bits = __builtin_bswap64(all_ * 8);
        constexpr std::array<std::byte, block_bytes> one_and_zeros{std::byte{0x80}};
        const std::size_t in_last = (held_ + 8) % block_bytes;
        add(Bytes(one_and_zeros).first(block_bytes - in_last));
        add(std::as_bytes(std::span(&bits, 1)));
        Sha256 digest;
        for (std::size_t i = 0; i < 8; ++i) {
            const std::uint32_t word = __builtin_bswap32(state_[i]);
            std::memcpy(digest.data() + 4 * i, &word, sizeof word);
        }
        return digest;
    }

  private:
    void keep(Bytes bytes) {
        if (!bytes.empty()) std::memcpy(rest_.data() + held_, bytes.data(), bytes.size());
        held_ += bytes.size();
    }

    State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, block_bytes> rest_;  ///< of a block that is not complete
    std::size_t held_ = 0;                     ///< of those
    std::uint64_t all_ = 0;
};

}  // namespace

Sha256 sha256(Bytes bytes) {
    return sha256_of(std::span(&bytes, 1));
}

Sha256 sha256_of(std::span<const Bytes> parts) {
    Digester digester;
    for (const Bytes part : parts) digester.add(part);
    return digester.digest();
}

std::string to_hex(Bytes bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const std::byte byte : bytes) {
        text += digits[static_cast<unsigned>(byte) >> 4];
        text += digits[static_cast<unsigned>(byte) & 15];
    }
    return text;
}

std::string to_hex(const Sha256& digest) {
    return to_hex(std::as_bytes(std::span(digest)));
}

}  // namespace reef

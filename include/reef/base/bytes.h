// Views of raw memory and bounds-checked little-endian reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "reef/base/result.h"

namespace reef {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

[[nodiscard]] inline Bytes as_bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}
[[nodiscard]] inline std::string_view as_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
/// std::ranges::equal of g++ 12 compares std::byte one by one.
[[nodiscard]] inline bool equal_bytes(Bytes a, Bytes b) {
    return as_text(a) == as_text(b);
}

/// Read-only bytes together with whatever keeps them alive (a mapped file, a vector, a caller's
/// object). Copying shares the owner, never the bytes.
class SharedBytes {
  public:
    SharedBytes() = default;
    SharedBytes(Bytes view, std::shared_ptr<const void> owner)
        : view_(view), owner_(std::move(owner)) {}

    /// Takes a copy of `bytes`.
    [[nodiscard]] static SharedBytes copy_of(Bytes bytes);

    [[nodiscard]] Bytes view() const { return view_; }
    [[nodiscard]] std::size_t size() const { return view_.size(); }
    [[nodiscard]] bool empty() const { return view_.empty(); }
    [[nodiscard]] const std::shared_ptr<const void>& owner() const { return owner_; }

    /// A part with the same owner. Precondition: offset + size <= size().
    [[nodiscard]] SharedBytes part(std::size_t offset, std::size_t size) const {
        return {view_.subspan(offset, size), owner_};
    }

    /// Equal when the bytes are.
    friend bool operator==(const SharedBytes& a, const SharedBytes& b);

  private:
    Bytes view_;
    std::shared_ptr<const void> owner_;
};

/// Reads little-endian numbers front to back; every read past the end is an error that names the
/// byte offset.
class ByteReader {
  public:
    explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

    [[nodiscard]] std::size_t offset() const { return offset_; }
    [[nodiscard]] std::size_t remaining() const { return bytes_.size() - offset_; }

    [[nodiscard]] Status seek(std::size_t offset);
    [[nodiscard]] Status skip(std::size_t count);
    [[nodiscard]] Result<Bytes> take(std::size_t count);
    [[nodiscard]] Result<std::uint8_t> u8();
    [[nodiscard]] Result<std::uint16_t> u16();
    [[nodiscard]] Result<std::uint32_t> u32();
    [[nodiscard]] Result<std::uint64_t> u64();

  private:
    Bytes bytes_;
    std::size_t offset_ = 0;
};

/// Reads fields of up to 64 bits from a little-endian bit string: bit 0 is the lowest bit of byte
/// 0.
class BitReader {
  public:
    explicit BitReader(Bytes bytes) : bytes_(bytes) {}

    [[nodiscard]] std::size_t size_bits() const { return bytes_.size() * 8; }

    /// Bits [position, position + width), zero-extended. width is 0 to 64.
    [[nodiscard]] Result<std::uint64_t> field(std::size_t position, unsigned width) const;
    /// The same, sign-extended from bit width - 1. width is 1 to 64.
    [[nodiscard]] Result<std::int64_t> signed_field(std::size_t position, unsigned width) const;

  private:
    Bytes bytes_;
};

}  // namespace reef

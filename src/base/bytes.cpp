#include "reef/base/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace reef {

static_assert(std::endian::native == std::endian::little,
              "Reef's formats are little endian and are read in place");

SharedBytes SharedBytes::copy_of(Bytes bytes) {
    auto owner = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    const Bytes view(*owner);
    return {view, std::move(owner)};
}

bool operator==(const SharedBytes& a, const SharedBytes& b) {
    return equal_bytes(a.view_, b.view_);
}

Status ByteReader::seek(std::size_t offset) {
    if (offset > bytes_.size()) {
        return fail(Cause::bad_input, fmt::format("byte offset {} is past the end of {} bytes",
                                                  offset, bytes_.size()));
    }
    offset_ = offset;
    return {};
}

Status ByteReader::skip(std::size_t count) {
    REEF_TRY(take(count));
    return {};
}

Result<Bytes> ByteReader::take(std::size_t count) {
    if (count > remaining()) {
        return fail(Cause::bad_input,
                    fmt::format("{} bytes are needed at byte offset {}, {} remain", count, offset_,
                                remaining()));
    }
    const Bytes taken = bytes_.subspan(offset_, count);
    offset_ += count;
    return taken;
}

namespace {

template <typename T>
Result<T> take_number(ByteReader& reader) {
    const Bytes bytes = REEF_TRY(reader.take(sizeof(T)));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
}

}  // namespace

Result<std::uint8_t> ByteReader::u8() {
    return take_number<std::uint8_t>(*this);
}
Result<std::uint16_t> ByteReader::u16() {
    return take_number<std::uint16_t>(*this);
}
Result<std::uint32_t> ByteReader::u32() {
    return take_number<std::uint32_t>(*this);
}
Result<std::uint64_t> ByteReader::u64() {
    return take_number<std::uint64_t>(*this);
}

Result<std::uint64_t> BitReader::field(std::size_t position, unsigned width) const {
    if (width > 64) {
        return fail(Cause::bad_argument, fmt::format("a bit field of {} bits, at most 64", width));
    }
    const std::size_t first = position / 8;
    const unsigned shift = position % 8;
    const std::size_t touched = (shift + width + 7) / 8;
    if (first > bytes_.size() || touched > bytes_.size() - first) {
        return fail(Cause::bad_input, fmt::format("a field of {} bits at bit {} (byte offset {}) "
                                                  "reaches past the end of {} bytes",
                                                  width, position, first, bytes_.size()));
    }
    if (width == 0) return 0;
    std::uint64_t low = 0;
    std::memcpy(&low, bytes_.data() + first, std::min<std::size_t>(touched, 8));
    std::uint64_t value = low >> shift;
    if (touched == 9) value |= std::to_integer<std::uint64_t>(bytes_[first + 8]) << (64 - shift);
    return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

Result<std::int64_t> BitReader::signed_field(std::size_t position, unsigned width) const {
    if (width == 0) return fail(Cause::bad_argument, "a signed bit field of 0 bits, at least 1");
    const std::uint64_t value = REEF_TRY(field(position, width));
    const unsigned unused = 64 - width;
    return static_cast<std::int64_t>(value << unused) >> unused;
}

}  // namespace reef

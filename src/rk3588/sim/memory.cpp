#include "rk3588/sim/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace reef::rk3588::sim {

Traffic& Traffic::operator+=(const Traffic& other) {
    commands += other.commands;
    features += other.features;
    weights += other.weights;
    operands += other.operands;
    results += other.results;
    return *this;
}

Status Memory::add(std::uint32_t address, MutableBytes bytes, Contents contents) {
    const std::uint64_t end = std::uint64_t{address} + bytes.size();
    if (bytes.empty() || end > std::uint64_t{1} << 32)
        return fail(Cause::bad_argument,
                    fmt::format("{} bytes at {:#x} are no buffer", bytes.size(), address));
    const auto next = std::ranges::lower_bound(buffers_, address, {}, &Buffer::address);
    const bool hits_next = next != buffers_.end() && next->address < end;
    const bool hits_previous =
        next != buffers_.begin() &&
        std::prev(next)->address + std::uint64_t{std::prev(next)->bytes.size()} > address;
    if (hits_next || hits_previous)
        return fail(Cause::bad_argument, fmt::format("another buffer is at {:#x}", address));
    buffers_.insert(next, {address, bytes,
                           std::vector<std::uint8_t>(
                               contents == Contents::unknown ? bytes.size() : 0, std::uint8_t{0})});
    return {};
}

void Memory::forget(std::uint32_t address) {
    for (Buffer& buffer : buffers_)
        if (buffer.address == address) std::ranges::fill(buffer.written, std::uint8_t{0});
}

void Memory::remove(std::uint32_t address) {
    std::erase_if(buffers_, [&](const Buffer& buffer) { return buffer.address == address; });
}

Result<std::size_t> Memory::find(std::uint64_t address, std::uint64_t size, std::string_view what,
                                 std::string_view verb) const {
    const auto behind = std::ranges::upper_bound(buffers_, address, {}, &Buffer::address);
    if (behind != buffers_.begin()) {
        const Buffer& buffer = *std::prev(behind);
        const std::uint64_t offset = address - buffer.address;
        if (offset <= buffer.bytes.size() && size <= buffer.bytes.size() - offset)
            return static_cast<std::size_t>(behind - buffers_.begin()) - 1;
    }
    return fail(Cause::bad_input, fmt::format("{}: {} of {} bytes at {:#x}, where no buffer is",
                                              what, verb, size, address));
}

Result<Bytes> Memory::read(std::uint64_t address, std::uint64_t size, std::string_view what) const {
    const Buffer& buffer = buffers_[REEF_TRY(find(address, size, what, "read"))];
    const std::size_t offset = address - buffer.address;
    if (!buffer.written.empty() && size > 0) {
        const auto* begin = buffer.written.data() + offset;
        if (const void* hole = std::memchr(begin, 0, size))
            return fail(
                Cause::bad_input,
                fmt::format("{}: read of {} bytes at {:#x}, of which byte {} was never "
                            "written",
                            what, size, address, static_cast<const std::uint8_t*>(hole) - begin));
    }
    return buffer.bytes.subspan(offset, size);
}

Result<MutableBytes> Memory::write(std::uint64_t address, std::uint64_t size,
                                   std::string_view what) {
    Buffer& buffer = buffers_[REEF_TRY(find(address, size, what, "write"))];
    const std::size_t offset = address - buffer.address;
    if (!buffer.written.empty())
        std::fill_n(buffer.written.begin() + static_cast<std::ptrdiff_t>(offset), size,
                    std::uint8_t{1});
    return buffer.bytes.subspan(offset, size);
}

Status Memory::check_write(std::uint64_t address, std::uint64_t size, std::string_view what) const {
    REEF_TRY(find(address, size, what, "write"));
    return {};
}

}  // namespace reef::rk3588::sim

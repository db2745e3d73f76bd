#include "rk3588/sim/memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::rk3588::sim {

Traffic& Traffic::operator+=(const Traffic& other) {
    commands += other.commands;
    features += other.features;
    weights += other.weights;
    operands += other.operands;
    results += other.results;
    return *this;
}

Status Memory::add(std::uint32_t address, MutableBytes bytes) {
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
    buffers_.insert(next, {address, bytes});
    return {};
}

void Memory::remove(std::uint32_t address) {
    std::erase_if(buffers_, [&](const Buffer& buffer) { return buffer.address == address; });
}

Result<MutableBytes> Memory::find(std::uint64_t address, std::uint64_t size, std::string_view what,
                                  std::string_view verb) const {
    const auto behind = std::ranges::upper_bound(buffers_, address, {}, &Buffer::address);
    if (behind != buffers_.begin()) {
        const Buffer& buffer = *std::prev(behind);
        const std::uint64_t offset = address - buffer.address;
        if (offset <= buffer.bytes.size() && size <= buffer.bytes.size() - offset)
            return buffer.bytes.subspan(offset, size);
    }
    return fail(Cause::bad_input, fmt::format("{}: {} of {} bytes at {:#x}, where no buffer is",
                                              what, verb, size, address));
}

Result<Bytes> Memory::read(std::uint64_t address, std::uint64_t size, std::string_view what) const {
    return find(address, size, what, "read");
}

Result<MutableBytes> Memory::write(std::uint64_t address, std::uint64_t size,
                                   std::string_view what) {
    return find(address, size, what, "write");
}

}  // namespace reef::rk3588::sim

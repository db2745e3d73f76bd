#include "rk3588/sim/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace reef::rk3588::sim {

void Accesses::add(std::vector<Range>& list, std::uint64_t address, std::uint64_t size) {
    if (size == 0) return;
    if (!list.empty() && list.back().end == address)
        list.back().end += size;
    else
        list.push_back({address, address + size});
}

void Accesses::sort() {
    for (auto* list : {&reads_, &writes_}) {
        std::ranges::sort(*list, {}, &Range::begin);
        std::size_t kept = 0;
        for (const Range& range : *list) {
            if (kept != 0 && range.begin <= (*list)[kept - 1].end)
                (*list)[kept - 1].end = std::max((*list)[kept - 1].end, range.end);
            else
                (*list)[kept++] = range;
        }
        list->resize(kept);
    }
}

std::optional<std::uint64_t> Accesses::conflict(Accesses& a, Accesses& b) {
    a.sort();
    b.sort();
    const auto meet = [](const std::vector<Range>& one,
                         const std::vector<Range>& other) -> std::optional<std::uint64_t> {
        for (auto i = one.begin(), j = other.begin(); i != one.end() && j != other.end();) {
            if (i->begin < j->end && j->begin < i->end) return std::max(i->begin, j->begin);
            i->end <= j->end ? ++i : ++j;
        }
        return std::nullopt;
    };
    if (const auto at = meet(a.writes_, b.writes_)) return at;
    if (const auto at = meet(a.writes_, b.reads_)) return at;
    return meet(a.reads_, b.writes_);
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
    if (accesses_ != nullptr) accesses_->add_read(address, size);
    return buffer.bytes.subspan(offset, size);
}

Result<MutableBytes> Memory::write(std::uint64_t address, std::uint64_t size,
                                   std::string_view what) {
    Buffer& buffer = buffers_[REEF_TRY(find(address, size, what, "write"))];
    const std::size_t offset = address - buffer.address;
    if (!buffer.written.empty())
        std::fill_n(buffer.written.begin() + static_cast<std::ptrdiff_t>(offset), size,
                    std::uint8_t{1});
    if (accesses_ != nullptr) accesses_->add_write(address, size);
    return buffer.bytes.subspan(offset, size);
}

Status Memory::check_write(std::uint64_t address, std::uint64_t size, std::string_view what) const {
    REEF_TRY(find(address, size, what, "write"));
    return {};
}

}  // namespace reef::rk3588::sim

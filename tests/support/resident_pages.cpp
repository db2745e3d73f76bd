#include "support/resident_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace reef::test {
namespace {

struct PageNumbers {
    std::uintptr_t first = 0, end = 0;
};

PageNumbers numbers_of(Bytes bytes) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
    return {first / page, (first + bytes.size() + page - 1) / page};
}

}  // namespace

std::size_t resident_pages(Bytes bytes) {
    const auto [first, end] = numbers_of(bytes);
    std::vector<std::uint64_t> entries(end - first);
    const std::size_t size = entries.size() * sizeof(std::uint64_t);
    const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const auto got =
        ::pread(map, entries.data(), size, static_cast<off_t>(first * sizeof(std::uint64_t)));
    ::close(map);
    if (got != static_cast<ssize_t>(size))
        throw std::runtime_error("/proc/self/pagemap cannot be read");
    std::size_t there = 0;
    for (const std::uint64_t entry : entries) there += entry >> 63U;
    return there;
}

std::size_t pages(Bytes bytes) {
    const auto [first, end] = numbers_of(bytes);
    return end - first;
}

}  // namespace reef::test

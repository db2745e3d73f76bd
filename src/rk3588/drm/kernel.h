// What the drivers ask of an operating system, so that tests and machines without an NPU can stand
// in for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"

namespace reef::rk3588::drm {

class Kernel {
  public:
    Kernel() = default;
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;
    virtual ~Kernel() = default;

    /// Paths of the files in a folder whose names begin so, in order.
    [[nodiscard]] virtual std::vector<std::string> nodes(std::string_view folder,
                                                         std::string_view beginning) = 0;
    /// A file descriptor, or an errno with a minus sign; so all of these.
    [[nodiscard]] virtual int open(const std::string& path) = 0;
    virtual void close(int file) = 0;
    /// Keeps the file from other processes that ask for it.
    [[nodiscard]] virtual int lock(int file) = 0;
    [[nodiscard]] virtual int ioctl(int file, std::uint32_t request, void* argument) = 0;
    /// Empty: it cannot be mapped.
    [[nodiscard]] virtual MutableBytes map(int file, std::uint64_t size, std::uint64_t offset) = 0;
    virtual void unmap(MutableBytes bytes) = 0;
    /// Of the clock that absolute time-outs are in.
    [[nodiscard]] virtual std::int64_t nanoseconds() = 0;
    /// What is known of the last failure besides its number; empty: nothing.
    [[nodiscard]] virtual std::string failure() const { return {}; }
};

[[nodiscard]] std::shared_ptr<Kernel> system_kernel();

}  // namespace reef::rk3588::drm

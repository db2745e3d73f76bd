// Memory whose size a file decides.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <vector>

#include "reef/base/result.h"

namespace reef {

/// `count` zero bytes, or io_failed when the system does not have them.
[[nodiscard]] inline Result<std::vector<std::byte>> allocate_bytes(std::uint64_t count) {
    try {
        return std::vector<std::byte>(count);
    } catch (const std::exception&) {  // bad_alloc, length_error
        return fail(Cause::io_failed, fmt::format("out of memory for {} bytes", count));
    }
}

}  // namespace reef

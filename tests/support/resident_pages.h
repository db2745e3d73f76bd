// Which memory of this process is there.
#pragma once

#include <cstddef>

#include "reef/base/bytes.h"

namespace reef::test {

/// Pages that hold some of these bytes and that the process has in memory now, by
/// /proc/self/pagemap.
[[nodiscard]] std::size_t resident_pages(Bytes bytes);
/// Pages that hold some of these bytes.
[[nodiscard]] std::size_t pages(Bytes bytes);

}  // namespace reef::test

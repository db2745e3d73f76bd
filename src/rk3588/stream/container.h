// Streams that a vendor's .rknn file holds as plain words.
#pragma once

#include <vector>

#include "reef/base/bytes.h"

namespace reef::rk3588 {

[[nodiscard]] bool is_vendor_container(Bytes file);

/// Where the tasks of a file are: every run of command words that ends in mark and op_en and begins
/// behind a word that is none. Offsets and sizes in bytes, ascending. The container's format is not
/// read: older containers hold no plain words, and none are found then.
struct StoredTask {
    std::size_t offset = 0;
    std::size_t size = 0;
};
[[nodiscard]] std::vector<StoredTask> stored_tasks(Bytes file);

}  // namespace reef::rk3588

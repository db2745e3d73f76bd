// Two streams, task by task and field by field.
#pragma once

#include <cstdint>
#include <vector>

#include "reef/base/bytes.h"
#include "rk3588/stream/task.h"

namespace reef::rk3588 {

/// A field that two tasks set differently.
struct FieldChange {
    std::size_t task = 0;  ///< number in its stream
    RegisterIndex index = 0;
    const hw::FieldInfo* field = nullptr;
    std::uint64_t before = 0;
    std::uint64_t after = 0;
};

struct StreamDiff {
    std::vector<FieldChange> changes;  ///< by task and register
    std::size_t before_tasks = 0;
    std::size_t after_tasks = 0;
};

/// The tasks of a stream, one behind the other, with words without effect between them. Errors:
/// those of read_task().
[[nodiscard]] Result<std::vector<Task>> tasks_of(Bytes stream);

/// The tasks that both streams have, by number; a register that a task does not write counts as 0.
[[nodiscard]] Result<StreamDiff> diff_streams(Bytes before, Bytes after);

}  // namespace reef::rk3588

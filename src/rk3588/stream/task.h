// Tasks as they lie in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "reef/base/bytes.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588 {

/// An entry of one of the DPU's two function tables, LE and LO, that a task's words write.
struct TableWrite {
    std::uint8_t table = 0;  ///< 1: LO
    std::uint16_t entry = 0;
    std::int16_t value = 0;
    friend bool operator==(const TableWrite&, const TableWrite&) = default;
};

/// A task: what its words write, in their order, and what its tail says.
struct Task {
    std::size_t words = 0;  ///< tail included
    RegisterSet registers;  ///< the last value of each
    std::vector<TableWrite> tables;
    std::uint32_t blocks = 0;        ///< that op_en starts, as in Blocks
    std::uint32_t next_address = 0;  ///< 0: none
    std::size_t next_words = 0;      ///< that the tail says, rounded up to whole pairs
};

/// The task at the front of `stream`, up to its op_en. Errors, with the word's number: an unknown
/// register, a target that is not the register's, no mark in front of op_en, no op_en.
[[nodiscard]] Result<Task> read_task(Bytes stream);

}  // namespace reef::rk3588

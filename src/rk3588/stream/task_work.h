// What a task has to do, as its registers say: bytes moved, steps of the arrays, an estimate of
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rk3588/stream/task.h"

namespace reef::rk3588 {

/// Bytes that pass between the chip and its memory.
struct BytesMoved {
    std::uint64_t features = 0;
    std::uint64_t weights = 0;
    std::uint64_t operands = 0;  ///< of the DPU and the PPU
    std::uint64_t commands = 0;
    std::uint64_t results = 0;
    [[nodiscard]] std::uint64_t total() const {
        return features + weights + operands + commands + results;
    }
    BytesMoved& operator+=(const BytesMoved& other);
    friend bool operator==(const BytesMoved&, const BytesMoved&) = default;
};

/// What one core, or several at once, have to do.
struct Work {
    BytesMoved bytes;
    std::uint64_t array = 0;  ///< cycles of the arrays
    std::size_t tasks = 0;
    Work& operator+=(const Work& other);
};

/// Of a task that writes all its registers. Nothing is checked; sizes that no memory has are taken
/// as they are.
[[nodiscard]] Work work_of(const Task& task);

/// Estimated, of cores that work at once and share the memory.
[[nodiscard]] std::uint64_t cycles_of(std::span<const Work> cores);

/// Bytes that one of so many cores that work at once moves in a cycle: assumed.
[[nodiscard]] double bytes_per_cycle(std::size_t cores);

}  // namespace reef::rk3588

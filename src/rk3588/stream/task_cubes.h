// Where the cubes lie that a task reads and writes, as its registers say.
#pragma once

#include <cstdint>
#include <vector>

#include "rk3588/stream/task.h"

namespace reef::rk3588 {

/// Channels of a picture whose pixels lie packed; 0: the features are a cube.
[[nodiscard]] std::uint32_t packed_channels(const RegisterSet& registers);
/// Of an element of that precision, a value of the registers' PRECISION fields.
[[nodiscard]] std::uint64_t bytes_of_element(std::uint32_t precision);

enum class CubeRole : std::uint8_t { features, operand, results };

/// Rows of atoms in surfaces, in the order in which an engine walks over them. Pitches in bytes.
struct CubeWalk {
    CubeRole role = CubeRole::features;
    std::uint64_t first = 0;  ///< address
    std::uint64_t surfaces = 0, surface_pitch = 0;
    std::uint64_t rows = 0, row_pitch = 0, row_bytes = 0;

    [[nodiscard]] std::uint64_t bytes() const { return surfaces * rows * row_bytes; }
    /// Of those, the ones at addresses below `end`.
    [[nodiscard]] std::uint64_t bytes_below(std::uint64_t end) const;
};

/// Features, operands of every pixel, results: not weights, operands by channel, and packed
/// pictures. Nothing is checked.
[[nodiscard]] std::vector<CubeWalk> cubes_of(const Task& task);

}  // namespace reef::rk3588

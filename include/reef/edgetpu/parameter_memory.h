// How much of the chip's parameter memory a compiled program takes.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>

#include "reef/edgetpu/package.h"

namespace reef::edgetpu {

// 16 tiles with wide memory of 2048 rows for parameters each (exact; the 32 rows above them are
// staging areas).
inline constexpr unsigned tile_count = 16;
inline constexpr unsigned parameter_rows_per_tile = 2048;
inline constexpr unsigned row_bytes = 256;
inline constexpr std::int64_t parameter_memory_bytes =
    std::int64_t{tile_count} * parameter_rows_per_tile * row_bytes;

/// By tile: the rows for parameters that a program fills.
using ParameterRows = std::array<std::bitset<parameter_rows_per_tile>, tile_count>;

/// The rows that the ring_receive instructions of a caching program write; nothing when it cannot
/// be followed.
[[nodiscard]] std::optional<ParameterRows> parameter_rows_of(const Executable& caching);
/// Whether any row of any tile is in both. The vendor's compiler gives the parts of a model that
/// was cut for several chips one token and the same rows: on one chip they overwrite each other.
[[nodiscard]] bool overlap(const ParameterRows& a, const ParameterRows& b);

struct ParameterMemory {
    std::int64_t cached_bytes = 0;  ///< PARAMETER_CACHING: transferred once per token
    /// EXECUTION_ONLY and STAND_ALONE: parameters transferred for every inference.
    std::int64_t streamed_bytes = 0;
    /// Memory that caching occupies: whole rows, once for every tile that keeps a copy. Nothing
    /// when the caching program cannot be followed.
    std::optional<std::int64_t> occupied_bytes;
};

/// From the executables' parameters, and the rows that the caching program's ring_receive
/// instructions write.
[[nodiscard]] ParameterMemory parameter_memory_of(const Package& package);

}  // namespace reef::edgetpu

// Rows of a matrix, which blocks of weights have as lanes, and columns as kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reef::rk3588 {

/// Of how many columns a step of turn_rows() makes blocks: a line of the cache.
inline constexpr std::size_t turned_bytes = 64;

/// Blocks of `lanes` rows of the matrix, spec::kernel_lanes, and of `columns`, whole lines of them:
/// column c is kernel c of the block, its lanes one behind the other. Kernels of the groups that
/// follow each other are `group_pitch` elements apart, those of one group `lanes`. `pitch`: of the
/// matrix's rows, in elements.
void turn_rows(const std::uint8_t* from, std::size_t pitch, std::size_t columns,
               std::size_t group_pitch, std::uint8_t* to);
void turn_rows(const std::uint16_t* from, std::size_t pitch, std::size_t columns,
               std::size_t group_pitch, std::uint16_t* to);

}  // namespace reef::rk3588

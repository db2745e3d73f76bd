// What one step of a tensor instruction reads.
#pragma once

#include <array>
#include <cstdint>

#include "edgetpu/sim/program/memory.h"
#include "edgetpu/sim/program/nest.h"
#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/watch/tensor_tap.h"
#include "tile.h"

namespace reef::edgetpu::sim {

struct Operands {
    const TensorOp& op;
    const TileMemory& memory;
    const TensorStep& at;
    std::array<std::int32_t, lane_count> zero;  ///< of each lane's parameter; set by who makes it

    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled at every step
    Operands(const TensorOp& with, const TileMemory& of, const TensorStep& step)
        : op(with), memory(of), at(step) {}

    [[nodiscard]] std::int64_t activation(unsigned j) const {
        const auto* from = &memory.narrow[at.in];
        const std::int32_t x =
            op.in_16bit ? TileMemory::read<std::uint16_t>(from + 2 * j) : from[j];
        return std::int64_t{x} - op.in_zero;
    }
    /// A row holds four bytes a lane: the step's elements, or the one that the quarter selects.
    [[nodiscard]] std::int64_t weight(unsigned lane, unsigned j) const {
        const unsigned width = op.par_16bit ? 2 : 1;
        const unsigned quarter = op.elements() * width < 4 ? at.parameter & 3U : 0;
        const auto* from = &memory.wide[at.parameter >> 2U][4 * lane + quarter + width * j];
        const std::int32_t w = op.par_16bit ? TileMemory::read<std::uint16_t>(from) : *from;
        return std::int64_t{w} - zero[lane];
    }
};

[[nodiscard]] constexpr std::uint32_t row_of(std::uint32_t quarter) {
    return quarter >> 2U;
}

/// Whether the step's operands lie in the memories; else the run stops.
[[nodiscard]] bool reaches(Work& work, const TensorOp& op, const TensorStep& at);

/// Moves the step from a blend's first pixel to the one that it takes, and sets that pixel's
/// weight.
void find_pixel(const Resize& resize, const NestCursor& loops, TensorStep& at);

/// The row that holds the zero points of a group's parameters. Precondition: op.par_zero_rows.
[[nodiscard]] std::uint64_t zero_row_of(const TensorOp& op, std::uint64_t group);

}  // namespace reef::edgetpu::sim

// How the fast engine walks a tensor instruction: as blocks of positions that share their
// parameters. Everything follows from the instruction's nests.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "edgetpu/sim/program/program.h"
#include "tensor_engine.h"
#include "tensor_kernels.h"

namespace reef::edgetpu::sim {

/// A block is `reduction` consecutive steps of each of `positions` consecutive positions. Within a
/// block no wait begins, no group of results ends, and every position walks the same parameters.
struct TensorPlan {
    bool fast = false;     ///< FastTensorEngine executes the instruction
    bool blends = false;   ///< or BlendEngine
    bool reduces = false;  ///< or ReductionEngine; else only the plain engine does
    std::uint32_t reduction = 1;
    std::uint32_t positions = 1;
    /// Sums take several blocks: they stay between them.
    bool in_parts = false;

    // One visit is a block. Addresses of `position` are numbers of positions.
    Nest in_of_block;
    Nest parameter_of_block;
    Nest acc_of_block;
    Nest position_of_block;
    std::uint32_t reduction_mask = 0;  ///< dimensions of position_of_block that belong to a sum

    // Relative to the block's. Of each step of the reduction: bytes of input, and quarter rows.
    std::vector<InputRun> runs;
    std::vector<InputRun> runs_of_quads;  ///< the same, whose steps are of four bytes
    std::vector<std::uint32_t> parameters;
    // One visit is a position.
    Nest in_of_position;
    Nest acc_of_position;
    std::int32_t acc_of_last_step = 0;
    /// One visit is a word of results. Without a crop, dimensions that go on evenly are one.
    Nest out_of_word;
    std::uint32_t avdata_words = 0;  ///< an event comes with every so many; 0: the nest crops

    // In steps; a wait or an event comes with every so many.
    std::array<std::uint32_t, 2> wait_steps{};
    std::uint32_t parameters_steps = 1;
    std::uint32_t partial_sums_steps = 1;
    std::uint32_t release_steps = 1;

    /// Of a lane, with which no sum leaves 32 bits.
    std::int32_t most_bias = 0;
    unsigned step_bytes = 4;  ///< of input
    unsigned step_pairs = 2;  ///< 16-bit pairs per step and lane that are multiplied
    unsigned lanes = 4;       ///< that are computed: 4, 8, 16, 32 or 64

    [[nodiscard]] std::uint32_t steps() const { return reduction * positions; }
};

/// fast is false where sums can leave 32 bits, where an address can leave its memory, and for
/// operands and loops that have no such blocks.
[[nodiscard]] TensorPlan plan_of(const TensorOp& op, const TensorShape& shape);

}  // namespace reef::edgetpu::sim

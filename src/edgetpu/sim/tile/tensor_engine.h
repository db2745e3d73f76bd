// The compute engine: tensor instructions, step by step.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "edgetpu/sim/program/program.h"
#include "tensor_operands.h"
#include "tile.h"

namespace reef::edgetpu::sim {

/// The parts of a tensor instruction that follow from its loops.
struct TensorShape {
    std::uint64_t steps = 0;
    std::uint64_t positions = 0;           ///< results per lane
    std::uint64_t positions_of_group = 0;  ///< results per output group
    std::uint64_t groups = 0;
    /// Live sums: all positions, or one when each is finished before the next begins.
    std::uint64_t live_positions = 0;
};

/// Errors (unsupported, "not modelled"): loops whose results cannot be told apart.
[[nodiscard]] Result<TensorShape> shape_of(const TensorOp& op);

/// Results are stored in words of up to four lanes.
[[nodiscard]] constexpr unsigned whole_words(unsigned lanes) {
    constexpr unsigned lanes_of_word = 4;
    return (lanes + lanes_of_word - 1) / lanes_of_word * lanes_of_word;
}

using LaneSums = std::array<std::int64_t, lane_count>;
/// Sums of the positions that are not finished.
using Sums = std::vector<LaneSums>;

/// Reads like the specification: one step at a time, one lane after the other.
class TensorEngine {
  public:
    /// `sums` must hold shape.live_positions entries and outlive the engine. `watched`: see
    /// TensorTap::begin().
    TensorEngine(const TensorOp& op, const TensorShape& shape, Sums& sums, bool watched = false);
    Outcome advance(Work& work);
    void each_nest(auto&& tell) const {
        tell("loop", loops_);
        tell("in", in_);
        tell("out", out_);
        tell("par", par_);
        tell("acc", acc_);
    }
    /// Goes on from `step`, as if this engine had done the steps before it: with that many results
    /// stored, and those rotating rows used since the last release. The live sums are the caller's.
    void go_to(std::uint64_t step, const NestCursor& out, const std::bitset<wide_rows>& group_rows);

  private:
    [[nodiscard]] std::uint64_t position() const;
    [[nodiscard]] bool last_of_position() const;
    [[nodiscard]] bool first_of_position() const;
    bool step(Work& work);
    // tensor_sums.cpp
    [[nodiscard]] bool read_zeros(Work& work, std::uint64_t group, Operands& step) const;
    bool accumulate(Work& work, LaneSums& sums, std::uint64_t position, std::uint64_t group);
    // tensor_results.cpp
    using LaneBytes = std::array<std::uint8_t, 2 * lane_count>;
    bool finish(Work& work, LaneSums& sums, std::uint64_t group);
    bool keep_sums(Work& work, LaneSums& sums);
    bool store_sums(Work& work, const std::array<std::int32_t, lane_count>& sums);
    [[nodiscard]] LaneBytes requantised(const Work& work, const LaneSums& sums,
                                        unsigned buffer) const;
    bool store(Work& work, std::span<const std::uint8_t> words);
    // tensor_engine.cpp
    void count_events(Work& work);
    void release_group(Work& work);

    const TensorOp* op_;
    TensorShape shape_;
    unsigned used_lanes_;  ///< whose sums anything can see
    Sums* sums_;
    NestCursor loops_;
    NestCursor in_;
    NestCursor out_;
    NestCursor par_;
    NestCursor acc_;
    std::uint64_t step_ = 0;
    std::uint64_t results_ = 0;          ///< per lane
    std::bitset<wide_rows> group_rows_;  ///< of rotating parameters, used by the current group
    bool watched_ = false;
};

}  // namespace reef::edgetpu::sim

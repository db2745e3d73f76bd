// Where results go that nobody looks at on their way.
#pragma once

#include <cstdint>
#include <span>

#include "edgetpu/sim/program/program.h"
#include "tile.h"

namespace reef::edgetpu::sim {

/// Whether the instruction's table is there, should it apply one; else the run stops.
[[nodiscard]] bool has_its_table(Work& work, const TensorOp& op);

/// Stores words along an instruction's output nest and counts its events: as TensorEngine does.
class ResultWords {
  public:
    explicit ResultWords(const TensorOp& op) : op_(&op), out_(op.out) {}
    /// Whole words. False when one has no address, or none in narrow memory: the run stops.
    [[nodiscard]] bool store(Work& work, std::span<const std::uint8_t> words);

  private:
    const TensorOp* op_;
    NestCursor out_;
};

}  // namespace reef::edgetpu::sim

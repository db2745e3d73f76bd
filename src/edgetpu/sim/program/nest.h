// Walking loop nests.
#pragma once

#include <array>
#include <cstdint>

#include "edgetpu/isa/loop_nest.h"

namespace reef::edgetpu::sim {

/// Of an instruction's nests: their products fit 64 bits with room to spare.
inline constexpr double most_visits = 0x1p40;

using Nest = LoopNest;

/// Walks a nest visit by visit.
class NestCursor {
  public:
    NestCursor() = default;
    explicit NestCursor(const Nest& nest) : NestCursor(nest, nest.base) {}
    /// With another base than the nest's own.
    NestCursor(const Nest& nest, std::int32_t base)
        : nest_(&nest),
          address_(static_cast<std::uint32_t>(base)),
          first_count_(nest.count[0]),
          second_count_(nest.count[1]) {
        if (nest.crop_level != 0) enter_pass(Nest::most_dimensions);
    }

    [[nodiscard]] bool done() const { return done_; }
    /// Of the current visit, with the buffer rotation. Precondition: not done().
    [[nodiscard]] std::int32_t address() const {
        const bool second = nest_->rotates() && (passes(nest_->rotate_level) & 1U) != 0;
        return static_cast<std::int32_t>(
            address_ + (second ? static_cast<std::uint32_t>(nest_->rotate_size) : 0));
    }
    /// Goes to the next visit. Returns how many of the lowest dimensions have completed a pass with
    /// the visit that ends; all of them at the end of the walk.
    unsigned advance() {
        ++passes_[0];
        if (++index_[0] < first_count_) {
            address_ += static_cast<std::uint32_t>(nest_->step[0]);
            fresh_ = 0;
            return 0;
        }
        return carry();
    }
    /// Visits that are left in the current pass of dimension 0, this one included.
    [[nodiscard]] std::uint32_t left_in_pass() const { return first_count_ - index_[0]; }
    /// Those of them whose addresses follow each other by the step of dimension 0: one, where every
    /// second visit is moved.
    [[nodiscard]] std::uint32_t left_in_step() const {
        return nest_->rotates() && nest_->rotate_level == 0 ? 1 : left_in_pass();
    }
    /// The same as so many advance(): 1 to left_in_pass().
    unsigned advance(std::uint32_t visits) {
        passes_[0] += visits - 1;
        index_[0] += visits - 1;
        address_ += (visits - 1) * static_cast<std::uint32_t>(nest_->step[0]);
        return advance();
    }
    /// Completed passes of the dimensions below `level`; level 0 counts visits.
    /// Levels beyond the dimensions never complete one.
    [[nodiscard]] std::uint32_t passes(unsigned level) const {
        return level < passes_.size() ? passes_[level] : 0;
    }
    [[nodiscard]] std::uint32_t index(unsigned dimension) const { return index_[dimension]; }
    /// Whether the dimension is at its last index, crops considered.
    [[nodiscard]] bool at_end(unsigned dimension) const {
        return index_[dimension] + 1 == (dimension == 0   ? first_count_
                                         : dimension == 1 ? second_count_
                                                          : nest_->count[dimension]);
    }
    /// Whether the current visit is the first of a pass of the dimensions below `level`.
    [[nodiscard]] bool at_pass_start(unsigned level) const { return level <= fresh_; }
    [[nodiscard]] const Nest& nest() const { return *nest_; }

  private:
    void enter_pass(unsigned completed);
    unsigned carry();
    unsigned carry_whole();

    const Nest* nest_ = nullptr;
    std::uint32_t address_ = 0;       ///< signed; wraps around
    std::uint32_t first_count_ = 0;   ///< of dimension 0 in this pass
    std::uint32_t second_count_ = 0;  ///< of dimension 1
    unsigned fresh_ = Nest::most_dimensions;
    bool done_ = false;
    std::array<std::uint32_t, Nest::most_dimensions> index_{};
    std::array<std::uint32_t, Nest::most_dimensions + 1> passes_{};
};

}  // namespace reef::edgetpu::sim

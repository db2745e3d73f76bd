// Loop nests: the address generators of the Edge TPU's engines.
#pragma once

#include <array>
#include <cstdint>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::sim {

/// Of an instruction's nests: their products fit 64 bits with room to spare.
inline constexpr double most_visits = 0x1p40;

/// One address generator as an instruction describes it. Addresses are in the nest's own unit:
/// bytes or 4-byte words of narrow memory, rows or quarter rows of wide memory, FIFO units.
struct Nest {
    static constexpr unsigned most_dimensions = 8;

    std::int32_t base = 0;
    unsigned dimensions = 0;
    /// Added when dimension d advances and the dimensions below it start again: a difference, which
    /// contains the way back through the inner dimensions.
    std::array<std::int32_t, most_dimensions> step{};
    std::array<std::uint32_t, most_dimensions> count{};
    std::uint32_t mask = 0;
    /// Dimensions below this one make up one group; every second group's addresses are moved by
    /// rotate_size.
    unsigned rotate_level = 0;
    std::int32_t rotate_size = 0;
    bool rotates = false;
    /// If not 0: dimension 0 has crop_count visits in passes in which dimension crop_level is at
    /// its last index.
    unsigned crop_level = 0;
    std::uint32_t crop_count = 0;

    /// Whether the nest moves at all; where an instruction's nest is optional, absent nests do not.
    [[nodiscard]] bool moves() const;
    /// Visits of a whole walk.
    [[nodiscard]] std::uint64_t visits() const;
    /// No fewer than the visits of a whole walk, however many they are; without overflow.
    [[nodiscard]] double longest_walk() const;
    /// Product of the counts below `level`, without the crop.
    [[nodiscard]] std::uint64_t visits_below(unsigned level) const;
    /// Passes of the dimensions from `level` on.
    [[nodiscard]] std::uint64_t passes_from(unsigned level) const;
};

/// `group` is the loop nest's group of fields in the instruction.
[[nodiscard]] Nest read_nest(const Instruction& instruction, const FieldGroup& group);

/// Walks a nest visit by visit.
class NestCursor {
  public:
    NestCursor() = default;
    explicit NestCursor(const Nest& nest) : NestCursor(nest, nest.base) {}
    /// With another base than the nest's own.
    NestCursor(const Nest& nest, std::int32_t base)
        : nest_(&nest), address_(static_cast<std::uint32_t>(base)) {
        enter_pass();
    }

    [[nodiscard]] bool done() const { return done_; }
    /// Of the current visit, with the buffer rotation. Precondition: not done().
    [[nodiscard]] std::int32_t address() const {
        const bool second = nest_->rotates && (passes(nest_->rotate_level) & 1U) != 0;
        return static_cast<std::int32_t>(
            address_ + (second ? static_cast<std::uint32_t>(nest_->rotate_size) : 0));
    }
    /// Goes to the next visit. Returns how many of the lowest dimensions have completed a pass with
    /// the visit that ends; all of them at the end of the walk.
    unsigned advance();
    /// Visits that are left in the current pass of dimension 0, this one included.
    [[nodiscard]] std::uint32_t left_in_pass() const { return first_count_ - index_[0]; }
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
    /// Whether the current visit is the first of a pass of the dimensions below `level`.
    [[nodiscard]] bool at_pass_start(unsigned level) const { return level <= fresh_; }
    [[nodiscard]] const Nest& nest() const { return *nest_; }

  private:
    void enter_pass();

    const Nest* nest_ = nullptr;
    std::uint32_t address_ = 0;      ///< signed; wraps around
    std::uint32_t first_count_ = 0;  ///< of dimension 0 in this pass
    unsigned fresh_ = Nest::most_dimensions;
    bool done_ = false;
    std::array<std::uint32_t, Nest::most_dimensions> index_{};
    std::array<std::uint32_t, Nest::most_dimensions + 1> passes_{};
};

}  // namespace reef::edgetpu::sim

// Loop nests: the address generators of the Edge TPU's engines.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {

/// The product, or the largest number when it is beyond: no program comes near.
[[nodiscard]] constexpr std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return std::numeric_limits<std::uint64_t>::max();
    return product;
}

/// One address generator. Addresses are in the nest's own unit: bytes or 4-byte words of narrow
/// memory, rows or quarter rows of wide memory, FIFO units.
///
/// Visits start at base; each advances the lowest dimension that is not at its end, starts the
/// dimensions below it again, and adds that dimension's step.
struct LoopNest {
    static constexpr unsigned most_dimensions = 8;

    std::int32_t base = 0;
    unsigned dimensions = 0;
    /// Added when dimension d advances and the dimensions below it start again: a difference, which
    /// contains the way back through the inner dimensions.
    std::array<std::int32_t, most_dimensions> step{};
    std::array<std::uint32_t, most_dimensions> count{1, 1, 1, 1, 1, 1, 1, 1};
    std::uint32_t mask = 0;  ///< bit d: dimension d really moves
    /// Dimensions below this one make up one group; every second group's addresses are moved by
    /// rotate_size.
    unsigned rotate_level = 0;
    std::int32_t rotate_size = 0;
    /// If not 0: dimension crop_dimension has crop_count passes while dimension crop_level is at
    /// its last index; a dimension that does not exist always is.
    unsigned crop_level = 0;
    std::uint32_t crop_count = 1;
    std::uint32_t crop_left_out = 0;  ///< compensates later ways back
    /// 0, but 1 where rows are transposed, of which dimension 0 is the side: the instruction says
    /// it.
    unsigned crop_dimension = 0;

    [[nodiscard]] bool rotates() const { return rotate_size != 0; }
    /// Whether the nest moves at all; where an instruction's nest is optional, absent nests do not.
    [[nodiscard]] bool moves() const;
    /// Visits of a whole walk, at most 2^64 - 1.
    [[nodiscard]] std::uint64_t visits() const;
    /// No fewer than the visits of a whole walk, however many they are.
    [[nodiscard]] double longest_walk() const;
    /// Product of the counts below `level`, without the crop.
    [[nodiscard]] std::uint64_t visits_below(unsigned level) const;
    /// Passes of the dimensions from `level` on; from 0 on these are the visits.
    [[nodiscard]] std::uint64_t passes_from(unsigned level) const;
    /// Visits of one pass, of that number, of the dimensions below `level`, crops considered.
    /// Precondition: level > crop_dimension.
    [[nodiscard]] std::uint64_t visits_of_pass(unsigned level, std::uint64_t pass) const;

    friend bool operator==(const LoopNest&, const LoopNest&) = default;
};

/// The group must be of kind loop_nest.
[[nodiscard]] LoopNest read_loop_nest(Bytes instruction, const InstructionInfo& info,
                                      const FieldGroup& group);

/// By dimension, the distance of two of its passes: what people mean by a stride.
/// stride_d = step_d + sum over k < d of stride_k * (count_k - 1). In two's complement, modulo
/// 2^64: each is a function of the other, so that any bits survive the way there and back.
using Strides = std::array<std::uint64_t, LoopNest::most_dimensions>;
[[nodiscard]] Strides strides_of(const LoopNest& nest);
/// The steps that belong to strides, for dimensions of so many passes less one.
[[nodiscard]] Strides steps_of(const Strides& strides, const Strides& limits, unsigned dimensions);

}  // namespace reef::edgetpu

// How often the loops of an instruction pass, cropping included.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::check {

/// The product, or the largest number when it is beyond: no program comes near.
[[nodiscard]] constexpr std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) return std::numeric_limits<std::uint64_t>::max();
    return product;
}

struct NestPasses {
    static constexpr unsigned most_dimensions = 8;
    std::array<std::uint64_t, most_dimensions> counts{1, 1, 1, 1, 1, 1, 1, 1};
    unsigned dimensions = 0;
    unsigned crop_level = 0;          ///< 0: no cropping
    std::uint64_t cropped_count = 0;  ///< of dimension 0, where its passes are cropped

    /// Passes of dimension 0 that visit `index`, the number of the pass: the full count, or the
    /// cropped one where dimension crop_level is at its last index.
    [[nodiscard]] std::uint64_t count_of_pass(std::uint64_t index) const {
        if (crop_level == 0) return counts[0];
        if (crop_level >= dimensions) return cropped_count;
        for (unsigned d = 1; d < crop_level; ++d) index /= counts[d];
        return index % counts[crop_level] + 1 == counts[crop_level] ? cropped_count : counts[0];
    }

    /// Passes of the dimensions from `level` on; from 0 on these are the visits.
    [[nodiscard]] std::uint64_t from(unsigned level) const {
        if (level == 0) return visits();
        std::uint64_t passes = 1;
        for (unsigned d = level; d < dimensions; ++d)
            passes = saturating_product(passes, counts[d]);
        return passes;
    }

    [[nodiscard]] std::uint64_t visits() const {
        const auto rows = from(1);
        if (crop_level == 0) return saturating_product(rows, counts[0]);
        const auto cropped = crop_level >= dimensions ? rows : rows / counts[crop_level];
        const auto full = saturating_product(rows - cropped, counts[0]);
        const auto rest = saturating_product(cropped, cropped_count);
        return full > std::numeric_limits<std::uint64_t>::max() - rest
                   ? std::numeric_limits<std::uint64_t>::max()
                   : full + rest;
    }
};

/// `group` must be of kind loop_nest or loops.
[[nodiscard]] NestPasses passes_of(const Instruction& instruction, const FieldGroup& group);

}  // namespace reef::edgetpu::check

// Which elements of an input row lie to the left or to the right of those of a resized row, for
// rows whose pixels fill no vector.
#pragma once

#include "base/vector_targets.h"
// After it:
#include <hwy/base.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/fast/aligned_array.h"
#include "cpu/prepare/resizing.h"

namespace reef::cpu {

/// Elements of an output row are rounded up to whole vectors of any instruction set.
inline constexpr std::size_t row_multiple = 64;

struct RowTaps {
    /// Where the input of each output vector begins: it is one vector long at most.
    std::vector<std::uint32_t> begins{};
    /// Of each output element: in that vector; in the row where `scattered`.
    hwy::AlignedFreeUniquePtr<std::int32_t[]> indices;
    bool scattered = false;  ///< a vector's input is longer than one
};

struct RowOfPixels {
    std::size_t channels = 0;
    std::size_t length = 0;  ///< elements of the input's row
};

/// `side`: a sample's member, lower or upper. Precondition: there are columns and channels.
template <typename Sample>
[[nodiscard]] RowTaps taps_of(const std::vector<Sample>& columns, std::int32_t Sample::*side,
                              RowOfPixels row, std::size_t lanes) {
    const std::size_t count = columns.size() * row.channels;
    const std::size_t whole = hwy::RoundUpTo(count, row_multiple);
    RowTaps taps{.indices = aligned_array<std::int32_t>(whole)};
    for (std::size_t i = 0; i < whole; ++i) {
        const std::size_t at = std::min(i, count - 1);
        taps.indices[i] =
            columns[at / row.channels].*side * static_cast<std::int32_t>(row.channels) +
            static_cast<std::int32_t>(at % row.channels);
    }
    for (std::size_t i = 0; i < whole; i += lanes) {
        const auto [first, last] =
            std::minmax_element(taps.indices.get() + i, taps.indices.get() + i + lanes);
        const auto begin =
            std::min(static_cast<std::size_t>(*first), row.length - std::min(row.length, lanes));
        taps.scattered |= static_cast<std::size_t>(*last) >= begin + lanes || row.length < lanes;
        taps.begins.push_back(static_cast<std::uint32_t>(begin));
    }
    if (taps.scattered) return taps;
    for (std::size_t i = 0; i < whole; ++i)
        taps.indices[i] -= static_cast<std::int32_t>(taps.begins[i / lanes]);
    return taps;
}

}  // namespace reef::cpu

// What output rows of RESIZE_BILINEAR on bytes are mixed from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu/fast/row_taps.h"
#include "cpu/prepare/resizing.h"

namespace reef::cpu {

/// How the pixels of an input row become those of a row as wide as the output.
template <typename Sample, typename Lane>
struct BlendedRow {
    std::vector<Sample> columns;
    RowOfPixels row;
    int bits = 0;  ///< of integer fractions
    /// Where pixels fill no vector; without memory otherwise.
    RowTaps left{}, right{};
    hwy::AlignedFreeUniquePtr<Lane[]> fractions{};  ///< of each output element

    [[nodiscard]] std::size_t length() const { return columns.size() * row.channels; }
};

template <typename Lane, typename Sample>
[[nodiscard]] BlendedRow<Sample, Lane> blended_row(std::vector<Sample> columns, RowOfPixels row,
                                                   int bits, std::size_t lanes) {
    BlendedRow<Sample, Lane> blend{.columns = std::move(columns), .row = row, .bits = bits};
    if (row.channels == 0 || row.channels >= lanes) return blend;
    blend.left = taps_of(blend.columns, &Sample::lower, row, lanes);
    blend.right = taps_of(blend.columns, &Sample::upper, row, lanes);
    const std::size_t whole = hwy::RoundUpTo(blend.length(), row_multiple);
    blend.fractions = aligned_array<Lane>(whole);
    for (std::size_t i = 0; i < whole; ++i)
        blend.fractions[i] = blend.columns[std::min(i, blend.length() - 1) / row.channels].fraction;
    return blend;
}

/// Two blended rows and how far between them an output row lies.
template <typename Blend>
struct RowPair {
    using Fraction = std::conditional_t<std::is_integral_v<Blend>, std::int32_t, float>;
    const Blend* lower = nullptr;
    const Blend* upper = nullptr;
    Fraction fraction = 0;
    int bits = 0;  ///< of an integer fraction
};

/// An output row of uint8 by its definition.
struct PlainRow {
    const std::uint8_t* lower = nullptr;
    const std::uint8_t* upper = nullptr;
    float fraction = 0;
    const BlendedRow<FloatSample, float>& columns;

    [[nodiscard]] std::uint8_t operator[](std::size_t i) const {
        const std::size_t channels = columns.row.channels;
        const std::size_t channel = i % channels;
        const FloatSample& column = columns.columns[i / channels];
        const auto of = [&](const std::uint8_t* row, std::int32_t pixel, float weight) {
            return static_cast<float>(row[static_cast<std::size_t>(pixel) * channels + channel]) *
                   weight;
        };
        return static_cast<std::uint8_t>(
            of(lower, column.lower, (1 - fraction) * (1 - column.fraction)) +
            of(lower, column.upper, (1 - fraction) * column.fraction) +
            of(upper, column.lower, fraction * (1 - column.fraction)) +
            of(upper, column.upper, fraction * column.fraction) + 0.5F);
    }
};

/// Samples whose fractions have eight bits at most in both directions together: sums of products
/// with bytes have 16.
struct NarrowSamples {
    std::vector<FixedSample> rows, columns;
    int row_bits = 0, column_bits = 0;
};

}  // namespace reef::cpu

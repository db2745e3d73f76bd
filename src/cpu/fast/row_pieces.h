// A row of RESIZE_BILINEAR on bytes whose pixels are whole pieces of 8 bytes: vectors are put
// together from pieces, whichever pixels these are of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/fast/aligned_array.h"
#include "cpu/fast/blended_row.h"
#include "cpu/fast/row_taps.h"
#include "cpu/prepare/resizing.h"

namespace reef::cpu {

struct RowOfPieces {
    static constexpr std::size_t piece = 8;  ///< bytes
    /// Weights are multiplied as signed bytes where pixels are unsigned.
    static constexpr int most_bits_of_uint8 = 6, most_bits_of_int8 = 7;
    /// Of a vector's pieces, room for as many as any vector has.
    static constexpr std::size_t weights_of_vector = 16;

    std::size_t columns = 0;
    RowOfPixels row;
    /// Where pieces begin in the input's row. Behind the last come others, so that there are whole
    /// vectors of any instruction set.
    std::vector<std::uint32_t> left{}, right{};
    /// Of each piece how much it has of the left and of the right.
    hwy::AlignedFreeUniquePtr<std::uint8_t[]> weights{};

    [[nodiscard]] std::size_t length() const { return columns * row.channels; }
};

/// Columns with fractions of 2^bits. Precondition: as many channels as some pieces have.
[[nodiscard]] RowOfPieces row_of_pieces(const std::vector<FixedSample>& columns, RowOfPixels row,
                                        int bits);

/// Whether this machine's vectors have pieces.
[[nodiscard]] bool has_row_pieces();

/// `out`: the blends, row_multiple elements rounded up, in vectors' own order.
void blend_pieces(const std::uint8_t* in, const RowOfPieces& row, std::int16_t* out);
void blend_pieces(const std::int8_t* in, const RowOfPieces& row, std::int16_t* out);
/// Of two such rows. `bits` of the rows' and of the columns' fractions are 8 together.
void mix_pieces(const RowPair<std::int16_t>& rows, std::size_t count, std::uint8_t* out);
void mix_pieces(const RowPair<std::int16_t>& rows, std::size_t count, std::int8_t* out);

}  // namespace reef::cpu

// Rows of RESIZE_BILINEAR on bytes whose pixels are whole pieces of 8 bytes: vectors are put
// together from pieces, whichever pixels these are of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/fast/aligned_array.h"
#include "cpu/fast/row_taps.h"
#include "cpu/prepare/resizing.h"

namespace reef::cpu {

/// Pieces of an input row that lie beside those of an output row, on one side of them. Behind the
/// last come others, so that there are whole vectors of any instruction set.
struct PiecesBeside {
    static constexpr std::uint32_t apart = 0xFFFFFFFF;

    std::vector<std::uint32_t> begins{};  ///< of each piece, in bytes
    /// Of vectors of 32 bytes and more whose pieces are no neighbours: where a vector of the input
    /// row begins that has all of theirs, or `apart`; and of each 4 bytes which of that one's they
    /// are.
    std::vector<std::uint32_t> vector_begins{};
    hwy::AlignedFreeUniquePtr<std::uint8_t[]> quarters{};
};

struct RowOfPieces {
    static constexpr std::size_t piece = 8;  ///< bytes
    /// Weights are multiplied as signed bytes where pixels are unsigned.
    static constexpr int most_bits_of_uint8 = 6, most_bits_of_int8 = 7;
    /// Of a vector's pieces, room for as many as any vector has.
    static constexpr std::size_t weights_of_vector = 16;

    std::size_t columns = 0;
    RowOfPixels row;
    PiecesBeside left{}, right{};
    /// Of each piece how much it has of the left and of the right.
    hwy::AlignedFreeUniquePtr<std::uint8_t[]> weights{};

    [[nodiscard]] std::size_t length() const { return columns * row.channels; }
};

/// Columns with fractions of 2^bits. Precondition: as many channels as some pieces have.
[[nodiscard]] RowOfPieces row_of_pieces(const std::vector<FixedSample>& columns, RowOfPixels row,
                                        int bits);

/// Output rows that are computed side by side at most: with more, those of a power of two of bytes
/// push each other out of the first-level cache.
inline constexpr std::size_t most_rows_of_pieces = 8;
/// Of an output, of all batches, that does not stay in the second-level cache: memory takes few
/// rows at once well.
inline constexpr std::size_t most_rows_in_memory = 4, most_cached_output_bytes = 1U << 19U;

/// Output rows of an image, one behind the other. An input row that several of them lie beside is
/// blended once for them: blends stay in registers.
template <typename T>
struct RowsOfPieces {
    const T* image = nullptr;
    const FixedSample* rows = nullptr;
    std::size_t count = 0;  ///< at most most_rows_of_pieces
    int bits = 0;           ///< of the rows' fractions; with the columns' 8
    T* out = nullptr;
};

/// Whether this machine's vectors have pieces.
[[nodiscard]] bool has_row_pieces();

void resize_pieces(const RowsOfPieces<std::uint8_t>& rows, const RowOfPieces& row);
void resize_pieces(const RowsOfPieces<std::int8_t>& rows, const RowOfPieces& row);

}  // namespace reef::cpu

// Rows of 8-bit activations, widened to int16, times a constant matrix: what CONV_2D and
// FULLY_CONNECTED come down to.
#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/convolution.h"
#include "cpu/fast/channel_blocks.h"

namespace reef::cpu {

/// Weights minus their zero point as int16, per block of output channels: for each pair of depths
/// the pair of weights of every lane.
struct PackedMatrix {
    std::size_t depth = 0;  ///< int16 per row, even
    std::vector<ChannelBlock> blocks;
    hwy::AlignedFreeUniquePtr<std::int16_t[]> weights;
    std::size_t weights_size = 0;
    OutputStage stage;

    [[nodiscard]] std::size_t packed_bytes() const {
        return weights_size * sizeof(std::int16_t) + stage.size * sizeof(std::int32_t);
    }
};

/// Rows are activations without their zero point subtracted; it is in the bias instead. The row of
/// a pixel is its taps in order, each with `depth` values. A row of odd length has one value more,
/// of any value.
///
/// Laid out, a matrix has its sizes but no weights yet; pack_matrix() fills it.
[[nodiscard]] PackedMatrix lay_out_matrix(const Convolution& c, std::size_t widest);
void pack_matrix(const Convolution& c, PackedMatrix& packed);

/// Consecutive output pixels of a convolution; positions count over batch, rows and columns.
struct PixelRange {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// The functions of one SIMD target.
struct MatrixFunctions {
    const char* target = "";
    std::size_t widest_block = 8;
    std::size_t rows_at_once = 1;  ///< the number of rows that a full step takes
    /// Writes the rows of `pixels`, (c.h.taps * c.w.taps * c.depth + 1) / 2 * 2 values each, to
    /// `rows`, and up to gather_slack values of any value behind them.
    void (*gather)(const Convolution& c, const std::byte* input, PixelRange pixels,
                   std::int16_t* rows) = nullptr;
    /// out[r * out_stride + channel] for `count` rows and the channels of blocks [begin, end).
    void (*multiply)(const PackedMatrix& matrix, const std::int16_t* rows, std::size_t count,
                     std::size_t begin, std::size_t end, std::uint8_t* out,
                     std::size_t out_stride) = nullptr;
};
inline constexpr std::size_t gather_slack = 64;

/// Of the target that is dispatched to now; null for one without vectors.
[[nodiscard]] const MatrixFunctions* matrix_functions();

}  // namespace reef::cpu

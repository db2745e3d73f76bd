// Which banks of the CBUF hold features and which weights, and how many rows fit at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/graph.h"

namespace reef::rk3588::lowering {

/// A convolution as the chip sees it.
struct ConvolutionShape {
    std::int32_t height = 0, width = 0, channels = 0;  ///< of the input
    std::int32_t out_height = 0, out_width = 0, out_channels = 0;
    compiler::Window window;
    bool depthwise = false;

    [[nodiscard]] std::int32_t padded_channels() const;  ///< of the input, whole atoms
    [[nodiscard]] std::int32_t kernels() const;          ///< that are stored
    [[nodiscard]] std::int32_t stepped_channels()
        const;  ///< of the output, as the arrays make them
    [[nodiscard]] std::int64_t bytes_per_kernel() const;
    [[nodiscard]] std::int64_t weight_bytes() const { return bytes_per_kernel() * kernels(); }
    /// Pixels of whole atoms in one row, in entries of the CBUF.
    [[nodiscard]] std::int64_t entries_per_row() const;
};

struct BufferPlan {
    std::int32_t data_banks = 0, weight_banks = 0;
    bool keeps_weights = false;  ///< all are in the banks at once: later tasks use them again
    std::int32_t rows = 0;       ///< of the input, at once
};

/// Rows of results that one task computes.
struct RowTile {
    std::int32_t first = 0, rows = 0;        ///< of the output
    std::int32_t first_in = 0, rows_in = 0;  ///< of the input
    std::int32_t pad_top = 0;
};

/// Nothing: a group of kernels does not fit.
[[nodiscard]] std::optional<BufferPlan> buffer_plan(const ConvolutionShape& shape);

/// From top to bottom. Empty: the rows of one row of results do not fit.
[[nodiscard]] std::vector<RowTile> row_tiles(const ConvolutionShape& shape, const BufferPlan& plan);

/// How a convolution becomes tasks: for some output channels at a time, for some rows at a time.
struct Tiling {
    std::int32_t channels = 0;  ///< of the output, of a task: all, or one surface's
    BufferPlan buffer;
    std::vector<RowTile> rows;
};
/// All channels at once where they fit, else those of one surface. Nothing: neither fits.
[[nodiscard]] std::optional<Tiling> tiling_of(const ConvolutionShape& shape);

}  // namespace reef::rk3588::lowering

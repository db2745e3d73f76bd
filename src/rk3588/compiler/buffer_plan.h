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
    /// So many pixels of whole atoms, in entries of the CBUF.
    [[nodiscard]] std::int64_t entries_of(std::int32_t pixels) const;
    /// The same for some of the output channels.
    [[nodiscard]] ConvolutionShape part(std::int32_t channel_count) const;
};

struct BufferPlan {
    std::int32_t data_banks = 0, weight_banks = 0;
    bool keeps_weights = false;  ///< all are in the banks at once: later tasks use them again
    std::int32_t rows = 0;       ///< of the input, at once
};

/// Some of the results along one side of the image, and what of the input they take.
struct Stretch {
    std::int32_t first = 0, count = 0;        ///< of the output
    std::int32_t first_in = 0, count_in = 0;  ///< of the input
    std::int32_t padding = 0;                 ///< in front of the first one
};

/// What one task computes.
struct Tile {
    Stretch rows, columns;
};

/// From an image's part of so many rows and columns. Nothing: a group of kernels does not fit.
[[nodiscard]] std::optional<BufferPlan> buffer_plan(const ConvolutionShape& shape,
                                                    std::int32_t rows, std::int32_t columns);

struct Rows {
    std::int32_t first = 0, count = 0;
};

/// Tasks for some rows of all results: whole rows, or where none fits columns, too, from top to
/// bottom and from left to right.
struct Tiling {
    BufferPlan buffer;
    std::vector<Tile> tiles;
};
[[nodiscard]] std::optional<Tiling> tiling_of(const ConvolutionShape& shape, const Rows& rows);

/// Output channels of a task: all, or where these do not fit those of one surface. 0: neither.
[[nodiscard]] std::int32_t channels_of_task(const ConvolutionShape& shape);

/// What one core computes of some output channels.
struct Piece {
    std::int32_t core = 0;
    std::int32_t channel = 0, channels = 0;
    BufferPlan buffer;
    std::vector<Tile> tiles;
};

/// How cores share a convolution.
enum class Split : std::uint8_t { rows, channels };

/// In the order of cores; first cores get one row or one group of channels more. Empty: there are
/// fewer rows or groups than cores, or it does not fit. Precondition: `task_channels` fit.
[[nodiscard]] std::vector<Piece> pieces_of(const ConvolutionShape& shape,
                                           std::int32_t task_channels, Split split,
                                           std::int32_t cores);

}  // namespace reef::rk3588::lowering

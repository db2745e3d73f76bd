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
    /// The same for some of the output channels.
    [[nodiscard]] ConvolutionShape part(std::int32_t channel_count) const;
};

/// How weights are in the CBUF.
enum class Weights : std::uint8_t {
    stay,          ///< all at once, with the spare bank that an independent driver leaves
    fill,          ///< all at once, without it, as in vendors' programs
    stream_again,  ///< some at a time, for each task anew
};

struct BufferPlan {
    std::int32_t data_banks = 0, weight_banks = 0;
    Weights weights = Weights::stay;
    [[nodiscard]] bool keeps_weights() const { return weights != Weights::stream_again; }
    std::int32_t rows = 0;  ///< of the input, at once
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

/// From an image's part of so many rows and columns. Nothing: the weights, or a group of kernels
/// that streams, do not fit.
[[nodiscard]] std::optional<BufferPlan> buffer_plan(const ConvolutionShape& shape,
                                                    std::int32_t rows, std::int32_t columns,
                                                    Weights weights);

struct Rows {
    std::int32_t first = 0, count = 0;
};

/// Tasks for some rows of all results: whole rows, or where none fits columns, too, from top to
/// bottom and from left to right. Weights stay or come again, whichever fetches fewer bytes; they
/// go without a spare bank only where they do not fit with it.
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

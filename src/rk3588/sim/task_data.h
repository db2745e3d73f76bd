// What the engines of one task hand to each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reef/base/result.h"
#include "reef_spec/rk3588_isa.h"
#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588::sim {

enum class Elements : std::uint8_t { int8, fp16 };

/// Bytes of an element in memory.
[[nodiscard]] constexpr unsigned bytes_of(Elements elements) {
    return elements == Elements::int8 ? 1 : 2;
}
/// Channels of one pixel that lie together.
[[nodiscard]] constexpr unsigned lanes_of_atom(Elements elements) {
    return spec::atom_bytes / bytes_of(elements);
}

/// Features in the CBUF, [row][pixel][channel]. int8 as int16, fp16 as float.
struct Features {
    unsigned width = 0;     ///< pixels that were fetched
    unsigned height = 0;    ///< rows that were fetched
    unsigned channels = 0;  ///< lanes
    unsigned real = 0;      ///< DATAIN_CHANNEL_REAL + 1
    std::vector<std::int16_t> integers;
    std::vector<float> floats;
};

/// What the sequencer does with features and weights.
struct Windows {
    unsigned width = 0;  ///< of results
    unsigned height = 0;
    unsigned kernel_width = 0;
    unsigned kernel_height = 0;
    unsigned stride_x = 0;
    unsigned stride_y = 0;
    unsigned dilation_x = 0;
    unsigned dilation_y = 0;
    unsigned pad_left = 0;
    unsigned pad_top = 0;
    std::uint32_t pad_value = 0;
};

/// Features and weights of a convolution, as CNA gives them to CORE.
struct Convolution {
    Elements elements = Elements::int8;
    bool depthwise = false;
    Features features;
    Windows windows;
    unsigned kernels = 0;  ///< 1 of a depthwise convolution
    /// As in memory: direct [group of kernels][block of lanes][y][x][kernel][lane], depthwise
    /// [block of lanes][y][x][lane].
    std::span<const std::byte> weights;
};

/// Data on their way through the DPU, [row][pixel][channel].
struct Sums {
    unsigned width = 0;
    unsigned height = 0;
    unsigned channels = 0;
    Elements elements = Elements::int8;
    std::vector<std::int32_t> integers;  ///< of int8
    std::vector<float> floats;           ///< of fp16
    /// Sum of each window's features, for the correction by the weights' zero point: one for each
    /// pixel, or for each channel of a depthwise convolution. Empty without QD_EN.
    std::vector<std::int32_t> feature_sums;
    [[nodiscard]] std::size_t pixels() const { return std::size_t{width} * height; }
};

/// int8 or fp16. Errors: any other precision, by the field's name.
[[nodiscard]] Result<Elements> elements_of(std::uint32_t precision, const char* field);

}  // namespace reef::rk3588::sim

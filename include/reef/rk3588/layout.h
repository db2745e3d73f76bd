// How features and weights lie in the memory of the RK3588's NPU, and the way there and back.
//
// A cube is NC1HWC2: surfaces of whole pixels, each of which holds C2 channels in an atom of 16
// bytes (C2: 16 of int8, 8 of two bytes, 4 of four bytes). Bytes of a real chip show the cubes of
// int8 and fp16 and the weights of int8 depthwise convolutions; an independent driver's memory
// those of int8 direct ones; weights of fp16 are others' measurements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reef/base/bytes.h"

namespace reef::rk3588 {

/// A cube of C channels, H rows and W pixels a row; `c2` channels in an atom.
struct CubeShape {
    std::size_t channels = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    std::size_t c2 = 16;

    [[nodiscard]] constexpr std::size_t surfaces() const { return (channels + c2 - 1) / c2; }
    /// With the lanes beyond the last channel.
    [[nodiscard]] constexpr std::size_t elements() const {
        return surfaces() * height * width * c2;
    }
};

/// The element of a cube, counted from 0; coordinates from 0. What others call feature_data, whose
/// coordinates count from 1.
[[nodiscard]] constexpr std::size_t feature_index(const CubeShape& shape, std::size_t c,
                                                  std::size_t y, std::size_t x) {
    return ((c / shape.c2 * shape.height + y) * shape.width + x) * shape.c2 + c % shape.c2;
}

/// [row][pixel][channel] to a cube; `element_bytes` is 1, 2 or 4. Lanes beyond the last channel
/// become `pad` in every byte. Preconditions: nhwc has height * width * channels elements, cube
/// shape.elements().
void to_cube(const CubeShape& shape, std::size_t element_bytes, Bytes nhwc, MutableBytes cube,
             std::byte pad = std::byte{0});
/// Back; the lanes beyond the last channel are dropped.
void from_cube(const CubeShape& shape, std::size_t element_bytes, Bytes cube, MutableBytes nhwc);

/// Weights of a direct convolution: `kernels` output channels, `lanes` input channels as they are
/// stored (int8: a multiple of 16; fp16: of 8). Groups of 32 kernels (fp16: 16) hold blocks of 32
/// lanes, those the taps, those the kernels, those the lanes; last groups and blocks are shorter.
struct WeightShape {
    std::size_t kernels = 0;
    std::size_t height = 1;
    std::size_t width = 1;
    std::size_t lanes = 0;

    [[nodiscard]] constexpr std::size_t elements() const {
        return kernels * height * width * lanes;
    }
};

namespace detail {
[[nodiscard]] constexpr std::size_t weight_index(const WeightShape& shape, std::size_t group,
                                                 std::size_t kernel, std::size_t y, std::size_t x,
                                                 std::size_t lane) {
    constexpr std::size_t block = 32;
    const std::size_t first_kernel = kernel / group * group;
    const std::size_t kernels =
        shape.kernels - first_kernel < group ? shape.kernels - first_kernel : group;
    const std::size_t first_lane = lane / block * block;
    const std::size_t lanes = shape.lanes - first_lane < block ? shape.lanes - first_lane : block;
    const std::size_t taps = shape.height * shape.width;
    return first_kernel * taps * shape.lanes + kernels * taps * first_lane +
           ((y * shape.width + x) * kernels + (kernel - first_kernel)) * lanes +
           (lane - first_lane);
}
}  // namespace detail

/// The element of packed int8 weights; coordinates count from 0.
[[nodiscard]] constexpr std::size_t int8_weight_index(const WeightShape& shape, std::size_t kernel,
                                                      std::size_t y, std::size_t x,
                                                      std::size_t lane) {
    return detail::weight_index(shape, 32, kernel, y, x, lane);
}
/// The same of fp16 (and of all elements of two bytes).
[[nodiscard]] constexpr std::size_t fp16_weight_index(const WeightShape& shape, std::size_t kernel,
                                                      std::size_t y, std::size_t x,
                                                      std::size_t lane) {
    return detail::weight_index(shape, 16, kernel, y, x, lane);
}
/// Of a depthwise convolution: blocks of 64 lanes (two bytes: 32) hold the taps, those the lanes.
[[nodiscard]] constexpr std::size_t depthwise_weight_index(const WeightShape& shape,
                                                           std::size_t block, std::size_t y,
                                                           std::size_t x, std::size_t lane) {
    const std::size_t first = lane / block * block;
    const std::size_t lanes = shape.lanes - first < block ? shape.lanes - first : block;
    return shape.height * shape.width * first + (y * shape.width + x) * lanes + (lane - first);
}

/// What others call so, with coordinates that count from 1: elements of a cube, and of the packed
/// weights of a product of matrices, whose kernels k are columns and whose channels c (C in all, a
/// multiple of 32) are rows.
[[nodiscard]] constexpr std::size_t feature_data(std::size_t C, std::size_t H, std::size_t W,
                                                 std::size_t C2, std::size_t c, std::size_t h,
                                                 std::size_t w) {
    return feature_index({C, H, W, C2}, c - 1, h - 1, w - 1);
}
[[nodiscard]] constexpr std::size_t weight_int8(std::size_t C, std::size_t k, std::size_t c) {
    return int8_weight_index({(k + 31) / 32 * 32, 1, 1, C}, k - 1, 0, 0, c - 1);
}
[[nodiscard]] constexpr std::size_t weight_fp16(std::size_t C, std::size_t k, std::size_t c) {
    return fp16_weight_index({(k + 15) / 16 * 16, 1, 1, C}, k - 1, 0, 0, c - 1);
}

/// Some rows of a matrix of k rows and n columns, whose bytes are [k][n], or [n][k] `by_columns`.
struct MatrixStretch {
    std::size_t k = 0, n = 0;
    std::size_t first = 0, count = 0;  ///< rows
    bool by_columns = false;
};
/// To weights of as many kernels as columns, of one pixel, in whole blocks of 32 lanes and groups
/// of 32 kernels (fp16: 16); what fills them up is 0. Preconditions: `matrix` has k * n elements,
/// `packed` those of the blocks.
void pack_int8_matrix(const MatrixStretch& stretch, Bytes matrix, MutableBytes packed);
void pack_fp16_matrix(const MatrixStretch& stretch, Bytes matrix, MutableBytes packed);

/// [kernel][row][pixel][channel] int8 to packed weights. `channels` is that of `ohwi`; lanes beyond
/// hold `pad_lane` (the zero point, so that they cancel), kernels beyond `kernels` of `ohwi` 0.
/// Preconditions: ohwi has kernels * height * width * channels bytes, packed shape.elements().
void pack_int8_weights(const WeightShape& shape, std::size_t kernels, std::size_t channels,
                       Bytes ohwi, std::byte pad_lane, MutableBytes packed);
/// [row][pixel][channel] int8 of a depthwise convolution; shape.kernels is 1.
void pack_int8_depthwise_weights(const WeightShape& shape, std::size_t channels, Bytes hwc,
                                 std::byte pad_lane, MutableBytes packed);
/// [kernel][row][pixel][channel] of two bytes each; lanes and kernels beyond hold 0.
void pack_fp16_weights(const WeightShape& shape, std::size_t kernels, std::size_t channels,
                       Bytes ohwi, MutableBytes packed);

}  // namespace reef::rk3588

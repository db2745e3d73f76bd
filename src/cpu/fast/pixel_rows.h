// What a convolution's output pixels read, one row of values for each.
#pragma once

#include <cstddef>

#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// Consecutive output pixels of a convolution; positions count over batch, rows and columns.
struct PixelRange {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// Bytes of any value that gathered rows write behind their end.
inline constexpr std::size_t gather_slack = 128;

/// Items of so many products that a piece of them takes a microsecond: to hand pieces to another
/// thread and wait for it takes as long. A product of floats takes as long as a few of bytes.
[[nodiscard]] inline std::size_t grain_of(std::size_t products, std::size_t products_at_once) {
    constexpr std::size_t piece = 1 << 12;
    return piece * products_at_once / (products + 1) + 1;
}
inline constexpr std::size_t dense_byte_products = 64, dense_float_products = 16;
inline constexpr std::size_t depthwise_byte_products = 8, depthwise_float_products = 4;
/// Of windows that become their mean or their largest element.
inline constexpr std::size_t pooled_bytes = 32;

/// Whether output pixel p reads input pixel p and no other.
[[nodiscard]] inline bool reads_in_order(const Convolution& c) {
    const auto in_order = [](const WindowAxis& axis) {
        return axis.taps == 1 && axis.stride == 1 && axis.pad == 0 && axis.in == axis.out;
    };
    return in_order(c.h) && in_order(c.w);
}

}  // namespace reef::cpu

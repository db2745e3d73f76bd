#pragma once

#include <algorithm>

#include "cpu/plain/operator_case.h"

namespace reef::plain {

/// One axis of a window.
struct Axis {
    std::int32_t in = 1, out = 1, taps = 1, stride = 1, dilation = 1, before = 0;
    [[nodiscard]] std::int32_t source(std::int32_t o, std::int32_t tap) const {
        return o * stride - before + tap * dilation;
    }
    [[nodiscard]] bool holds(std::int32_t i) const { return i >= 0 && i < in; }
};

/// With sizes that fit each other.
inline Axis random_axis(Choices& c, model::Padding padding, bool dilated) {
    Axis axis{.taps = c.pick(1, 4), .stride = c.pick(1, 3)};
    if (dilated && c.one_in(3)) axis.dilation = 2;
    const std::int32_t reach = (axis.taps - 1) * axis.dilation + 1;
    axis.in = padding == model::Padding::valid ? reach + c.pick(0, 6) : c.pick(1, 9);
    axis.out = padding == model::Padding::valid ? (axis.in - reach) / axis.stride + 1
                                                : (axis.in + axis.stride - 1) / axis.stride;
    if (padding == model::Padding::same)
        axis.before = std::max((axis.out - 1) * axis.stride + reach - axis.in, 0) / 2;
    return axis;
}

}  // namespace reef::plain

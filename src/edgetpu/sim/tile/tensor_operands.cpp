#include "tensor_operands.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::edgetpu::sim {
namespace {

// Weight of one of the four taps: the tap's distance, in quarter pixels, times 32.
std::int64_t tap_weight(unsigned tap, unsigned phase) {
    const std::int64_t far = 32 * std::int64_t{phase & 3U};
    return tap == 1 ? far : 128 - far;
}

// Of the source, where a result's first tap is; the nearest pixel is found by rounding.
unsigned quarter_pixels(const Resize::Axis& axis, const NestCursor& loops) {
    constexpr unsigned half_a_pixel = 2;
    return axis.phase + axis.step * loops.index(axis.level) + (axis.nearest ? half_a_pixel : 0);
}

}  // namespace

bool reaches(Work& work, const TensorOp& op, const TensorStep& at) {
    const bool blends = op.kind == TensorKind::resize;
    if ((blends || op.kind == TensorKind::mac) && at.in >= narrow_bytes) {
        work.stop(fmt::format("reads narrow byte {:#x}", at.in));
        return false;
    }
    if (blends) return true;
    if (row_of(at.parameter) >= wide_rows) {
        work.stop(fmt::format("reads wide row {:#x}", row_of(at.parameter)));
        return false;
    }
    if (op.par_16bit && op.elements() == 1 && (at.parameter & 1U) != 0) {
        work.stop(fmt::format("reads a 16-bit parameter at quarter row {:#x}, which is odd",
                              at.parameter));
        return false;
    }
    return true;
}

void find_pixel(const Resize& resize, const NestCursor& loops, TensorStep& at) {
    const unsigned x = quarter_pixels(resize.x, loops);
    const unsigned y = quarter_pixels(resize.y, loops);
    at.in += (x >> 2U) * static_cast<std::uint32_t>(resize.pixel_stride) +
             (y >> 2U) * static_cast<std::uint32_t>(resize.row_stride);
    if (!resize.x.nearest)
        at.pixel_weight = tap_weight(loops.index(0), x) * tap_weight(loops.index(1), y);
}

std::uint64_t zero_row_of(const TensorOp& op, std::uint64_t group) {
    const auto rows = static_cast<std::uint64_t>(
        op.zero_row_step == 0 ? 1 : (op.zero_row_last - op.zero_row_first) / op.zero_row_step + 1);
    return static_cast<std::uint64_t>(op.zero_row_first) +
           group % std::max<std::uint64_t>(rows, 1) * static_cast<std::uint64_t>(op.zero_row_step);
}

}  // namespace reef::edgetpu::sim

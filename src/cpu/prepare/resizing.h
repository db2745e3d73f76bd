// Where RESIZE_BILINEAR samples: per output row or column, two input rows or columns and how far
// between them the sample lies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/prepare/kernel.h"

namespace reef::cpu {

/// Of uint8 and float32: float32 weights, upper * fraction + lower * (1 - fraction).
struct FloatSample {
    std::int32_t lower = 0;
    std::int32_t upper = 0;
    float fraction = 0;
};
/// int8 form: fraction in units of 1/1024. At the border it may be negative or above 1024; then
/// lower == upper.
struct FixedSample {
    std::int32_t lower = 0;
    std::int32_t upper = 0;
    std::int32_t fraction = 0;
};

/// Input NHWC batches x input_height x input_width x channels.
struct ResizeShape {
    std::int32_t batches = 0;
    std::int32_t channels = 0;
    std::int32_t input_height = 0;
    std::int32_t input_width = 0;
};

/// The two input rows that an output row lies between.
struct FloatRows {
    const float* lower = nullptr;
    const float* upper = nullptr;
};
/// An input row as wide as the output: what lies to the left and to the right of its elements.
struct WideRow {
    float* left = nullptr;
    float* right = nullptr;
};
struct WideRows {
    WideRow lower, upper;
};

/// Vectorised; output rows are shared out to the threads.
[[nodiscard]] std::unique_ptr<Kernel> fast_resize_bilinear(const ResizeShape& shape,
                                                           std::vector<FloatSample> rows,
                                                           std::vector<FloatSample> columns,
                                                           int threads);
[[nodiscard]] std::unique_ptr<Kernel> fast_float_resize_bilinear(const ResizeShape& shape,
                                                                 std::vector<FloatSample> rows,
                                                                 std::vector<FloatSample> columns,
                                                                 int threads);
/// Precondition: fits_int32() of both.
[[nodiscard]] std::unique_ptr<Kernel> fast_resize_bilinear(const ResizeShape& shape,
                                                           std::vector<FixedSample> rows,
                                                           std::vector<FixedSample> columns,
                                                           int threads);

/// True when sums of weighted int8 values stay below 2^31. Only extreme enlargements, whose rounded
/// scale leads past the input's end, break it.
[[nodiscard]] inline bool fits_int32(const std::vector<FixedSample>& samples) {
    return std::ranges::all_of(
        samples, [](const FixedSample& s) { return s.fraction >= -512 && s.fraction <= 1536; });
}

}  // namespace reef::cpu

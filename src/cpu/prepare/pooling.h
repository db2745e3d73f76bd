// What AVERAGE_POOL_2D and MAX_POOL_2D share: the checked geometry of their windows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

/// Rows or columns [begin, end) of the input.
struct Extent {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    [[nodiscard]] std::int32_t size() const { return end - begin; }
};

/// One axis of a pooling: window length, step, and what SAME padding puts before the first element.
struct PoolingAxis {
    std::int32_t input = 0;
    std::int32_t output = 0;
    std::int32_t filter = 0;
    std::int32_t stride = 0;
    std::int32_t padding = 0;

    /// The part of output element `o`'s window that lies inside the input; never empty.
    [[nodiscard]] Extent window(std::int32_t o) const {
        // Sums and products of an axis near 2^31 have more bits.
        const std::int64_t origin = std::int64_t{o} * stride - padding;
        return {static_cast<std::int32_t>(std::max<std::int64_t>(origin, 0)),
                static_cast<std::int32_t>(std::min<std::int64_t>(origin + filter, input))};
    }
    /// The output elements whose windows lie wholly inside the input.
    [[nodiscard]] Extent whole_windows() const {
        const std::int64_t first = (std::int64_t{padding} + stride - 1) / stride;
        const std::int64_t last = std::int64_t{input} - filter + padding;
        const std::int64_t behind = last < 0 ? 0 : last / stride + 1;
        const auto begin = static_cast<std::int32_t>(std::min<std::int64_t>(first, output));
        const auto end = static_cast<std::int32_t>(std::min<std::int64_t>(behind, output));
        return {begin, std::max(begin, end)};
    }
};

/// NHWC to NHWC with the same batches and channels.
struct Pooling {
    std::int32_t batches = 0;
    std::int32_t channels = 0;
    PoolingAxis y, x;
    ClampRange clamp;
    Limits<float> float_clamp{};  ///< in place of `clamp`, for float32

    /// At most: how many elements the windows of an output row have.
    [[nodiscard]] std::size_t elements_to_a_row() const {
        const auto rows = static_cast<std::size_t>(std::min(y.filter, y.input));
        const auto columns = static_cast<std::size_t>(std::min(x.filter, x.input));
        return rows * columns * static_cast<std::size_t>(x.output) *
               static_cast<std::size_t>(channels);
    }
};

/// Errors: types other than uint8 or int8, input and output quantised differently (TFLite's rule),
/// a declared output shape that the window does not give, windows above 2^23 elements, whose sums
/// leave 32 bits.
[[nodiscard]] Result<Pooling> check_pooling(const OperatorView& op);
/// The same for float32.
[[nodiscard]] Result<Pooling> check_float_pooling(const OperatorView& op);

/// Vectorised over the channels, for uint8, int8 or float32.
[[nodiscard]] std::unique_ptr<Kernel> fast_average_pool_2d(const Pooling& pooling, ElementType type,
                                                           int threads);
[[nodiscard]] std::unique_ptr<Kernel> fast_max_pool_2d(const Pooling& pooling, ElementType type,
                                                       int threads);

}  // namespace reef::cpu

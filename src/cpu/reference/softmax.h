// SOFTMAX over the last axis, checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

struct SoftmaxShape {
    std::size_t rows = 0;
    std::size_t length = 0;
    float beta = 1;
};

/// Exponentials of distances from a row's largest byte.
struct SoftmaxTable {
    /// exp(-scale * beta * (255 - index)), then zeros, so that any 256 that begin in front of them
    /// can be read.
    std::array<float, 512> exponentials{};
    /// Their first 256 byte by byte, the lowest of each first.
    std::array<std::array<std::uint8_t, 256>, 4> bytes{};

    SoftmaxTable(float input_scale, float beta);

    static constexpr float output_scale = 1.0F / 256;  ///< softmax_input() says why
    /// What is added before the fraction is dropped: uint8 rounds by adding one half, int8 as
    /// round(), for which the next smaller number is added to what is not negative and below 2^22.
    template <typename T>
    static constexpr float half = std::is_signed_v<T> ? 0x1.fffffep-2F : 0.5F;
};

/// Errors: types other than uint8, int8 and float32, no last axis, a negative or infinite beta.
[[nodiscard]] Result<SoftmaxShape> check_softmax(const OperatorView& op);

/// The input's parameters. Errors: unsupported for a quantised output without scale 1/256 and the
/// type's lowest value as zero point (TFLite's rule).
[[nodiscard]] Result<AffineParameters> softmax_input(const OperatorView& op);

/// Vectorised over rows, for uint8 or int8.
[[nodiscard]] std::unique_ptr<Kernel> fast_softmax(const SoftmaxShape& shape,
                                                   const SoftmaxTable& table, ElementType type);

}  // namespace reef::cpu

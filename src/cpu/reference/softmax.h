// SOFTMAX over the last axis, checked.
#pragma once

#include <cstddef>

#include "cpu/prepare/kernel.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

struct SoftmaxShape {
    std::size_t rows = 0;
    std::size_t length = 0;
    float beta = 1;
};

/// Errors: types other than uint8, int8 and float32, no last axis, a negative or infinite beta.
[[nodiscard]] Result<SoftmaxShape> check_softmax(const OperatorView& op);

/// The input's parameters. Errors: unsupported for a quantised output without scale 1/256 and the
/// type's lowest value as zero point (TFLite's rule).
[[nodiscard]] Result<AffineParameters> softmax_input(const OperatorView& op);

}  // namespace reef::cpu

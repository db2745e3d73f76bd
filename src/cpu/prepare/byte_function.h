// Operators that combine a tensor of bytes with a function of the same bytes: SiLU is the product
// of a tensor and its LOGISTIC. What becomes of a byte depends on that byte alone, so that a table
// of 256 results takes the place of two reads and a multiplication.
#pragma once

#include <optional>

#include "cpu/prepare/kernel.h"

namespace reef::cpu {

/// The two inputs of such an operator: one is a tensor, the other a function of each of its bytes.
struct ByteFunction {
    std::size_t before = 0;  ///< the operator that computes the function
    std::size_t direct = 0;  ///< which input is the tensor itself: 0 or 1
};

/// Nothing for any other operator. All tensors are of one shape and have 8 bits.
[[nodiscard]] std::optional<ByteFunction> byte_function_of(const OperatorView& op);

/// The kernels of both operators, `of_before` and `of_op`, fill the table: its bytes are theirs.
/// Errors: what they refuse.
PreparedKernel prepare_byte_function(const OperatorView& op, const ByteFunction& function,
                                     Prepare of_before, Prepare of_op,
                                     const PrepareOptions& options);

}  // namespace reef::cpu

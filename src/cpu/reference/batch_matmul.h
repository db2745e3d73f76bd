// BATCH_MATMUL, checked: the sizes and steps that its kernels of any element type begin with.
#pragma once

#include <cstddef>

#include "cpu/prepare/broadcast.h"
#include "cpu/prepare/kernel.h"

namespace reef::cpu {

struct MatrixSizes {
    std::size_t rows = 0, depth = 0, columns = 0;
};

/// One input's matrix: elements between its rows and columns, once transposition is undone.
struct MatrixSteps {
    std::size_t row = 0;
    std::size_t column = 0;
};

struct MatrixProducts {
    MatrixSizes sizes;
    MatrixSteps a, b;
    Broadcast batches;
};

/// Errors: bad_input for shapes that do not fit each other; unsupported for sums of int8 products
/// that may leave 32 bits.
[[nodiscard]] Result<MatrixProducts> check_matrix_products(const OperatorView& op);

/// Float32 times int8.
[[nodiscard]] PreparedKernel prepare_hybrid_batch_matmul(const OperatorView& op,
                                                         MatrixProducts products,
                                                         const PrepareOptions& options);

}  // namespace reef::cpu

// How a product becomes tasks of the NPU, which are convolutions of one pixel's width: rows of A
// are its rows, A's columns its channels, B's columns its kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reef/rk3588/matmul.h"

namespace reef::rk3588::matmul {

/// Sizes as they are stored: whole blocks.
struct ProductShape {
    MatrixElements elements = MatrixElements::int8;
    std::size_t m = 0, k = 0, n = 0;

    [[nodiscard]] std::size_t element_bytes() const {
        return elements == MatrixElements::int8 ? 1 : 2;
    }
    /// B's columns that one group of kernels has.
    [[nodiscard]] std::size_t group() const;
    [[nodiscard]] std::size_t stored_k() const;
    [[nodiscard]] std::size_t stored_n() const;
    [[nodiscard]] std::size_t stored_m() const;
    /// Of all of B.
    [[nodiscard]] std::size_t weight_bytes() const {
        return stored_k() * stored_n() * element_bytes();
    }
};

/// Some of A's rows with some of B's columns, over some of A's columns.
struct ProductTask {
    std::size_t first_row = 0, rows = 0;
    std::size_t first_k = 0, k = 0;
    std::size_t first_column = 0, columns = 0;
    std::size_t k_tile = 0;  ///< number
    unsigned data_banks = 0, weight_banks = 0;
    bool keeps_weights = false;     ///< the weights of the task before
    std::uint64_t bytes_moved = 0;  ///< without command words
};

struct ProductPlan {
    std::vector<std::vector<ProductTask>> cores;  ///< first ones have at least as many
    std::size_t k_tiles = 1;  ///< each has results of its own, which are added on the CPU
    [[nodiscard]] std::uint64_t bytes_moved() const;
};

/// Of a stretch of A's columns: where its weights begin in packed B, in bytes. Each stretch is
/// packed by itself.
[[nodiscard]] std::size_t k_tile_size(const ProductShape& shape);

/// The fewest bytes moved: weights that stay for several rows of A, or come again with each.
[[nodiscard]] ProductPlan plan_product(const ProductShape& shape, std::size_t cores);

}  // namespace reef::rk3588::matmul

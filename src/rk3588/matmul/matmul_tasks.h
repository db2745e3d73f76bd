// The command words of a product's tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "rk3588/matmul/matmul_plan.h"

namespace reef::rk3588::matmul {

/// Where matrices begin in the NPU's address space.
struct MatrixPlaces {
    std::uint32_t a = 0;  ///< [m][k], stored sizes
    std::uint32_t b = 0;  ///< packed, stretch by stretch of its rows
    std::uint32_t c = 0;  ///< [m][n] for every stretch, stored sizes
};

/// The words of all tasks, each at a multiple of 64 bytes from the beginning, the tasks of a core
/// chained. `commands` is where they will begin.
struct ProductWords {
    struct Place {
        std::uint32_t first_word = 0, words = 0, blocks = 0;
    };
    std::vector<std::uint64_t> words;
    std::vector<std::vector<Place>> cores;
};
[[nodiscard]] std::size_t word_count(const ProductPlan& plan);
[[nodiscard]] Result<ProductWords> product_words(const ProductShape& shape, const ProductPlan& plan,
                                                 const MatrixPlaces& places,
                                                 std::uint32_t commands);

}  // namespace reef::rk3588::matmul

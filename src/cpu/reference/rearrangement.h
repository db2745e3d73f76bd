// Operators that move elements and compute nothing: TRANSPOSE, STRIDED_SLICE, SLICE, TILE,
// SPACE_TO_DEPTH and DEPTH_TO_SPACE are loops over the output with other steps through the input.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cpu/prepare/kernel.h"

namespace reef::cpu {

/// Where the output's elements come from, in elements of the input.
struct Rearrangement {
    struct Dimension {
        std::size_t length = 1;
        std::ptrdiff_t step = 0;
    };
    std::ptrdiff_t first = 0;
    std::vector<Dimension> dimensions;  ///< outermost first
};

/// Steps of one element along each dimension of a dense tensor.
[[nodiscard]] std::vector<std::ptrdiff_t> dense_steps(const std::vector<std::int32_t>& shape);

/// Dimensions of length 1 dropped, those that follow each other in the input joined.
[[nodiscard]] std::vector<Rearrangement::Dimension> joined_dimensions(
    const std::vector<Rearrangement::Dimension>& all);

inline constexpr std::size_t transpose_block_side = 16;
/// Of bytes, vectorised: null where the innermost dimension, and one whose elements lie beside one
/// another in the input, are not of a block's length each.
[[nodiscard]] std::unique_ptr<Kernel> fast_byte_transpose(const char* name,
                                                          const Rearrangement& rearrangement);

/// Precondition: the output has as many elements as the dimensions say, and each comes from inside
/// the input. Errors: element types without a fixed size.
[[nodiscard]] PreparedKernel rearrangement_kernel(const char* name, const model::Tensor& input,
                                                  Rearrangement rearrangement);

}  // namespace reef::cpu

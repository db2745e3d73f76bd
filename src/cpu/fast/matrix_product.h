// Rows of activations times a constant matrix: what CONV_2D and FULLY_CONNECTED come down to.
//
// Products are taken in groups. Of 8-bit values these are fours where the machine has an
// instruction for them, or eights where it multiplies small matrices of bytes; else they are pairs,
// widened to int16 where bytes can not be multiplied, or fours where it has products of two bytes
// and the weights let their sums keep 16 bits. Packed weights are bytes in every form. Of float32
// groups are single values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpu/fast/packed_matrix.h"
#include "cpu/fast/pixel_rows.h"
#include "cpu/prepare/convolution.h"

namespace reef::cpu {

/// The functions of one SIMD target.
struct MatrixFunctions {
    const char* target = "";
    GroupOf group = GroupOf::pairs;
    std::size_t widest_block = 8;
    std::size_t rows_at_once = 1;  ///< the number of rows that a full step takes
    /// The rows of `pixels`: in the input, where they stand there as they are, else in `values`,
    /// and then up to gather_slack bytes of any value behind them. Their sums are in `sums`, which
    /// are written by fours. Taps outside the input read `zero`.
    Rows (*gather)(const Convolution& c, const PackedMatrix& matrix, const std::byte* input,
                   std::int32_t zero, PixelRange pixels, std::byte* values,
                   std::int32_t* sums) = nullptr;
    /// Every channel of blocks [begin, end) for `count` rows, which are `out_stride` bytes apart in
    /// `out`.
    void (*multiply)(const PackedMatrix& matrix, Rows rows, std::size_t count, std::size_t begin,
                     std::size_t end, std::byte* out, std::size_t out_stride) = nullptr;
    /// The same target's in bounded quads, where it has them.
    const MatrixFunctions* in_bounded_quads = nullptr;
};
/// Of the target that is dispatched to now; null for one without vectors.
[[nodiscard]] const MatrixFunctions* matrix_functions();
[[nodiscard]] const MatrixFunctions* float_matrix_functions();

/// A matrix that is laid out, and what multiplies it.
struct MatrixForm {
    const MatrixFunctions& functions;
    PackedMatrix matrix;

    MatrixForm(const MatrixFunctions& given, PackedMatrix laid_out)
        : functions(given), matrix(std::move(laid_out)) {}
    /// Whatever the weights are.
    MatrixForm(const MatrixFunctions& given, const Convolution& c)
        : MatrixForm(given, lay_out_matrix(c, given.group, given.widest_block)) {}
    /// The one that takes least time with the weights of `c`, which it reads.
    [[nodiscard]] static MatrixForm for_weights(const MatrixFunctions& given,
                                                const Convolution& c) {
        if (given.in_bounded_quads != nullptr)
            if (auto matrix = lay_out_in_bounded_quads(c, given.widest_block))
                return {*given.in_bounded_quads, std::move(*matrix)};
        return {given, c};
    }
};

}  // namespace reef::cpu

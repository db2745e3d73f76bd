// A convolution as matrix products over tiles of output pixels, shared out among threads: what
// CONV_2D and FULLY_CONNECTED come down to, whatever becomes of the sums.
#pragma once

#include <cstddef>
#include <span>

#include "base/worker_pool.h"
#include "cpu/fast/matrix_product.h"
#include "cpu/prepare/convolution.h"
#include "cpu/prepare/hybrid.h"

namespace reef::cpu {

class TiledProduct {
  public:
    /// `form` is of the same convolution. `weight_scales`: of a hybrid one.
    TiledProduct(MatrixForm form, Convolution c, int threads,
                 std::span<const float> weight_scales = {});

    [[nodiscard]] const Convolution& convolution() const { return c_; }
    [[nodiscard]] const char* target() const { return functions_.target; }
    [[nodiscard]] std::size_t scratch_bytes() const { return worker_bytes_ * threads_; }
    [[nodiscard]] std::size_t packed_bytes() const { return matrix_.packed_bytes(); }
    void pack();
    /// Of weights that the convolution does not have yet.
    void pack(SharedBytes weights);
    /// The same, of such as were made of others'.
    void pack(SharedBytes weights, const WeightsMadeOf& from);

    struct Input {
        const std::byte* values = nullptr;
        /// Of a hybrid convolution: what each image was quantised by, to int8 or, with
        /// takes_uint8(), to those values and 128.
        const StepRule* rules = nullptr;
    };
    [[nodiscard]] bool takes_uint8() const { return is_unsigned(functions_.group); }
    /// `scratch` has scratch_bytes().
    void run(const Input& input, std::byte* out, std::byte* scratch, WorkerPool& pool) const;

  private:
    struct Part {
        const Input& input;
        std::byte* out;
        PixelRange pixels;
        std::size_t begin;  ///< of the blocks
        std::size_t end;
        std::byte* scratch;  ///< of the worker
        /// Of the worker, where it has several such parts of one run: the values of all rows, once
        /// it has gathered them; they, and what else is in `scratch`, stay.
        const std::byte** held = nullptr;
    };
    [[nodiscard]] std::size_t pixels() const { return static_cast<std::size_t>(c_.pixels()); }
    [[nodiscard]] std::size_t steps() const;
    /// Few pixels and many channels (the last layers): every worker gathers all rows, once where
    /// they are one tile, and the weights, which are the larger part there, are read once.
    [[nodiscard]] bool is_cut_by_blocks() const;
    [[nodiscard]] RowScale scale_of(const StepRule& rule) const;
    void run_part(const Part& part) const;
    [[nodiscard]] Rows rows_of(const Part& part, PixelRange pixels, std::int32_t zero,
                               std::int32_t* sums) const;

    const MatrixFunctions& functions_;
    Convolution c_;
    PackedMatrix matrix_;
    std::size_t threads_;
    std::size_t tile_rows_ = 1;
    // Of a worker: rows, their sums and their scales, one behind the other.
    std::size_t values_bytes_ = 0;
    std::size_t sums_bytes_ = 0;
    std::size_t worker_bytes_ = 0;
};

}  // namespace reef::cpu

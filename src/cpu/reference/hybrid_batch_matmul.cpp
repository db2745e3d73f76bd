// BATCH_MATMUL of float32 times constant int8: each run quantises the rows of the first matrix,
// each by itself; sums are exact, and multiplied by the product of the scales. TFLite adds that to
// a zero, which makes 0 of a -0.
#include <limits>
#include <utility>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/convolution.h"
#include "cpu/prepare/hybrid.h"
#include "cpu/prepare/quantized.h"
#include "cpu/reference/batch_matmul.h"

namespace reef::cpu {
namespace {

class HybridBatchMatMul final : public Kernel {
  public:
    HybridBatchMatMul(MatrixProducts products, std::size_t rows, float weight_scale,
                      bool asymmetric)
        : products_(std::move(products)),
          rows_(rows),
          weight_scale_(weight_scale),
          asymmetric_(asymmetric) {}

    [[nodiscard]] std::string name() const override { return "batch_matmul hybrid"; }
    /// The rows' scales, one row of the first matrix, all rows' steps.
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return (rows_ + depth()) * sizeof(float) + rows_ * depth() * sizeof(std::int16_t);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        REEF_CHECK(quantise(frame));
        const Broadcast& batches = products_.batches;
        batches.each_run(0, batches.size(),
                         [&](std::size_t out, std::size_t a, std::size_t b, std::size_t count) {
                             for (std::size_t i = 0; i < count; ++i)
                                 multiply(frame, out + i, a + i * batches.a_step(),
                                          b + i * batches.b_step());
                         });
        return {};
    }

  private:
    [[nodiscard]] std::size_t depth() const { return products_.sizes.depth; }
    [[nodiscard]] float* scales(const Frame& frame) const {
        return reinterpret_cast<float*>(frame.scratch.data());
    }
    [[nodiscard]] std::int16_t* steps(const Frame& frame) const {
        return reinterpret_cast<std::int16_t*>(scales(frame) + rows_ + depth());
    }

    [[nodiscard]] Status quantise(const Frame& frame) const {
        float* row = scales(frame) + rows_;
        for (std::size_t r = 0; r < rows_; ++r) {
            const std::size_t in_matrix = r % products_.sizes.rows;
            const float* from =
                frame.in<float>(0) + (r - in_matrix) * depth() + in_matrix * products_.a.row;
            for (std::size_t k = 0; k < depth(); ++k) row[k] = from[k * products_.a.column];
            scales(frame)[r] =
                REEF_TRY(write_steps({row, depth()}, asymmetric_, steps(frame) + r * depth()));
        }
        return {};
    }

    void multiply(const Frame& frame, std::size_t out_at, std::size_t a_at,
                  std::size_t b_at) const {
        const MatrixSizes& sizes = products_.sizes;
        const auto* b = frame.in<std::int8_t>(1) + b_at * sizes.depth * sizes.columns;
        float* out = frame.out<float>(0) + out_at * sizes.rows * sizes.columns;
        frame.pool.parallel_for(
            sizes.rows, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
                for (std::size_t i = begin; i < end; ++i) {
                    const std::size_t r = a_at * sizes.rows + i;
                    const float scale = scales(frame)[r] * weight_scale_;
                    for (std::size_t j = 0; j < sizes.columns; ++j)
                        out[i * sizes.columns + j] =
                            static_cast<float>(
                                sum(steps(frame) + r * sizes.depth, b + j * products_.b.column)) *
                                scale +
                            0.0F;
                }
            });
    }

    [[nodiscard]] std::int32_t sum(const std::int16_t* row, const std::int8_t* column) const {
        std::int32_t sum = 0;
        for (std::size_t k = 0; k < depth(); ++k) sum += row[k] * column[k * products_.b.row];
        return sum;
    }

    MatrixProducts products_;
    std::size_t rows_;  ///< of all matrices of the first input
    float weight_scale_;
    bool asymmetric_;
};

/// All rows times one matrix.
HybridConvolution as_fully_connected(const OperatorView& op, const MatrixProducts& products,
                                     std::size_t rows, float weight_scale, bool asymmetric) {
    constexpr float most = std::numeric_limits<float>::infinity();
    HybridConvolution hybrid;
    Convolution& c = hybrid.convolution;
    c.type = ElementType::int8;
    c.batch = static_cast<std::int64_t>(rows);
    c.in_channels = c.depth = static_cast<std::int64_t>(products.sizes.depth);
    c.out_channels = static_cast<std::int64_t>(products.sizes.columns);
    c.weights = op.shared_constant(1);
    c.floats = FloatSums{std::vector<float>(products.sizes.columns), {-most, most}};
    hybrid.asymmetric = asymmetric;
    hybrid.weight_scales = {weight_scale};
    hybrid.depth_first = products.b.column == 1;
    return hybrid;
}

}  // namespace

PreparedKernel prepare_hybrid_batch_matmul(const OperatorView& op, MatrixProducts products,
                                           const PrepareOptions& options) {
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::float32}));
    const auto given = REEF_TRY(op.options<model::BatchMatMulOptions>());
    const float scale = REEF_TRY(hybrid_weight_scale(op, 1, "input 1"));
    const std::size_t depth = products.sizes.depth;
    const auto elements = static_cast<std::size_t>(op.input(0).element_count());
    const std::size_t rows = depth == 0 ? 0 : elements / depth;
    const bool asymmetric = given.asymmetric_quantize_inputs;
    const std::size_t columns = products.sizes.columns;
    const bool one_matrix =
        op.input(1).element_count() == static_cast<std::int64_t>(depth * columns);
    if (options.kernels == KernelSet::fast && one_matrix && !given.adj_x) {
        return hybrid_kernel("batch_matmul",
                             as_fully_connected(op, products, rows, scale, asymmetric), options);
    }
    return std::make_unique<HybridBatchMatMul>(std::move(products), rows, scale, asymmetric);
}

}  // namespace reef::cpu

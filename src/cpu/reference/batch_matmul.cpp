// BATCH_MATMUL of int8 or float32: the product of the last two dimensions, the others broadcast.
//
// Float32 sums run from first to last here, in TFLite by blocks; at most the sum of the absolute
// products times the number of terms times 2^-24 lies between them.
#include "cpu/reference/batch_matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/worker_pool.h"
#include "cpu/prepare/dot_product.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// int8: the sum of products of 16-bit differences to the zero points.
struct QuantizedMatrices {
    using Element = std::int8_t;
    using Wide = std::int16_t;
    std::int32_t zero_a = 0, zero_b = 0, zero_out = 0;
    Multiplier multiplier;

    [[nodiscard]] Wide a(Element value) const { return static_cast<Wide>(value - zero_a); }
    [[nodiscard]] Wide b(Element value) const { return static_cast<Wide>(value - zero_b); }
    [[nodiscard]] Element dot(const Wide* x, const Wide* y, std::size_t count) const {
        const std::int32_t sum = dot_product(x, y, count);
        const std::int64_t value =
            std::int64_t{multiply_in_matrix_product(sum, multiplier)} + zero_out;
        return static_cast<Element>(std::clamp<std::int64_t>(value, -128, 127));
    }
};

struct FloatMatrices {
    using Element = float;
    using Wide = float;
    [[nodiscard]] static float a(float value) { return value; }
    [[nodiscard]] static float b(float value) { return value; }
    [[nodiscard]] static float dot(const float* x, const float* y, std::size_t count) {
        return dot_product(x, y, count);
    }
};

/// Lays the second matrix out column by column and the first row by row before it multiplies.
template <typename Arithmetic>
class BatchMatMulKernel final : public Kernel {
  public:
    using Element = typename Arithmetic::Element;
    using Wide = typename Arithmetic::Wide;

    BatchMatMulKernel(Arithmetic arithmetic, MatrixSizes sizes, MatrixSteps a, MatrixSteps b,
                      Broadcast batches, int threads)
        : arithmetic_(arithmetic),
          sizes_(sizes),
          a_(a),
          b_(b),
          batches_(std::move(batches)),
          threads_(static_cast<std::size_t>(threads)) {}

    [[nodiscard]] std::string name() const override { return "batch_matmul reference"; }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return (sizes_.columns + threads_) * sizes_.depth * sizeof(Wide);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        batches_.each_run(0, batches_.size(),
                          [&](std::size_t out, std::size_t a, std::size_t b, std::size_t count) {
                              for (std::size_t i = 0; i < count; ++i)
                                  multiply(frame, out + i, a + i * batches_.a_step(),
                                           b + i * batches_.b_step());
                          });
        return {};
    }

  private:
    void multiply(const Frame& frame, std::size_t out_at, std::size_t a_at, std::size_t b_at) {
        auto* columns = reinterpret_cast<Wide*>(frame.scratch.data());
        const Element* b = frame.in<Element>(1) + b_at * sizes_.depth * sizes_.columns;
        for (std::size_t j = 0; j < sizes_.columns; ++j)
            for (std::size_t k = 0; k < sizes_.depth; ++k)
                columns[j * sizes_.depth + k] = arithmetic_.b(b[k * b_.row + j * b_.column]);
        const Element* a = frame.in<Element>(0) + a_at * sizes_.rows * sizes_.depth;
        Element* out = frame.out<Element>(0) + out_at * sizes_.rows * sizes_.columns;
        frame.pool.parallel_for(
            sizes_.rows, 1, [&](std::size_t begin, std::size_t end, std::size_t worker) {
                Wide* row = columns + (sizes_.columns + worker) * sizes_.depth;
                for (std::size_t i = begin; i < end; ++i) {
                    for (std::size_t k = 0; k < sizes_.depth; ++k)
                        row[k] = arithmetic_.a(a[i * a_.row + k * a_.column]);
                    for (std::size_t j = 0; j < sizes_.columns; ++j)
                        out[i * sizes_.columns + j] =
                            arithmetic_.dot(row, columns + j * sizes_.depth, sizes_.depth);
                }
            });
    }

    Arithmetic arithmetic_;
    MatrixSizes sizes_;
    MatrixSteps a_, b_;
    Broadcast batches_;
    std::size_t threads_;
};

template <typename Arithmetic>
PreparedKernel matmul_kernel(Arithmetic arithmetic, MatrixProducts products, int threads) {
    return std::make_unique<BatchMatMulKernel<Arithmetic>>(
        arithmetic, products.sizes, products.a, products.b, std::move(products.batches), threads);
}

}  // namespace

Result<MatrixProducts> check_matrix_products(const OperatorView& op) {
    using Lengths = std::vector<std::int32_t>;
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const auto given = REEF_TRY(op.options<model::BatchMatMulOptions>());
    Lengths a = op.input(0).shape;
    Lengths b = op.input(1).shape;
    if (a.size() < 2 || b.size() < 2)
        return fail(Cause::bad_input, fmt::format("{} times {}, not matrices", model::shape_text(a),
                                                  model::shape_text(b)));
    const auto steps = [](const Lengths& shape, bool transposed) {
        const auto row = static_cast<std::size_t>(shape.back());
        return transposed ? MatrixSteps{1, row} : MatrixSteps{row, 1};
    };
    const auto take_sizes = [](Lengths& shape, bool transposed) {
        std::pair sizes{shape[shape.size() - 2], shape.back()};
        shape.resize(shape.size() - 2);
        if (transposed) std::swap(sizes.first, sizes.second);
        return sizes;
    };
    const MatrixSteps a_steps = steps(a, given.adj_x);
    const MatrixSteps b_steps = steps(b, given.adj_y);
    const auto [rows, depth] = take_sizes(a, given.adj_x);
    const auto [shared, columns] = take_sizes(b, given.adj_y);
    if (shared != depth)
        return fail(Cause::bad_input,
                    fmt::format("rows of {} elements times columns of {}", depth, shared));
    // Sums of int8 products stay below 2^31.
    constexpr std::int32_t deepest = 1 << 15;
    if (depth > deepest)
        return fail(Cause::unsupported,
                    fmt::format("sums of {} products, more than {}", depth, deepest));
    MatrixProducts products{
        .sizes = {static_cast<std::size_t>(rows), static_cast<std::size_t>(depth),
                  static_cast<std::size_t>(columns)},
        .a = a_steps,
        .b = b_steps,
        .batches = REEF_TRY(Broadcast::of(a, b))};
    Lengths computed = products.batches.output_shape();
    computed.push_back(rows);
    computed.push_back(columns);
    REEF_CHECK(expect_shape(op.output(0), "output 0", computed));
    return products;
}

PreparedKernel prepare_batch_matmul(const OperatorView& op, const PrepareOptions& options) {
    MatrixProducts products = REEF_TRY(check_matrix_products(op));
    REEF_CHECK(expect_type(op.input(0), "input 0", {ElementType::int8, ElementType::float32}));
    if (op.input(0).type == ElementType::float32 && op.input(1).type == ElementType::int8)
        return prepare_hybrid_batch_matmul(op, std::move(products), options);
    REEF_CHECK(expect_type(op.input(1), "input 1", {op.input(0).type}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {op.input(0).type}));
    if (op.input(0).type == ElementType::float32)
        return matmul_kernel(FloatMatrices{}, std::move(products), options.threads);
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const double scale = static_cast<double>(a.scale * b.scale) / static_cast<double>(out.scale);
    const QuantizedMatrices arithmetic{a.zero_point, b.zero_point, out.zero_point,
                                       REEF_TRY(checked_multiplier(scale))};
    return matmul_kernel(arithmetic, std::move(products), options.threads);
}

}  // namespace reef::cpu

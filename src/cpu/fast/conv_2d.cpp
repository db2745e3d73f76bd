// CONV_2D and FULLY_CONNECTED as matrix products over tiles of output pixels.
#include <algorithm>
#include <string>
#include <utility>

#include "base/simd.h"
#include "base/worker_pool.h"
#include "cpu/fast/matrix_product.h"
#include "cpu/prepare/convolution.h"
#include "graph/memory_plan.h"
#include "graph/packed_inputs.h"

namespace reef::cpu {
namespace {

// Gathered rows of one tile: they and a block of weights stay in the second-level cache.
constexpr std::size_t tile_bytes = std::size_t{96} << 10;

class FastConv2d final : public Kernel, public graph::PacksInputs {
  public:
    FastConv2d(const char* op, const MatrixFunctions& functions, Convolution c, int threads)
        : op_(op),
          functions_(functions),
          c_(std::move(c)),
          matrix_(lay_out_matrix(c_, functions_.group, functions_.widest_block)),
          threads_(static_cast<std::size_t>(threads)) {
        const std::size_t step = functions_.rows_at_once;
        const std::size_t fit = tile_bytes / matrix_.row_bytes() / step * step;
        tile_rows_ = std::min(std::max(fit, step), (pixels() + step - 1) / step * step);
        values_bytes_ = graph::align_up(tile_rows_ * matrix_.row_bytes() + gather_slack);
        const std::size_t sums = matrix_.row_factor == 0 ? 0 : tile_rows_ * sizeof(std::int32_t);
        worker_bytes_ = values_bytes_ + graph::align_up(sums);
    }

    [[nodiscard]] std::string name() const override {
        return op_ + " fast " + std::string(functions_.target);
    }
    [[nodiscard]] bool reads_input(std::size_t i) const override { return i == 0; }
    [[nodiscard]] std::size_t scratch_bytes() const override { return worker_bytes_ * threads_; }
    [[nodiscard]] std::size_t packed_bytes() const override { return matrix_.packed_bytes(); }

    void pack() override {
        pack_matrix(c_, matrix_);
        c_.weights = {};
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const std::size_t step = functions_.rows_at_once;
        const std::size_t steps = (pixels() + step - 1) / step;
        const std::size_t blocks = matrix_.blocks.size();
        if (steps == 0 || blocks == 0) return {};
        const std::size_t at_once = c_.floats ? dense_float_products : dense_byte_products;
        const std::size_t work = pixels() * matrix_.products_per_row();
        // Few pixels and many channels (the last layers): every worker gathers all rows, and the
        // weights, which are the larger part there, are read once.
        if (steps < 8 * threads_ && blocks >= 2 * threads_) {
            frame.pool.parallel_for(blocks, grain_of(work / blocks, at_once),
                                    [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                        run_part(frame, {0, pixels()}, begin, end, worker);
                                    });
        } else {
            frame.pool.parallel_for(steps, grain_of(work / steps, at_once),
                                    [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                        run_part(frame,
                                                 {begin * step, std::min(end * step, pixels())}, 0,
                                                 blocks, worker);
                                    });
        }
        return {};
    }

  private:
    [[nodiscard]] std::size_t pixels() const { return static_cast<std::size_t>(c_.pixels()); }

    void run_part(const Frame& frame, PixelRange pixels, std::size_t begin, std::size_t end,
                  std::size_t worker) const {
        std::byte* scratch = frame.scratch.data() + worker * worker_bytes_;
        auto* sums = reinterpret_cast<std::int32_t*>(scratch + values_bytes_);
        const std::size_t pixel_bytes =
            static_cast<std::size_t>(c_.out_channels) * (c_.floats ? sizeof(float) : 1);
        for (std::size_t p = pixels.begin; p < pixels.end; p += tile_rows_) {
            const PixelRange tile{p, std::min(p + tile_rows_, pixels.end)};
            const Rows rows =
                functions_.gather(c_, matrix_, frame.inputs[0], c_.input_zero, tile, scratch, sums);
            functions_.multiply(matrix_, rows, tile.end - tile.begin, begin, end,
                                frame.outputs[0] + p * pixel_bytes, pixel_bytes);
        }
    }

    std::string op_;
    const MatrixFunctions& functions_;
    Convolution c_;
    PackedMatrix matrix_;
    std::size_t threads_;
    std::size_t tile_rows_ = 1;
    std::size_t values_bytes_ = 0;  ///< of a worker's rows; their sums stand behind
    std::size_t worker_bytes_ = 0;
};

const MatrixFunctions* functions_for(const Convolution& c) {
    apply_simd_choice();
    return c.floats ? float_matrix_functions() : matrix_functions();
}

}  // namespace

std::unique_ptr<Kernel> fast_conv_2d(Convolution convolution, int threads) {
    const MatrixFunctions* functions = functions_for(convolution);
    // No network of the kind that Reef meets groups its channels this way.
    if (functions == nullptr || convolution.groups() != 1)
        return reference_conv_2d(std::move(convolution));
    return std::make_unique<FastConv2d>("conv_2d", *functions, std::move(convolution), threads);
}

std::unique_ptr<Kernel> fast_fully_connected(Convolution convolution, int threads) {
    const MatrixFunctions* functions = functions_for(convolution);
    if (functions == nullptr) return reference_fully_connected(std::move(convolution));
    return std::make_unique<FastConv2d>("fully_connected", *functions, std::move(convolution),
                                        threads);
}

}  // namespace reef::cpu

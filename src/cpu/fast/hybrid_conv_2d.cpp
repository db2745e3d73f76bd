// CONV_2D and FULLY_CONNECTED of float32 activations and int8 weights: the input as bytes, matrix
// products of those, and sums that become float32 where they are stored.
#include <algorithm>
#include <string>
#include <utility>

#include "base/simd.h"
#include "base/worker_pool.h"
#include "cpu/fast/hybrid_input.h"
#include "cpu/fast/matrix_product.h"
#include "cpu/prepare/convolution.h"
#include "graph/memory_plan.h"
#include "graph/packed_inputs.h"

namespace reef::cpu {
namespace {

// As in the product of bytes.
constexpr std::size_t hybrid_tile_bytes = std::size_t{96} << 10;

class FastHybrid final : public Kernel, public graph::PacksInputs {
  public:
    FastHybrid(std::string op, const MatrixFunctions& functions, HybridConvolution hybrid,
               int threads)
        : op_(std::move(op)),
          functions_(functions),
          c_(std::move(hybrid.convolution)),
          input_(static_cast<std::size_t>(c_.batch), image_size(), hybrid.asymmetric),
          threads_(static_cast<std::size_t>(threads)) {
        matrix_ = lay_out_matrix(c_, functions_.group, functions_.widest_block);
        matrix_.float_output = float_output_of(*c_.floats, hybrid.weight_scales, matrix_.blocks);
        const std::size_t step = functions_.rows_at_once;
        const std::size_t fit = hybrid_tile_bytes / matrix_.row_bytes() / step * step;
        tile_rows_ = std::min(std::max(fit, step), (pixels() + step - 1) / step * step);
        input_bytes_ = graph::align_up(input_.scratch_bytes());
        bytes_bytes_ = graph::align_up(static_cast<std::size_t>(c_.batch) * image_size());
        scales_bytes_ = graph::align_up(tile_rows_ * sizeof(RowScale));
        worker_bytes_ =
            scales_bytes_ + graph::align_up(tile_rows_ * matrix_.row_bytes() + gather_slack);
    }

    [[nodiscard]] std::string name() const override {
        return op_ + " hybrid fast " + std::string(functions_.target);
    }
    [[nodiscard]] bool reads_input(std::size_t i) const override { return i == 0; }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return input_bytes_ + bytes_bytes_ + worker_bytes_ * threads_;
    }
    [[nodiscard]] std::size_t packed_bytes() const override { return matrix_.packed_bytes(); }

    void pack() override {
        pack_matrix(c_, matrix_);
        c_.weights = {};
        // From here on it is of the activations.
        if (functions_.group == GroupOf::quads) c_.type = ElementType::uint8;
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        std::byte* bytes = frame.scratch.data() + input_bytes_;
        auto* to = reinterpret_cast<std::uint8_t*>(bytes);
        const std::uint8_t flip = c_.type == ElementType::uint8 ? 0x80 : 0;
        const StepRule* rules = REEF_TRY(input_.quantise(
            frame.in<float>(0), frame.scratch.data(), frame.pool,
            [&](std::span<const float> values, const StepRule& rule, std::size_t position) {
                quantise_to_bytes(values, rule, flip, to + position);
            }));
        const Part all{rules, bytes, {0, pixels()}, 0, matrix_.blocks.size()};
        const std::size_t step = functions_.rows_at_once;
        const std::size_t steps = (pixels() + step - 1) / step;
        if (steps == 0) return {};
        const std::size_t work = pixels() * matrix_.products_per_row();
        // As in FastConv2d: where weights are the larger part, they are read once.
        if (steps < 8 * threads_ && all.end >= 2 * threads_) {
            frame.pool.parallel_for(
                all.end, grain_of(work / all.end, dense_byte_products),
                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                    run_part(frame, {rules, bytes, all.pixels, begin, end}, worker);
                });
        } else {
            frame.pool.parallel_for(
                steps, grain_of(work / steps, dense_byte_products),
                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                    const PixelRange some{begin * step, std::min(end * step, pixels())};
                    run_part(frame, {rules, bytes, some, 0, all.end}, worker);
                });
        }
        return {};
    }

  private:
    struct Part {
        const StepRule* rules;
        const std::byte* bytes;
        PixelRange pixels;
        std::size_t begin;  ///< of the blocks
        std::size_t end;
    };

    [[nodiscard]] std::size_t pixels() const { return static_cast<std::size_t>(c_.pixels()); }
    [[nodiscard]] std::size_t image_size() const {
        return static_cast<std::size_t>(c_.h.in * c_.w.in * c_.in_channels);
    }
    [[nodiscard]] RowScale scale_of(const StepRule& rule) const {
        const std::int32_t flipped = c_.type == ElementType::uint8 ? 128 : 0;
        return {rule.scale, static_cast<std::int32_t>(rule.zero) + flipped};
    }

    void run_part(const Frame& frame, const Part& part, std::size_t worker) const {
        std::byte* scratch =
            frame.scratch.data() + input_bytes_ + bytes_bytes_ + worker * worker_bytes_;
        auto* scales = reinterpret_cast<RowScale*>(scratch);
        const std::size_t pixel_bytes = static_cast<std::size_t>(c_.out_channels) * sizeof(float);
        const auto image = static_cast<std::size_t>(c_.h.out * c_.w.out);
        // Windows at an image's edge read its zero: such rows are gathered image by image.
        const bool any_image = reads_in_order(c_);
        for (std::size_t p = part.pixels.begin; p < part.pixels.end;) {
            std::size_t stop = std::min(p + tile_rows_, part.pixels.end);
            if (!any_image) stop = std::min(stop, (p / image + 1) * image);
            for (std::size_t i = p; i < stop; ++i) scales[i - p] = scale_of(part.rules[i / image]);
            Rows rows = functions_.gather(c_, matrix_, part.bytes, scales[0].zero, {p, stop},
                                          scratch + scales_bytes_, nullptr);
            rows.scales = scales;
            functions_.multiply(matrix_, rows, stop - p, part.begin, part.end,
                                frame.outputs[0] + p * pixel_bytes, pixel_bytes);
            p = stop;
        }
    }

    std::string op_;
    const MatrixFunctions& functions_;
    Convolution c_;
    HybridInput input_;
    PackedMatrix matrix_;
    std::size_t threads_;
    std::size_t tile_rows_ = 1;
    std::size_t input_bytes_ = 0;
    std::size_t bytes_bytes_ = 0;   ///< of the quantised input
    std::size_t scales_bytes_ = 0;  ///< of a worker's rows, whose values stand behind
    std::size_t worker_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> fast_hybrid(std::string op, HybridConvolution hybrid, int threads) {
    apply_simd_choice();
    const MatrixFunctions* functions = matrix_functions();
    if (functions == nullptr) return reference_hybrid(std::move(op), std::move(hybrid));
    return std::make_unique<FastHybrid>(std::move(op), *functions, std::move(hybrid), threads);
}

}  // namespace reef::cpu

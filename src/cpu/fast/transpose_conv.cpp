// TRANSPOSE_CONV as matrix products.
//
// Output row y takes tap k of input row (y + pad - k) / stride, where that has no rest: rows whose
// y + pad leaves the same rest see the same taps, and are those of a convolution of stride 1 with
// the taps in the other order. So there is one such convolution for each pair of rests of rows and
// columns.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/simd.h"
#include "base/worker_pool.h"
#include "cpu/fast/matrix_product.h"
#include "cpu/prepare/convolution.h"
#include "graph/memory_plan.h"
#include "graph/packed_inputs.h"

namespace reef::cpu {
namespace {

/// The outputs of one axis that leave one rest.
struct Rest {
    std::int64_t first_tap = 0;     ///< the least; the others follow a stride behind each other
    std::int64_t first_output = 0;  ///< as well
    WindowAxis axis;                ///< outputs from inputs
};

/// `transposed` goes from the operator's output (`in`) to its input (`out`). Precondition: a stride
/// of at most the taps, so that each rest has one.
std::vector<Rest> rests_of(const WindowAxis& transposed) {
    std::vector<Rest> rests;
    const std::int64_t stride = transposed.stride, pad = transposed.pad;
    for (std::int64_t first = 0; first < std::min(stride, transposed.in); ++first) {
        const std::int64_t tap = (first + pad) % stride;
        const std::int64_t taps = (transposed.taps - tap + stride - 1) / stride;
        rests.push_back({.first_tap = tap,
                         .first_output = first,
                         .axis = {.in = transposed.out,
                                  .out = (transposed.in - first + stride - 1) / stride,
                                  .taps = taps,
                                  .pad = taps - 1 - (first + pad - tap) / stride}});
    }
    return rests;
}

/// One pair of rests.
struct Phase {
    std::int64_t y = 0, x = 0;  ///< first output
    Convolution c;
    PackedMatrix matrix;
};

/// The weights that the phase's taps have in `c`.
SharedBytes weights_of_phase(const Convolution& c, const Rest& rows, const Rest& columns) {
    const std::size_t element = c.floats ? sizeof(float) : 1;
    const std::size_t tap_bytes = static_cast<std::size_t>(c.depth) * element;
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(c.out_channels * rows.axis.taps * columns.axis.taps) * tap_bytes);
    auto to = bytes.begin();
    const auto tap_of = [](const Rest& rest, std::int64_t stride, std::int64_t i) {
        return rest.first_tap + (rest.axis.taps - 1 - i) * stride;
    };
    for (std::int64_t o = 0; o < c.out_channels; ++o) {
        for (std::int64_t i = 0; i < rows.axis.taps; ++i) {
            for (std::int64_t j = 0; j < columns.axis.taps; ++j) {
                const std::int64_t ky = tap_of(rows, c.h.stride, i);
                const std::int64_t kx = tap_of(columns, c.w.stride, j);
                const auto at = static_cast<std::size_t>((o * c.h.taps + ky) * c.w.taps + kx);
                to = std::ranges::copy(c.weights.view().subspan(at * tap_bytes, tap_bytes), to).out;
            }
        }
    }
    return SharedBytes::copy_of(bytes);
}

class FastTransposeConv final : public Kernel, public graph::PacksInputs {
  public:
    FastTransposeConv(const MatrixFunctions& functions, Convolution c, int threads)
        : functions_(functions), c_(std::move(c)), threads_(static_cast<std::size_t>(threads)) {
        std::int64_t longest = 0;
        std::size_t widest = 0;
        for (const Rest& rows : rests_of(c_.h)) {
            for (const Rest& columns : rests_of(c_.w)) {
                Phase& phase = phases_.emplace_back(
                    Phase{rows.first_output, columns.first_output, without_weights(), {}});
                phase.c.h = rows.axis;
                phase.c.w = columns.axis;
                phase.matrix = lay_out_matrix(phase.c, functions_.group, functions_.widest_block);
                longest = std::max(longest, phase.c.w.out);
                widest = std::max(widest, phase.matrix.row_bytes());
            }
        }
        const auto rows = static_cast<std::size_t>(longest);
        values_bytes_ = graph::align_up(rows * widest + gather_slack);
        worker_bytes_ = values_bytes_ + graph::align_up(rows * sizeof(std::int32_t));
    }

    [[nodiscard]] std::string name() const override {
        return "transpose_conv fast " + std::string(functions_.target);
    }
    [[nodiscard]] bool reads_input(std::size_t i) const override { return i == 2; }
    [[nodiscard]] std::size_t scratch_bytes() const override { return worker_bytes_ * threads_; }
    [[nodiscard]] std::size_t packed_bytes() const override {
        std::size_t bytes = 0;
        for (const Phase& phase : phases_) bytes += phase.matrix.packed_bytes();
        return bytes;
    }

    void pack() override {
        auto phase = phases_.begin();
        for (const Rest& rows : rests_of(c_.h)) {
            for (const Rest& columns : rests_of(c_.w)) {
                phase->c.weights = weights_of_phase(c_, rows, columns);
                pack_matrix(phase->c,
                            {c_.weights,
                             {c_.h.taps, c_.h.stride, rows.first_tap, c_.w.taps, c_.w.stride,
                              columns.first_tap}},
                            phase->matrix);
                phase->c.weights = {};
                ++phase;
            }
        }
        c_.weights = {};
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto rows = static_cast<std::size_t>(c_.batch * c_.h.in);
        if (rows == 0) return {};
        // Every tap of every input pixel, over the output's rows.
        const std::int64_t products = c_.h.out * c_.w.out * c_.h.taps * c_.w.taps * c_.in_channels *
                                      c_.out_channels / c_.h.in;
        frame.pool.parallel_for(rows,
                                grain_of(static_cast<std::size_t>(products),
                                         c_.floats ? dense_float_products : dense_byte_products),
                                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                    for (std::size_t row = begin; row < end; ++row)
                                        output_row(frame, static_cast<std::int64_t>(row), worker);
                                });
        return {};
    }

  private:
    /// What is the same in all phases.
    [[nodiscard]] Convolution without_weights() const {
        Convolution c = c_;
        c.weights = {};
        c.depth = c.in_channels;
        return c;
    }

    /// `row` counts over the batch.
    void output_row(const Frame& frame, std::int64_t row, std::size_t worker) const {
        std::byte* scratch = frame.scratch.data() + worker * worker_bytes_;
        auto* sums = reinterpret_cast<std::int32_t*>(scratch + values_bytes_);
        const std::int64_t batch = row / c_.h.in, y = row % c_.h.in;
        const std::int64_t pixel_bytes =
            c_.out_channels * static_cast<std::int64_t>(c_.floats ? sizeof(float) : 1);
        const std::int64_t step = c_.w.stride * pixel_bytes;
        for (const Phase& phase : phases_) {
            if (y % c_.h.stride != phase.y) continue;
            const WindowAxis& w = phase.c.w;
            const auto first =
                static_cast<std::size_t>((batch * phase.c.h.out + y / c_.h.stride) * w.out);
            const auto count = static_cast<std::size_t>(w.out);
            const Rows gathered =
                functions_.gather(phase.c, phase.matrix, frame.inputs[2], phase.c.input_zero,
                                  {first, first + count}, scratch, sums);
            functions_.multiply(phase.matrix, gathered, count, 0, phase.matrix.blocks.size(),
                                frame.outputs[0] + (row * c_.w.in + phase.x) * pixel_bytes,
                                static_cast<std::size_t>(step));
        }
    }

    const MatrixFunctions& functions_;
    Convolution c_;
    std::size_t threads_;
    std::vector<Phase> phases_;
    std::size_t values_bytes_ = 0;  ///< of a worker's rows; their sums stand behind
    std::size_t worker_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> fast_transpose_conv(Convolution convolution, int threads) {
    apply_simd_choice();
    const MatrixFunctions* functions =
        convolution.floats ? float_matrix_functions() : matrix_functions();
    // With a stride above the taps there are outputs that no input reaches, and as many phases as
    // the stride has.
    const bool has_gaps =
        convolution.h.stride > convolution.h.taps || convolution.w.stride > convolution.w.taps;
    if (functions == nullptr || has_gaps) return reference_transpose_conv(std::move(convolution));
    return std::make_unique<FastTransposeConv>(*functions, std::move(convolution), threads);
}

}  // namespace reef::cpu

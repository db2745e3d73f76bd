// DEPTHWISE_CONV_2D, row by row: runs of pixels inside the input, single pixels at its edges.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/simd.h"
#include "base/worker_pool.h"
#include "cpu/fast/depthwise_product.h"
#include "cpu/fast/float_depthwise.h"
#include "cpu/fast/hybrid_input.h"
#include "cpu/fast/pixel_rows.h"
#include "cpu/prepare/convolution.h"
#include "graph/memory_plan.h"
#include "graph/packed_inputs.h"

namespace reef::cpu {
namespace {

/// What a run reads.
struct DepthwiseInput {
    const std::byte* values = nullptr;
    const StepRule* rules = nullptr;  ///< one per image; null where the values are the input's
};

/// The input as it stands in the frame.
struct InputAsItIs {
    [[nodiscard]] static std::size_t scratch_bytes() { return 0; }
    [[nodiscard]] static Result<DepthwiseInput> input(const Frame& frame, std::byte* /*scratch*/) {
        return DepthwiseInput{frame.inputs[0], nullptr};
    }
};

/// Weights that a run widens first.
struct WidenedWeights {
    const DepthwiseFunctions& functions;
    PackedDepthwise packed;

    WidenedWeights(const DepthwiseFunctions& given, const Convolution& c)
        : functions(given), packed(lay_out_depthwise(c, given.blocks)) {}
    [[nodiscard]] std::size_t packed_bytes() const { return packed.packed_bytes(); }
    [[nodiscard]] std::size_t widened_bytes() const { return packed.widened_bytes; }
    void pack(const Convolution& c) { pack_depthwise(c, packed); }
    void widen(std::byte* to) const {
        if (packed.widened_bytes != 0) functions.widen(packed, to);
    }
};

/// uint8 and int8.
struct ByteForm : InputAsItIs, WidenedWeights {
    static constexpr const char* name = "depthwise_conv_2d";
    using Value = std::uint8_t;
    using Out = std::uint8_t;
    static constexpr std::size_t least = least_channels;
    static constexpr std::size_t products_at_once = depthwise_byte_products;
    bool is_signed;

    ByteForm(const DepthwiseFunctions& given, const Convolution& c)
        : WidenedWeights(given, c), is_signed(c.type == ElementType::int8) {}
    [[nodiscard]] static Value outside(const Convolution& c) {
        return static_cast<Value>(c.input_zero);
    }
    void run(const DepthwiseRun& run) const {
        (is_signed ? functions.run_int8 : functions.run_uint8)(packed, run);
    }
};

struct FloatForm : InputAsItIs {
    static constexpr const char* name = "depthwise_conv_2d";
    using Value = float;
    using Out = float;
    static constexpr std::size_t least = 1;
    static constexpr std::size_t products_at_once = depthwise_float_products;
    const FloatDepthwiseFunctions& functions;
    FloatDepthwise packed;

    FloatForm(const FloatDepthwiseFunctions& given, const Convolution& c)
        : functions(given), packed(lay_out_float_depthwise(c)) {}
    [[nodiscard]] static Value outside(const Convolution& /*c*/) { return 0; }
    [[nodiscard]] std::size_t packed_bytes() const { return packed.packed_bytes(); }
    void pack(const Convolution& c) { pack_float_depthwise(c, packed); }
    [[nodiscard]] static std::size_t widened_bytes() { return 0; }
    static void widen(std::byte* /*to*/) {}
    void run(const DepthwiseRun& run) const { functions.run(packed, run); }
};

/// Float32 on int8 weights, by int16 steps of the input less its zero.
struct HybridForm : WidenedWeights {
    static constexpr const char* name = "depthwise_conv_2d hybrid";
    using Value = std::int16_t;
    using Out = float;
    static constexpr std::size_t least = least_channels;
    static constexpr std::size_t products_at_once = depthwise_byte_products;
    struct Given {
        const DepthwiseFunctions& functions;
        bool asymmetric;
        const std::vector<float>& weight_scales;
    };
    std::size_t values;
    HybridInput steps;

    HybridForm(const Given& given, const Convolution& c)
        : WidenedWeights(given.functions, c),
          values(static_cast<std::size_t>(c.batch * c.h.in * c.w.in * c.in_channels)),
          steps(static_cast<std::size_t>(c.batch),
                static_cast<std::size_t>(c.h.in * c.w.in * c.in_channels), given.asymmetric) {
        packed.float_output = float_output_of(*c.floats, given.weight_scales, packed.blocks);
    }
    [[nodiscard]] static Value outside(const Convolution& /*c*/) { return 0; }
    [[nodiscard]] std::size_t scratch_bytes() const {
        return graph::align_up(steps.scratch_bytes()) + graph::align_up(values * sizeof(Value));
    }
    [[nodiscard]] Result<DepthwiseInput> input(const Frame& frame, std::byte* scratch) const {
        std::byte* bytes = scratch + graph::align_up(steps.scratch_bytes());
        auto* to = reinterpret_cast<Value*>(bytes);
        const StepRule* rules = REEF_TRY(steps.quantise(
            frame.in<float>(0), scratch, frame.pool,
            [&](std::span<const float> from, const StepRule& rule, std::size_t position) {
                quantise_to_steps(from, rule, to + position);
            }));
        return DepthwiseInput{bytes, rules};
    }
    void run(const DepthwiseRun& run) const { functions.run_steps(packed, run); }
};

template <typename Form>
class FastDepthwiseConv2d final : public Kernel, public graph::PacksInputs {
  public:
    template <typename Functions>
    FastDepthwiseConv2d(const Functions& functions, Convolution c, int threads)
        : c_(std::move(c)),
          form_(functions, c_),
          channels_(std::max(static_cast<std::size_t>(c_.out_channels), Form::least)),
          expands_(channels_ != static_cast<std::size_t>(c_.in_channels)),
          prepared_(static_cast<std::size_t>(threads)) {
        const auto input_pixels = static_cast<std::size_t>(c_.batch * c_.h.in * c_.w.in);
        const std::size_t pixel_bytes = channels_ * sizeof(Value);
        // A row of zero points is short where images are images; of signals it is all of one.
        constexpr std::size_t short_row = std::size_t{32} << 10;
        const auto row = graph::align_up(static_cast<std::size_t>(c_.w.in) * pixel_bytes);
        (row <= short_row ? outside_bytes_ : shared_outside_bytes_) = row;
        widened_bytes_ = graph::align_up(form_.widened_bytes());
        worker_bytes_ =
            outside_bytes_ + widened_bytes_ + graph::align_up(taps() * sizeof(const std::byte*));
        expanded_bytes_ = expands_ ? graph::align_up(input_pixels * pixel_bytes) : 0;
        scratch_bytes_ = expanded_bytes_ + shared_outside_bytes_ +
                         worker_bytes_ * static_cast<std::size_t>(threads) + form_.scratch_bytes();
        // Shares of whole rows are unequal where these are few: 4 and 3 of 7.
        constexpr std::size_t few_rows = 8;
        const auto rows = static_cast<std::size_t>(c_.batch * c_.h.out);
        const bool are_few = rows < few_rows * static_cast<std::size_t>(threads);
        if (threads > 1 && are_few && c_.w.out > 1) row_pieces_ = 2;
        // Output columns whose taps are all inside.
        const WindowAxis& w = c_.w;
        const std::int64_t reach = (w.taps - 1) * w.dilation;
        inside_begin_ = std::min(w.out, (w.pad + w.stride - 1) / w.stride);
        const std::int64_t last = w.in - 1 - reach + w.pad;
        inside_end_ = last < 0 ? 0 : std::min(w.out, last / w.stride + 1);
        inside_end_ = std::max(inside_end_, inside_begin_);
    }

    [[nodiscard]] std::string name() const override {
        return fmt::format("{} fast {}", Form::name, form_.functions.target);
    }
    [[nodiscard]] bool reads_input(std::size_t i) const override { return i == 0; }
    [[nodiscard]] std::size_t scratch_bytes() const override { return scratch_bytes_; }
    [[nodiscard]] std::size_t packed_bytes() const override { return form_.packed_bytes(); }

    void pack() override {
        form_.pack(c_);
        c_.weights = {};
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        std::byte* scratch = frame.scratch.data();
        const std::size_t form_bytes = form_.scratch_bytes();
        DepthwiseInput input = REEF_TRY(form_.input(frame, scratch + scratch_bytes_ - form_bytes));
        if (expands_) {
            expand(frame, input.values, scratch);
            input.values = scratch;
        }
        std::byte* shared_outside = scratch + expanded_bytes_;
        fill_outside(shared_outside, shared_outside_bytes_);
        std::byte* workers = shared_outside + shared_outside_bytes_;
        ++run_;
        const auto pieces = static_cast<std::size_t>(c_.batch * c_.h.out) * row_pieces_;
        const auto products = taps() * static_cast<std::size_t>(c_.w.out * c_.out_channels);
        frame.pool.parallel_for(
            pieces, grain_of(products / row_pieces_, Form::products_at_once),
            [&](std::size_t begin, std::size_t end, std::size_t worker) {
                Row row = prepared_row(input, workers + worker * worker_bytes_, prepared_[worker]);
                if (outside_bytes_ == 0) row.outside = shared_outside;
                const std::size_t row_bytes = static_cast<std::size_t>(c_.w.out) * out_bytes();
                for (std::size_t i = begin / row_pieces_; i * row_pieces_ < end; ++i) {
                    row.out = reinterpret_cast<std::uint8_t*>(frame.outputs[0] + i * row_bytes);
                    run_row(static_cast<std::int64_t>(i), columns_of(i, begin, end), row);
                }
            });
        return {};
    }

  private:
    using Value = typename Form::Value;
    struct Row {
        DepthwiseInput input;      ///< batch x height x width x channels_ values
        const std::byte* outside;  ///< an input row of zero points
        const std::byte* widened;  ///< weights
        const std::byte** taps;
        std::uint8_t* out;
    };

    /// On a cache line of its own.
    struct alignas(64) Prepared {
        std::uint64_t run = 0;  ///< the last one that the worker's memory is prepared for
    };

    void fill_outside(std::byte* row, std::size_t bytes) const {
        std::fill_n(reinterpret_cast<Value*>(row), bytes / sizeof(Value), Form::outside(c_));
    }

    /// Each worker prepares its own memory in a run: what another core has written it would wait
    /// for, line by line.
    Row prepared_row(const DepthwiseInput& input, std::byte* memory, Prepared& prepared) const {
        std::byte* widened = memory + outside_bytes_;
        if (prepared.run != run_) {
            fill_outside(memory, outside_bytes_);
            form_.widen(widened);
            prepared.run = run_;
        }
        return {input, memory, widened,
                reinterpret_cast<const std::byte**>(widened + widened_bytes_), nullptr};
    }

    [[nodiscard]] std::size_t taps() const {
        return static_cast<std::size_t>(c_.h.taps * c_.w.taps);
    }
    /// Of an output pixel.
    [[nodiscard]] std::size_t out_bytes() const {
        return static_cast<std::size_t>(c_.out_channels) * sizeof(typename Form::Out);
    }

    /// Every input channel depth_multiplier times, and values of outside up to the least number.
    void expand(const Frame& frame, const std::byte* input, std::byte* to) const {
        const auto copies = static_cast<std::size_t>(c_.depth_multiplier);
        const auto from_channels = static_cast<std::size_t>(c_.in_channels);
        const auto width = static_cast<std::size_t>(c_.w.in);
        frame.pool.parallel_for(
            static_cast<std::size_t>(c_.batch * c_.h.in), 1,
            [&](std::size_t begin, std::size_t end, std::size_t) {
                const Value* from =
                    reinterpret_cast<const Value*>(input) + begin * width * from_channels;
                Value* pixel = reinterpret_cast<Value*>(to) + begin * width * channels_;
                for (std::size_t i = begin * width; i < end * width; ++i, pixel += channels_) {
                    Value* channel = pixel;
                    for (std::size_t j = 0; j < from_channels; ++j, channel += copies)
                        std::fill_n(channel, copies, *from++);
                    std::fill(channel, pixel + channels_, Form::outside(c_));
                }
            });
    }

    struct Columns {
        std::int64_t begin, end;
    };
    /// Those of a row that the pieces [begin, end) of all rows have.
    [[nodiscard]] Columns columns_of(std::size_t row, std::size_t begin, std::size_t end) const {
        const auto column = [&](std::size_t piece) {
            const std::size_t of_row = std::min(piece - row * row_pieces_, row_pieces_);
            return static_cast<std::int64_t>(of_row) * c_.w.out /
                   static_cast<std::int64_t>(row_pieces_);
        };
        return {column(std::max(begin, row * row_pieces_)), column(end)};
    }

    /// Output row `row` counts over the batch.
    void run_row(std::int64_t row, Columns columns, Row& place) const {
        const auto [begin, end] = columns;
        const std::int64_t inside_begin = std::clamp(inside_begin_, begin, end);
        const std::int64_t inside_end = std::clamp(inside_end_, begin, end);
        for (std::int64_t x = begin; x < inside_begin; ++x) run_pixels(row, x, 1, place);
        if (inside_end > inside_begin)
            run_pixels(row, inside_begin, inside_end - inside_begin, place);
        for (std::int64_t x = inside_end; x < end; ++x) run_pixels(row, x, 1, place);
    }

    void run_pixels(std::int64_t row, std::int64_t x, std::int64_t count, Row& place) const {
        const WindowAxis& h = c_.h;
        const WindowAxis& w = c_.w;
        const auto pixel_bytes = static_cast<std::int64_t>(channels_ * sizeof(Value));
        const std::int64_t b = row / h.out;
        const std::byte* image = place.input.values + b * h.in * w.in * pixel_bytes;
        std::int64_t iy = h.first(row % h.out);
        const std::byte** tap = place.taps;
        for (std::int64_t ky = 0; ky < h.taps; ++ky, iy += h.dilation) {
            std::int64_t ix = w.first(x);
            for (std::int64_t kx = 0; kx < w.taps; ++kx, ix += w.dilation)
                *tap++ = h.contains(iy) && w.contains(ix) ? image + (iy * w.in + ix) * pixel_bytes
                                                          : place.outside;
        }
        const DepthwiseRun run{
            .taps = {place.taps, taps()},
            .widened = place.widened,
            .step = static_cast<std::size_t>(w.stride * pixel_bytes),
            .columns = w.dilation == 1 ? static_cast<std::size_t>(w.stride) : 0,
            .pixels = static_cast<std::size_t>(count),
            .out = place.out + static_cast<std::size_t>(x) * out_bytes(),
            .out_stride = out_bytes(),
            .scale = place.input.rules == nullptr ? 1 : place.input.rules[b].scale,
        };
        form_.run(run);
    }

    Convolution c_;
    Form form_;
    std::size_t channels_;           ///< of a pixel as the kernels read it
    bool expands_;                   ///< the input has other channels: it is copied first
    std::size_t outside_bytes_ = 0;  ///< of a worker, or:
    std::size_t shared_outside_bytes_ = 0;
    std::size_t widened_bytes_ = 0;
    std::size_t expanded_bytes_ = 0;
    std::size_t worker_bytes_ = 0;
    std::size_t scratch_bytes_ = 0;
    std::uint64_t run_ = 0;
    std::vector<Prepared> prepared_;  ///< by worker
    std::size_t row_pieces_ = 1;      ///< of a row, for threads to share
    std::int64_t inside_begin_ = 0;
    std::int64_t inside_end_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> fast_depthwise_conv_2d(Convolution convolution, int threads) {
    apply_simd_choice();
    if (convolution.floats) {
        if (const FloatDepthwiseFunctions* functions = float_depthwise_functions())
            return std::make_unique<FastDepthwiseConv2d<FloatForm>>(
                *functions, std::move(convolution), threads);
    } else if (const DepthwiseFunctions* functions = depthwise_functions()) {
        return std::make_unique<FastDepthwiseConv2d<ByteForm>>(*functions, std::move(convolution),
                                                               threads);
    }
    return reference_depthwise_conv_2d(std::move(convolution));
}

std::unique_ptr<Kernel> fast_depthwise_hybrid(std::string op, HybridConvolution hybrid,
                                              int threads) {
    apply_simd_choice();
    const DepthwiseFunctions* functions = depthwise_functions();
    if (functions == nullptr) return reference_hybrid(std::move(op), std::move(hybrid));
    const HybridForm::Given given{*functions, hybrid.asymmetric, hybrid.weight_scales};
    return std::make_unique<FastDepthwiseConv2d<HybridForm>>(given, std::move(hybrid.convolution),
                                                             threads);
}

}  // namespace reef::cpu

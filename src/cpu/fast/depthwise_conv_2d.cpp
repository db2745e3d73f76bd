// DEPTHWISE_CONV_2D, row by row: runs of pixels inside the input, single pixels at its edges.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/simd.h"
#include "base/worker_pool.h"
#include "cpu/fast/depthwise_product.h"
#include "cpu/prepare/convolution.h"
#include "graph/memory_plan.h"

namespace reef::cpu {
namespace {

class FastDepthwiseConv2d final : public Kernel {
  public:
    FastDepthwiseConv2d(const DepthwiseFunctions& functions, Convolution c, int threads)
        : functions_(functions),
          c_(std::move(c)),
          packed_(lay_out_depthwise(c_, functions_)),
          channels_(std::max(static_cast<std::size_t>(c_.out_channels), least_channels)),
          expands_(channels_ != static_cast<std::size_t>(c_.in_channels)) {
        const auto input_pixels = static_cast<std::size_t>(c_.batch * c_.h.in * c_.w.in);
        outside_bytes_ = graph::align_up(static_cast<std::size_t>(c_.w.in) * channels_);
        worker_bytes_ = graph::align_up(packed_.taps * sizeof(const std::byte*));
        expanded_bytes_ = expands_ ? graph::align_up(input_pixels * channels_) : 0;
        scratch_bytes_ =
            outside_bytes_ + expanded_bytes_ + worker_bytes_ * static_cast<std::size_t>(threads);
        // Output columns whose taps are all inside.
        const WindowAxis& w = c_.w;
        const std::int64_t reach = (w.taps - 1) * w.dilation;
        inside_begin_ = std::min(w.out, (w.pad + w.stride - 1) / w.stride);
        const std::int64_t last = w.in - 1 - reach + w.pad;
        inside_end_ = last < 0 ? 0 : std::min(w.out, last / w.stride + 1);
        inside_end_ = std::max(inside_end_, inside_begin_);
    }

    [[nodiscard]] std::string name() const override {
        return "depthwise_conv_2d fast " + std::string(functions_.target);
    }
    [[nodiscard]] std::size_t scratch_bytes() const override { return scratch_bytes_; }
    [[nodiscard]] std::size_t packed_bytes() const override { return packed_.packed_bytes(); }

    void pack() override {
        pack_depthwise(c_, packed_);
        c_.weights = {};
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        std::byte* scratch = frame.scratch.data();
        std::memset(scratch, c_.input_zero & 0xFF, outside_bytes_);
        const std::byte* input = frame.inputs[0];
        if (expands_) {
            expand(frame, scratch + outside_bytes_);
            input = scratch + outside_bytes_;
        }
        std::byte* workers = scratch + outside_bytes_ + expanded_bytes_;
        frame.pool.parallel_for(
            static_cast<std::size_t>(c_.batch * c_.h.out), 1,
            [&](std::size_t begin, std::size_t end, std::size_t worker) {
                Row row{input, scratch,
                        reinterpret_cast<const std::byte**>(workers + worker * worker_bytes_),
                        nullptr};
                const auto row_bytes = static_cast<std::size_t>(c_.w.out * c_.out_channels);
                for (std::size_t i = begin; i < end; ++i) {
                    row.out = reinterpret_cast<std::uint8_t*>(frame.outputs[0] + i * row_bytes);
                    run_row(static_cast<std::int64_t>(i), row);
                }
            });
        return {};
    }

  private:
    struct Row {
        const std::byte* input;    ///< batch x height x width x channels_
        const std::byte* outside;  ///< an input row of zero points
        const std::byte** taps;
        std::uint8_t* out;
    };

    /// Every input channel depth_multiplier times, and zero points up to least_channels.
    void expand(const Frame& frame, std::byte* to) const {
        const auto copies = static_cast<std::size_t>(c_.depth_multiplier);
        const auto from_channels = static_cast<std::size_t>(c_.in_channels);
        const auto width = static_cast<std::size_t>(c_.w.in);
        frame.pool.parallel_for(
            static_cast<std::size_t>(c_.batch * c_.h.in), 1,
            [&](std::size_t begin, std::size_t end, std::size_t) {
                const std::byte* from = frame.inputs[0] + begin * width * from_channels;
                std::byte* pixel = to + begin * width * channels_;
                for (std::size_t i = begin * width; i < end * width; ++i, pixel += channels_) {
                    std::byte* channel = pixel;
                    for (std::size_t j = 0; j < from_channels; ++j, channel += copies)
                        std::memset(channel, std::to_integer<int>(*from++), copies);
                    std::fill(channel, pixel + channels_,
                              static_cast<std::byte>(c_.input_zero & 0xFF));
                }
            });
    }

    /// Output row `row` counts over the batch.
    void run_row(std::int64_t row, Row& place) const {
        for (std::int64_t x = 0; x < inside_begin_; ++x) run_pixels(row, x, 1, place);
        if (inside_end_ > inside_begin_)
            run_pixels(row, inside_begin_, inside_end_ - inside_begin_, place);
        for (std::int64_t x = inside_end_; x < c_.w.out; ++x) run_pixels(row, x, 1, place);
    }

    void run_pixels(std::int64_t row, std::int64_t x, std::int64_t count, Row& place) const {
        const WindowAxis& h = c_.h;
        const WindowAxis& w = c_.w;
        const auto channels = static_cast<std::int64_t>(channels_);
        const std::byte* image = place.input + row / h.out * h.in * w.in * channels;
        std::int64_t iy = h.first(row % h.out);
        const std::byte** tap = place.taps;
        for (std::int64_t ky = 0; ky < h.taps; ++ky, iy += h.dilation) {
            std::int64_t ix = w.first(x);
            for (std::int64_t kx = 0; kx < w.taps; ++kx, ix += w.dilation)
                *tap++ = h.contains(iy) && w.contains(ix) ? image + (iy * w.in + ix) * channels
                                                          : place.outside;
        }
        const DepthwiseRun run{
            .taps = {place.taps, packed_.taps},
            .step = static_cast<std::size_t>(w.stride * channels),
            .columns = w.dilation == 1 ? static_cast<std::size_t>(w.stride) : 0,
            .pixels = static_cast<std::size_t>(count),
            .out = place.out + x * c_.out_channels,
            .out_stride = static_cast<std::size_t>(c_.out_channels),
        };
        if (c_.type == ElementType::uint8)
            functions_.run_uint8(packed_, run);
        else
            functions_.run_int8(packed_, run);
    }

    const DepthwiseFunctions& functions_;
    Convolution c_;
    PackedDepthwise packed_;
    std::size_t channels_;  ///< of a pixel as the kernels read it
    bool expands_;          ///< the input has other channels: it is copied first
    std::size_t outside_bytes_ = 0;
    std::size_t expanded_bytes_ = 0;
    std::size_t worker_bytes_ = 0;
    std::size_t scratch_bytes_ = 0;
    std::int64_t inside_begin_ = 0;
    std::int64_t inside_end_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> fast_depthwise_conv_2d(Convolution convolution, int threads) {
    apply_simd_choice();
    const DepthwiseFunctions* functions = depthwise_functions();
    if (functions == nullptr) return reference_depthwise_conv_2d(std::move(convolution));
    return std::make_unique<FastDepthwiseConv2d>(*functions, std::move(convolution), threads);
}

}  // namespace reef::cpu

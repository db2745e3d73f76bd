// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED of float32 activations and int8 weights. Sums are
// exact; each is multiplied once, by the product of the input's scale and the weights' (of a
// depthwise filter by one after the other), and the bias added, as TFLite's kernels do.
#include <algorithm>
#include <string>
#include <utility>

#include "base/worker_pool.h"
#include "cpu/prepare/convolution.h"
#include "cpu/prepare/hybrid.h"

namespace reef::cpu {
namespace {

class HybridKernel final : public Kernel {
  public:
    HybridKernel(std::string op, HybridConvolution hybrid)
        : op_(std::move(op)), hybrid_(std::move(hybrid)), c_(hybrid_.convolution) {}
    [[nodiscard]] std::string name() const override { return op_ + " hybrid"; }
    /// The quantised input, and the scale of each image.
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return images() * (sizeof(float) + image_size() * sizeof(std::int16_t));
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        auto* scales = reinterpret_cast<float*>(frame.scratch.data());
        auto* steps = reinterpret_cast<std::int16_t*>(scales + images());
        for (std::size_t b = 0; b < images(); ++b) {
            const std::span image(frame.in<float>(0) + b * image_size(), image_size());
            scales[b] = REEF_TRY(write_steps(image, hybrid_.asymmetric, steps + b * image_size()));
        }
        const auto rows = images() * static_cast<std::size_t>(c_.h.out);
        frame.pool.parallel_for(rows, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t row = begin; row < end; ++row) {
                const std::size_t b = row / static_cast<std::size_t>(c_.h.out);
                const auto y = static_cast<std::int64_t>(row) % c_.h.out;
                float* out = frame.out<float>(0) +
                             static_cast<std::int64_t>(row) * c_.w.out * c_.out_channels;
                for (std::int64_t x = 0; x < c_.w.out; ++x, out += c_.out_channels)
                    pixel(steps + b * image_size(), scales[b], y, x, out);
            }
        });
        return {};
    }

  private:
    [[nodiscard]] std::size_t images() const { return static_cast<std::size_t>(c_.batch); }
    [[nodiscard]] std::size_t image_size() const {
        return static_cast<std::size_t>(c_.h.in * c_.w.in * c_.in_channels);
    }

    void pixel(const std::int16_t* image, float scale, std::int64_t y, std::int64_t x,
               float* out) const {
        constexpr std::int64_t at_once = 64;
        const FloatSums& floats = *c_.floats;
        for (std::int64_t first = 0; first < c_.out_channels; first += at_once) {
            std::int32_t sums[at_once] = {};
            const std::int64_t channels = std::min(at_once, c_.out_channels - first);
            each_tap(y, x, [&](std::int64_t pixel, std::int64_t tap) {
                const std::int16_t* from = image + pixel * c_.in_channels;
                if (hybrid_.depthwise)
                    add_channels(from, tap, first, channels, sums);
                else
                    add_products(from, tap, first, channels, sums);
            });
            for (std::int64_t i = 0; i < channels; ++i) {
                const auto o = static_cast<std::size_t>(first + i);
                const float product = scaled(sums[i], scale, o);
                out[o] = std::clamp(product + floats.bias[o], floats.clamp.min, floats.clamp.max);
            }
        }
    }

    [[nodiscard]] float scaled(std::int32_t sum, float scale, std::size_t channel) const {
        const std::vector<float>& scales = hybrid_.weight_scales;
        const float of_weights = scales[scales.size() == 1 ? 0 : channel];
        const auto value = static_cast<float>(sum);
        return hybrid_.depthwise ? value * scale * of_weights : value * (scale * of_weights);
    }

    void each_tap(std::int64_t y, std::int64_t x, auto&& tell) const {
        for (std::int64_t ky = 0; ky < c_.h.taps; ++ky) {
            for (std::int64_t kx = 0; kx < c_.w.taps; ++kx) {
                const std::int64_t iy = c_.h.first(y) + ky * c_.h.dilation;
                const std::int64_t ix = c_.w.first(x) + kx * c_.w.dilation;
                if (c_.h.contains(iy) && c_.w.contains(ix))
                    tell(iy * c_.w.in + ix, ky * c_.w.taps + kx);
            }
        }
    }

    [[nodiscard]] const std::int8_t* weights() const {
        return reinterpret_cast<const std::int8_t*>(c_.weights.view().data());
    }
    /// A channel of the input gives depth_multiplier channels of the output.
    void add_channels(const std::int16_t* from, std::int64_t tap, std::int64_t first,
                      std::int64_t channels, std::int32_t* sums) const {
        const std::int8_t* weight = weights() + tap * c_.out_channels + first;
        for (std::int64_t i = 0; i < channels; ++i)
            sums[i] += from[(first + i) / c_.depth_multiplier] * weight[i];
    }
    void add_products(const std::int16_t* from, std::int64_t tap, std::int64_t first,
                      std::int64_t channels, std::int32_t* sums) const {
        const std::int64_t filter = c_.h.taps * c_.w.taps * c_.depth;
        const std::int8_t* weight = weights() + first * filter + tap * c_.depth;
        for (std::int64_t o = 0; o < channels; ++o, weight += filter) {
            std::int32_t sum = 0;
            for (std::int64_t i = 0; i < c_.depth; ++i) sum += from[i] * weight[i];
            sums[o] += sum;
        }
    }

    std::string op_;
    HybridConvolution hybrid_;
    const Convolution& c_;
};

}  // namespace

std::unique_ptr<Kernel> reference_hybrid(std::string op, HybridConvolution hybrid) {
    return std::make_unique<HybridKernel>(std::move(op), std::move(hybrid));
}

}  // namespace reef::cpu

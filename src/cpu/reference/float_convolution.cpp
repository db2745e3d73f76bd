#include "cpu/reference/float_convolution.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/worker_pool.h"

namespace reef::cpu {
namespace {

class FloatConvolution final : public Kernel {
  public:
    FloatConvolution(std::string name, Convolution c, FloatFilterSteps steps)
        : name_(std::move(name)), c_(std::move(c)), steps_(steps) {}
    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] std::size_t packed_bytes() const override { return c_.weights.size(); }

    /// Taps x depth x output channels, so that the innermost loop runs along the output's channels.
    void pack() override {
        const Bytes bytes = c_.weights.view();
        packed_.resize(bytes.size() / sizeof(float));
        auto next = packed_.begin();
        for (std::int64_t tap = 0; tap < c_.h.taps * c_.w.taps; ++tap)
            for (std::int64_t i = 0; i < c_.depth; ++i)
                for (std::int64_t o = 0; o < c_.out_channels; ++o, ++next) {
                    const std::int64_t at = o * steps_.channel + tap * steps_.tap + i;
                    std::memcpy(&*next, bytes.data() + at * std::int64_t{sizeof(float)},
                                sizeof(float));
                }
        c_.weights = {};
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto rows = static_cast<std::size_t>(c_.batch * c_.h.out);
        frame.pool.parallel_for(rows, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t row = begin; row < end; ++row) {
                const auto b = static_cast<std::int64_t>(row) / c_.h.out;
                const auto y = static_cast<std::int64_t>(row) % c_.h.out;
                for (std::int64_t x = 0; x < c_.w.out; ++x)
                    pixel(frame.in<float>(0) + b * c_.h.in * c_.w.in * c_.in_channels, y, x,
                          frame.out<float>(0) +
                              (static_cast<std::int64_t>(row) * c_.w.out + x) * c_.out_channels);
            }
        });
        return {};
    }

  private:
    void pixel(const float* image, std::int64_t y, std::int64_t x, float* out) const {
        std::fill_n(out, c_.out_channels, 0.0F);
        for (std::int64_t ky = 0; ky < c_.h.taps; ++ky) {
            for (std::int64_t kx = 0; kx < c_.w.taps; ++kx) {
                const std::int64_t iy = c_.h.first(y) + ky * c_.h.dilation;
                const std::int64_t ix = c_.w.first(x) + kx * c_.w.dilation;
                if (!c_.h.contains(iy) || !c_.w.contains(ix)) continue;
                add_tap(image + (iy * c_.w.in + ix) * c_.in_channels,
                        packed_.data() + (ky * c_.w.taps + kx) * c_.depth * c_.out_channels, out);
            }
        }
        const FloatSums& floats = *c_.floats;
        for (std::int64_t o = 0; o < c_.out_channels; ++o)
            out[o] = std::clamp(out[o] + floats.bias[static_cast<std::size_t>(o)], floats.clamp.min,
                                floats.clamp.max);
    }

    void add_tap(const float* pixel, const float* weights, float* out) const {
        if (c_.depth == 1 && c_.in_channels == c_.out_channels) {
            for (std::int64_t o = 0; o < c_.out_channels; ++o) out[o] += pixel[o] * weights[o];
            return;
        }
        const std::int64_t outputs = c_.out_channels / c_.groups();
        for (std::int64_t i = 0; i < c_.depth; ++i, weights += c_.out_channels)
            for (std::int64_t group = 0; group < c_.groups(); ++group)
                for (std::int64_t o = group * outputs; o < (group + 1) * outputs; ++o)
                    out[o] += pixel[group * c_.depth + i] * weights[o];
    }

    std::string name_;
    Convolution c_;
    FloatFilterSteps steps_;
    std::vector<float> packed_;
};

}  // namespace

std::unique_ptr<Kernel> float_convolution(std::string name, Convolution c, FloatFilterSteps steps) {
    return std::make_unique<FloatConvolution>(std::move(name), std::move(c), steps);
}

}  // namespace reef::cpu

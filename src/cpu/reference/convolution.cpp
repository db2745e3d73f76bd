// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED as their definitions read. A depthwise convolution
// is one in groups of one input channel, with its filter laid out the other way round;
// FULLY_CONNECTED is a convolution with one tap on images of one pixel.
#include "cpu/prepare/convolution.h"

#include <string>
#include <utility>

#include "cpu/reference/float_convolution.h"

namespace reef::cpu {
namespace {

/// Elements from the filter of one output channel to the next, and from one tap to the next.
struct FilterSteps {
    std::int64_t channel = 0;
    std::int64_t tap = 0;
};

template <typename T>
class ReferenceConvolution final : public Kernel {
  public:
    ReferenceConvolution(std::string name, Convolution c, FilterSteps steps)
        : name_(std::move(name)), c_(std::move(c)), steps_(steps) {}
    [[nodiscard]] std::string name() const override { return name_; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* in = frame.in<T>(0);
        T* out = frame.out<T>(0);
        const std::int64_t image = c_.h.in * c_.w.in * c_.in_channels;
        for (std::int64_t b = 0; b < c_.batch; ++b)
            for (std::int64_t y = 0; y < c_.h.out; ++y)
                for (std::int64_t x = 0; x < c_.w.out; ++x)
                    for (std::int64_t o = 0; o < c_.out_channels; ++o)
                        *out++ = requantize<T>(c_, o, sum(in + b * image, y, x, o));
        return {};
    }

  private:
    [[nodiscard]] std::uint32_t sum(const T* image, std::int64_t y, std::int64_t x,
                                    std::int64_t o) const {
        const T* filter = reinterpret_cast<const T*>(c_.weights.view().data()) + o * steps_.channel;
        const std::int64_t group = o / (c_.out_channels / c_.groups());
        std::uint32_t total = 0;
        for (std::int64_t ky = 0; ky < c_.h.taps; ++ky) {
            for (std::int64_t kx = 0; kx < c_.w.taps; ++kx) {
                const std::int64_t iy = c_.h.first(y) + ky * c_.h.dilation;
                const std::int64_t ix = c_.w.first(x) + kx * c_.w.dilation;
                if (!c_.h.contains(iy) || !c_.w.contains(ix)) continue;
                const T* pixel = image + (iy * c_.w.in + ix) * c_.in_channels + group * c_.depth;
                const T* tap = filter + (ky * c_.w.taps + kx) * steps_.tap;
                for (std::int64_t i = 0; i < c_.depth; ++i)
                    total += static_cast<std::uint32_t>((pixel[i] - c_.input_zero) *
                                                        (tap[i] - c_.weight_zero));
            }
        }
        return total;
    }

    std::string name_;
    Convolution c_;
    FilterSteps steps_;
};

std::unique_ptr<Kernel> reference_convolution(std::string name, Convolution c, FilterSteps steps) {
    if (c.floats)
        return float_convolution(std::move(name), std::move(c), {steps.channel, steps.tap});
    if (c.type == ElementType::uint8)
        return std::make_unique<ReferenceConvolution<std::uint8_t>>(std::move(name), std::move(c),
                                                                    steps);
    return std::make_unique<ReferenceConvolution<std::int8_t>>(std::move(name), std::move(c),
                                                               steps);
}

}  // namespace

std::unique_ptr<Kernel> reference_conv_2d(Convolution convolution) {
    const FilterSteps steps{convolution.h.taps * convolution.w.taps * convolution.depth,
                            convolution.depth};
    return reference_convolution("conv_2d reference", std::move(convolution), steps);
}

std::unique_ptr<Kernel> reference_fully_connected(Convolution convolution) {
    const FilterSteps steps{convolution.depth, convolution.depth};
    return reference_convolution("fully_connected reference", std::move(convolution), steps);
}

std::unique_ptr<Kernel> reference_depthwise_conv_2d(Convolution convolution) {
    const FilterSteps steps{1, convolution.out_channels};
    return reference_convolution("depthwise_conv_2d reference", std::move(convolution), steps);
}

}  // namespace reef::cpu

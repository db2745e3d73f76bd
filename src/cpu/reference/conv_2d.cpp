// CONV_2D as its definition reads.
#include <string>
#include <utility>

#include "cpu/convolution.h"

namespace reef::cpu {
namespace {

template <typename T>
class ReferenceConv2d final : public Kernel {
  public:
    explicit ReferenceConv2d(Convolution c) : c_(std::move(c)) {}
    [[nodiscard]] std::string name() const override { return "conv_2d reference"; }

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
        const T* filter = reinterpret_cast<const T*>(c_.weights.view().data()) +
                          o * c_.h.taps * c_.w.taps * c_.depth;
        const std::int64_t group = o / (c_.out_channels / c_.groups());
        std::uint32_t total = 0;
        for (std::int64_t ky = 0; ky < c_.h.taps; ++ky) {
            for (std::int64_t kx = 0; kx < c_.w.taps; ++kx) {
                const std::int64_t iy = c_.h.first(y) + ky * c_.h.dilation;
                const std::int64_t ix = c_.w.first(x) + kx * c_.w.dilation;
                if (!c_.h.contains(iy) || !c_.w.contains(ix)) continue;
                const T* pixel = image + (iy * c_.w.in + ix) * c_.in_channels + group * c_.depth;
                const T* tap = filter + (ky * c_.w.taps + kx) * c_.depth;
                for (std::int64_t i = 0; i < c_.depth; ++i)
                    total += static_cast<std::uint32_t>((pixel[i] - c_.input_zero) *
                                                        (tap[i] - c_.weight_zero));
            }
        }
        return total;
    }

    Convolution c_;
};

}  // namespace

std::unique_ptr<Kernel> reference_conv_2d(Convolution convolution) {
    if (convolution.type == ElementType::uint8)
        return std::make_unique<ReferenceConv2d<std::uint8_t>>(std::move(convolution));
    return std::make_unique<ReferenceConv2d<std::int8_t>>(std::move(convolution));
}

}  // namespace reef::cpu

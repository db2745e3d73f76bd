// FULLY_CONNECTED as its definition reads.
#include <string>
#include <utility>

#include "cpu/convolution.h"

namespace reef::cpu {
namespace {

template <typename T>
class ReferenceFullyConnected final : public Kernel {
  public:
    explicit ReferenceFullyConnected(Convolution c) : c_(std::move(c)) {}
    [[nodiscard]] std::string name() const override { return "fully_connected reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* row = frame.in<T>(0);
        T* out = frame.out<T>(0);
        const T* weights = reinterpret_cast<const T*>(c_.weights.view().data());
        for (std::int64_t b = 0; b < c_.batch; ++b, row += c_.depth) {
            for (std::int64_t o = 0; o < c_.out_channels; ++o) {
                std::uint32_t sum = 0;
                for (std::int64_t i = 0; i < c_.depth; ++i)
                    sum += static_cast<std::uint32_t>((row[i] - c_.input_zero) *
                                                      (weights[o * c_.depth + i] - c_.weight_zero));
                *out++ = requantize<T>(c_, o, sum);
            }
        }
        return {};
    }

  private:
    Convolution c_;
};

}  // namespace

std::unique_ptr<Kernel> reference_fully_connected(Convolution convolution) {
    if (convolution.type == ElementType::uint8)
        return std::make_unique<ReferenceFullyConnected<std::uint8_t>>(std::move(convolution));
    return std::make_unique<ReferenceFullyConnected<std::int8_t>>(std::move(convolution));
}

}  // namespace reef::cpu

// SOFTMAX, with 16-bit integers between the steps.
#include "cpu/reference/softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cpu/prepare/kernels.h"
#include "edgetpu/numerics/functions.h"
#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/refusals.h"
#include "edgetpu/numerics/requantisation.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

/// The vendor's sequence of instructions: exponentials of x - max in 16 bits, the inverse root of
/// their sum, its square, the products.
template <typename T>
class IntegerSoftmax final : public Kernel {
  public:
    /// Sums of 16-bit numbers stay below 2^31.
    static constexpr std::size_t longest = 1 << 15;

    IntegerSoftmax(std::size_t length, float scale) : length_(length) {
        for (std::size_t i = 0; i < exponentials_.size(); ++i) {
            const float below = static_cast<float>(static_cast<int>(i) - 255) * scale;
            exponentials_[i] = to_16_bits(exponential_65536(std::max(below, exponential_limit)));
        }
    }

    [[nodiscard]] std::string name() const override { return "softmax table"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* in = frame.in<T>(0);
        T* out = frame.out<T>(0);
        const std::int32_t largest = *std::max_element(in, in + length_);
        const auto exponential = [&](T value) {
            return exponentials_[static_cast<std::size_t>(255 - largest + value)];
        };
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < length_; ++i) sum += exponential(in[i]);
        const std::int32_t reciprocal = reciprocal_of(sum);
        for (std::size_t i = 0; i < length_; ++i) {
            const auto product = static_cast<float>(exponential(in[i]) * reciprocal);
            const float share = std::min(product * output_scale, 255.0F);
            out[i] = static_cast<T>(round_half_even(share) + std::numeric_limits<T>::min());
        }
        return {};
    }

  private:
    static constexpr float sixteen_bit_step = 0x1.0001p-16F;  ///< 1/65535
    static constexpr float output_scale = 0x1.0002aep-23F;

    /// 32768 over the sum in units of 65535, as a 16-bit integer. The largest exponential is 65535,
    /// so that the sum is not less.
    static std::int32_t reciprocal_of(std::int32_t sum) {
        const float units = static_cast<float>(sum) * sixteen_bit_step;
        const std::uint32_t root = to_16_bits(inverse_root_65536.with_range(units));
        const float square = static_cast<float>(root * root) * sixteen_bit_step;
        return round_half_even(std::min(square, 32768.0F));
    }

    std::size_t length_;
    std::array<std::uint16_t, 256> exponentials_{};  ///< of (index - 255) * scale
};

template <typename T>
PreparedKernel integer_softmax(const OperatorView& op, const SoftmaxShape& shape) {
    const auto in = REEF_TRY(softmax_input(op));
    if (shape.rows != 1 || shape.length > IntegerSoftmax<T>::longest)
        return unknown_on_edgetpu("SOFTMAX of several rows, or of more than 32768 values");
    if (!std::isfinite(in.scale * shape.beta))
        return fail(Cause::bad_input, "scale times beta is not finite");
    return std::make_unique<IntegerSoftmax<T>>(shape.length, in.scale * shape.beta);
}

}  // namespace

PreparedKernel softmax(const OperatorView& op, const PrepareOptions& options) {
    const SoftmaxShape shape = REEF_TRY(check_softmax(op));
    if (op.input(0).type == ElementType::uint8) return integer_softmax<std::uint8_t>(op, shape);
    if (op.input(0).type == ElementType::int8) return integer_softmax<std::int8_t>(op, shape);
    return prepare_softmax(op, options);
}

}  // namespace reef::edgetpu::numerics

// SOFTMAX over the last axis.
//
// uint8 and int8: exponentials come from a table of 256 floats and are summed in order; the output
// has scale 1/256 and the type's lowest value as zero point (TFLite's rule). The Edge TPU works
// with 16-bit integers between the steps.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/worker_pool.h"
#include "cpu/edgetpu_functions.h"
#include "cpu/float_requantisation.h"
#include "cpu/kernels.h"
#include "cpu/quantized.h"

namespace reef::cpu {
namespace {

struct Rows {
    std::size_t count = 0;
    std::size_t length = 0;
};

/// uint8 rounds by adding one half, int8 by round(): they differ just below a half.
template <typename T>
std::int32_t rounded(float value) {
    if constexpr (std::is_same_v<T, std::uint8_t>) return static_cast<std::int32_t>(value + 0.5F);
    return static_cast<std::int32_t>(std::round(value));
}

template <typename T>
class QuantizedSoftmax final : public Kernel {
  public:
    QuantizedSoftmax(Rows rows, float input_scale, float beta, AffineParameters out)
        : rows_(rows), out_(out) {
        const float step = -input_scale * beta;
        for (std::int32_t below = 0; below < 256; ++below)
            exponentials_[static_cast<std::size_t>(255 - below)] =
                std::exp(step * static_cast<float>(below));
    }

    [[nodiscard]] std::string name() const override { return "softmax table"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const T* in = frame.in<T>(0);
        T* out = frame.out<T>(0);
        const std::size_t grain = 16384 / rows_.length + 1;
        frame.pool.parallel_for(rows_.count, grain,
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    for (std::size_t row = begin; row < end; ++row)
                                        softmax(in + row * rows_.length, out + row * rows_.length);
                                });
        return {};
    }

  private:
    void softmax(const T* in, T* out) const {
        const std::int32_t largest = *std::max_element(in, in + rows_.length);
        const auto exponential = [&](T value) {
            return exponentials_[static_cast<std::size_t>(255 - largest + value)];
        };
        float sum = 0;
        for (std::size_t i = 0; i < rows_.length; ++i) sum += exponential(in[i]);
        const float factor = 1.0F / (sum * out_.scale);
        for (std::size_t i = 0; i < rows_.length; ++i) {
            const std::int32_t q = rounded<T>(exponential(in[i]) * factor) + out_.zero_point;
            out[i] = static_cast<T>(std::clamp<std::int32_t>(q, std::numeric_limits<T>::min(),
                                                             std::numeric_limits<T>::max()));
        }
    }

    Rows rows_;
    AffineParameters out_;
    std::array<float, 256> exponentials_{};  ///< exp(-scale * beta * (255 - index))
};

/// The vendor's sequence of instructions: exponentials of x - max in 16 bits, the inverse root of
/// their sum, its square, the products.
template <typename T>
class EdgetpuSoftmax final : public Kernel {
  public:
    /// Sums of 16-bit numbers stay below 2^31.
    static constexpr std::size_t longest = 1 << 15;

    EdgetpuSoftmax(std::size_t length, float scale) : length_(length) {
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

class FloatSoftmax final : public Kernel {
  public:
    FloatSoftmax(Rows rows, float beta) : rows_(rows), beta_(beta) {}

    [[nodiscard]] std::string name() const override { return "softmax reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        for (std::size_t row = 0; row < rows_.count; ++row) {
            const float* in = frame.in<float>(0) + row * rows_.length;
            float* out = frame.out<float>(0) + row * rows_.length;
            const float largest = *std::max_element(in, in + rows_.length);
            float sum = 0;
            for (std::size_t i = 0; i < rows_.length; ++i) {
                out[i] = std::exp((in[i] - largest) * beta_);
                sum += out[i];
            }
            for (std::size_t i = 0; i < rows_.length; ++i) out[i] /= sum;
        }
        return {};
    }

  private:
    Rows rows_;
    float beta_;
};

template <typename T>
PreparedKernel quantized_softmax(const OperatorView& op, Rows rows, float beta,
                                 Arithmetic arithmetic) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (out.scale != 1.0F / 256 || out.zero_point != std::numeric_limits<T>::min())
        return fail(Cause::unsupported,
                    "the output's scale is not 1/256 with the lowest value as zero point");
    if (arithmetic == Arithmetic::edgetpu) {
        if (rows.count != 1 || rows.length > EdgetpuSoftmax<T>::longest)
            return unknown_on_edgetpu("SOFTMAX of several rows, or of more than 32768 values");
        if (!std::isfinite(in.scale * beta))
            return fail(Cause::bad_input, "scale times beta is not finite");
        return std::make_unique<EdgetpuSoftmax<T>>(rows.length, in.scale * beta);
    }
    return std::make_unique<QuantizedSoftmax<T>>(rows, in.scale, beta, out);
}

}  // namespace

PreparedKernel prepare_softmax(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const auto given = REEF_TRY(op.options<model::SoftmaxOptions>());
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    REEF_CHECK(expect_shape(op.output(0), "output 0", input.shape));
    if (!std::isfinite(given.beta) || given.beta < 0)
        return fail(Cause::bad_input, "beta is negative or not finite");
    if (input.shape.empty() || input.shape.back() < 1)
        return fail(Cause::bad_input, "input 0 has no last axis to sum over");
    Rows rows{.length = static_cast<std::size_t>(input.shape.back())};
    rows.count = static_cast<std::size_t>(input.element_count()) / rows.length;
    if (input.type == ElementType::uint8)
        return quantized_softmax<std::uint8_t>(op, rows, given.beta, options.arithmetic);
    if (input.type == ElementType::int8)
        return quantized_softmax<std::int8_t>(op, rows, given.beta, options.arithmetic);
    return std::make_unique<FloatSoftmax>(rows, given.beta);
}

}  // namespace reef::cpu

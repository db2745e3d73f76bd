// L2_NORMALIZATION: every row along the last axis, divided by its length.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cpu/prepare/fixed_point_functions.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

struct NormalisedFloats {
    static void row(const float* in, float* out, std::size_t count) {
        float sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += in[i] * in[i];
        constexpr float shortest = 1e-6F;
        const float length = std::max(std::sqrt(sum), shortest);
        for (std::size_t i = 0; i < count; ++i) out[i] = in[i] / length;
    }
};

/// Output scale 1/128.
template <typename T>
struct NormalisedIntegers {
    static constexpr bool of_values = std::is_same_v<T, std::uint8_t>;
    std::int32_t zero_in = 0;
    std::int32_t zero_out = 0;

    void row(const T* in, T* out, std::size_t count) const {
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += (in[i] - zero_in) * (in[i] - zero_in);
        // The factor 128 of the output's scale: of uint8's values, of int8's multiplier.
        constexpr std::int32_t shift = 7;
        Multiplier inverse = inverse_square_root(sum);
        if (!of_values) inverse.shift += shift;
        for (std::size_t i = 0; i < count; ++i) {
            const std::int32_t distance = in[i] - zero_in;
            const std::int32_t scaled = multiply_by_quantized_multiplier(
                of_values ? distance * (1 << shift) : distance, inverse);
            out[i] = static_cast<T>(std::clamp<std::int32_t>(
                scaled + zero_out, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
        }
    }
};

template <typename T, typename Rows>
class L2NormKernel final : public Kernel {
  public:
    L2NormKernel(std::size_t rows, std::size_t length, Rows normalised)
        : rows_(rows), length_(length), normalised_(normalised) {}
    [[nodiscard]] std::string name() const override { return "l2_normalization reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        for (std::size_t row = 0; row < rows_; ++row)
            normalised_.row(frame.in<T>(0) + row * length_, frame.out<T>(0) + row * length_,
                            length_);
        return {};
    }

  private:
    std::size_t rows_, length_;
    Rows normalised_;
};

template <typename T>
PreparedKernel quantized_l2(const OperatorView& op, std::size_t rows, std::size_t length) {
    // 255 * 255 * length stays below 2^31.
    constexpr std::size_t longest = 1 << 15;
    if (length > longest)
        return fail(Cause::unsupported, fmt::format("rows of {}, more than {}", length, longest));
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    constexpr std::int32_t middle = std::is_same_v<T, std::uint8_t> ? 128 : 0;
    if (out != AffineParameters{1.0F / 128, middle})
        return fail(Cause::unsupported,
                    fmt::format("output scale {} and zero point {}, not 1/128 and {}", out.scale,
                                out.zero_point, middle));
    return std::make_unique<L2NormKernel<T, NormalisedIntegers<T>>>(
        rows, length, NormalisedIntegers<T>{in.zero_point, out.zero_point});
}

}  // namespace

PreparedKernel prepare_l2_normalization(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const auto given = REEF_TRY(op.options<model::L2NormOptions>());
    if (given.activation != model::Activation::none)
        return fail(Cause::unsupported, "a fused activation");
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    REEF_CHECK(expect_shape(op.output(0), "output 0", input.shape));
    if (input.shape.empty() || input.shape.back() == 0)
        return fail(Cause::bad_input, "rows of no elements");
    const auto length = static_cast<std::size_t>(input.shape.back());
    const std::size_t rows = static_cast<std::size_t>(input.element_count()) / length;
    if (input.type == ElementType::uint8) return quantized_l2<std::uint8_t>(op, rows, length);
    if (input.type == ElementType::int8) return quantized_l2<std::int8_t>(op, rows, length);
    return std::make_unique<L2NormKernel<float, NormalisedFloats>>(rows, length,
                                                                   NormalisedFloats{});
}

}  // namespace reef::cpu

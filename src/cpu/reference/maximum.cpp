// MAXIMUM, MINIMUM, POW and SQUARED_DIFFERENCE.
#include <cmath>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/elementwise.h"
#include "cpu/reference/float_runs.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

/// Stored values are compared, whatever their scales: TFLite does not look at them.
template <typename Wins>
PreparedKernel prepare_chosen(const OperatorView& op, const char* name, FloatBinary fast,
                              const PrepareOptions& options) {
    auto broadcast =
        REEF_TRY(check_binary(op, {ElementType::uint8, ElementType::int8, ElementType::int32,
                                   ElementType::int64, ElementType::float32}));
    if (options.kernels == KernelSet::fast && op.output(0).type == ElementType::float32)
        return fast_float_binary(name, std::move(broadcast), fast);
    return with_type_of(op.output(0).type, "output 0", [&]<typename T>(T) -> PreparedKernel {
        return binary_kernel<T>(std::string(name) + " reference", std::move(broadcast),
                                [](T a, T b) { return Wins{}(a, b) ? a : b; });
    });
}

/// Both inputs in half the steps of the larger scale, 128 times as fine.
struct QuantizedSquare {
    static constexpr int left_shift = 7;
    std::int32_t zero_a = 0, zero_b = 0, zero_out = 0;
    Multiplier a_multiplier, b_multiplier, out_multiplier;

    std::int8_t operator()(std::int8_t a, std::int8_t b) const {
        const std::int32_t x =
            multiply_by_quantized_multiplier((a - zero_a) * (1 << left_shift), a_multiplier);
        const std::int32_t y =
            multiply_by_quantized_multiplier((b - zero_b) * (1 << left_shift), b_multiplier);
        const std::int64_t result =
            std::int64_t{multiply_by_quantized_multiplier((x - y) * (x - y), out_multiplier)} +
            zero_out;
        return static_cast<std::int8_t>(std::clamp<std::int64_t>(result, -128, 127));
    }
};

PreparedKernel quantized_square(const OperatorView& op, Broadcast broadcast) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const double twice = 2.0 * static_cast<double>(std::max(a.scale, b.scale));
    constexpr double fine = 1 << (2 * QuantizedSquare::left_shift);
    return binary_kernel<std::int8_t>(
        "squared_difference reference", std::move(broadcast),
        QuantizedSquare{
            a.zero_point, b.zero_point, out.zero_point,
            REEF_TRY(checked_multiplier(static_cast<double>(a.scale) / twice)),
            REEF_TRY(checked_multiplier(static_cast<double>(b.scale) / twice)),
            REEF_TRY(checked_multiplier(twice * twice / (fine * static_cast<double>(out.scale))))});
}

}  // namespace

PreparedKernel prepare_maximum(const OperatorView& op, const PrepareOptions& options) {
    return prepare_chosen<std::greater<>>(op, "maximum", FloatBinary::largest, options);
}

PreparedKernel prepare_minimum(const OperatorView& op, const PrepareOptions& options) {
    return prepare_chosen<std::less<>>(op, "minimum", FloatBinary::smallest, options);
}

PreparedKernel prepare_pow(const OperatorView& op, const PrepareOptions& /*options*/) {
    auto broadcast = REEF_TRY(check_binary(op, {ElementType::float32}));
    return binary_kernel<float>("pow reference", std::move(broadcast),
                                [](float a, float b) { return std::pow(a, b); });
}

PreparedKernel prepare_squared_difference(const OperatorView& op, const PrepareOptions& options) {
    auto broadcast =
        REEF_TRY(check_binary(op, {ElementType::int8, ElementType::int32, ElementType::float32}));
    switch (op.output(0).type) {
        case ElementType::int8:
            return quantized_square(op, std::move(broadcast));
        case ElementType::int32:
            return binary_kernel<std::int32_t>(
                "squared_difference reference", std::move(broadcast),
                [](std::int32_t a, std::int32_t b) {
                    // Overflow wraps.
                    const std::uint32_t distance =
                        static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b);
                    return static_cast<std::int32_t>(distance * distance);
                });
        default:
            if (options.kernels == KernelSet::fast)
                return fast_float_binary("squared_difference", std::move(broadcast),
                                         FloatBinary::squared_difference);
            return binary_kernel<float>("squared_difference reference", std::move(broadcast),
                                        [](float a, float b) { return (a - b) * (a - b); });
    }
}

}  // namespace reef::cpu

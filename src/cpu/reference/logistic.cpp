// LOGISTIC: 1 / (1 + exp(-x)) in float32 between dequantising and quantising.
#include <algorithm>
#include <cmath>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/float_runs.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

float logistic(float value) {
    return 1.0F / (1.0F + std::exp(-value));
}

template <typename T>
struct QuantizedLogistic {
    AffineParameters in, out;
    T operator()(T value) const {
        const float real = in.scale * static_cast<float>(value - in.zero_point);
        // Multiplies by the reciprocal, as TFLite does: dividing rounds differently.
        const float inverse_scale = 1 / out.scale;
        const float steps = std::clamp(std::round(logistic(real) * inverse_scale), 0.0F, 0x1p24F);
        return static_cast<T>(
            std::clamp<std::int32_t>(static_cast<std::int32_t>(steps) + out.zero_point,
                                     std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
};

template <typename T>
PreparedKernel quantized_logistic(const OperatorView& op, const PrepareOptions& options) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    return unary_kernel<T, T>("logistic", op, options.kernels, QuantizedLogistic<T>{in, out});
}

}  // namespace

PreparedKernel prepare_logistic(const OperatorView& op, const PrepareOptions& options) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const ElementType type = op.input(0).type;
    REEF_CHECK(expect_type(op.input(0), "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {type}));
    if (type == ElementType::uint8) return quantized_logistic<std::uint8_t>(op, options);
    if (type == ElementType::int8) return quantized_logistic<std::int8_t>(op, options);
    if (options.kernels == KernelSet::fast)
        return fast_float_function("logistic", op, FloatFunction::logistic);
    return unary_kernel<float, float>("logistic", op, options.kernels, logistic);
}

}  // namespace reef::cpu

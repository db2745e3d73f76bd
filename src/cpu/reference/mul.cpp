// MUL and DIV.
#include "cpu/reference/mul.h"

#include <algorithm>
#include <cmath>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/elementwise.h"
#include "cpu/reference/float_runs.h"

namespace reef::cpu {
namespace {

struct Int32Product {
    Limits<std::int32_t> clamp;
    std::int32_t operator()(std::int32_t a, std::int32_t b) const {
        // Overflow wraps.
        const auto product = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) *
                                                       static_cast<std::uint32_t>(b));
        return std::clamp(product, clamp.min, clamp.max);
    }
};

struct FloatProduct {
    Limits<float> clamp;
    float operator()(float a, float b) const {
        return std::min(std::max(a * b, clamp.min), clamp.max);
    }
};

struct FloatQuotient {
    Limits<float> clamp;
    float operator()(float a, float b) const {
        return std::min(std::max(a / b, clamp.min), clamp.max);
    }
};

template <typename T>
PreparedKernel quantized_product(const OperatorView& op, Broadcast broadcast,
                                 model::Activation activation, const PrepareOptions& options) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    ProductParameters product;
    product.zero_a = a.zero_point;
    product.zero_b = b.zero_point;
    product.zero_out = out.zero_point;
    // TFLite multiplies and divides the three scales in float32.
    product.multiplier = REEF_TRY(wrapping_multiplier(a.scale * b.scale / out.scale));
    product.clamp = REEF_TRY(quantized_activation_range(activation, op.output(0)));
    if (options.kernels == KernelSet::fast)
        return binary_run_kernel<T>("mul fast " + std::string(simd_target()), std::move(broadcast),
                                    [p = FastProduct{product, in_float(product)}](
                                        const auto... run) { mul_run_fast(run..., p); });
    return binary_kernel<T>("mul reference", std::move(broadcast), QuantizedProduct<T>{product});
}

}  // namespace

ProductInFloat in_float(const ProductParameters& p) {
    // A quarter of 255 * 255 at most. A left shift may wrap: there is no product in float32 of the
    // same value.
    const int shift = p.multiplier.shift;
    if (shift > -2) return {};
    return {.pays = true,
            .scale = std::ldexp(static_cast<float>(p.multiplier.multiplier), shift - 31),
            .offset = std::ldexp(0.5F, shift),
            .shift = -shift};
}

PreparedKernel prepare_mul(const OperatorView& op, const PrepareOptions& options) {
    const auto given = REEF_TRY(op.options<model::MulOptions>());
    auto broadcast = REEF_TRY(check_binary(
        op, {ElementType::uint8, ElementType::int8, ElementType::int32, ElementType::float32}));
    switch (op.output(0).type) {
        case ElementType::uint8:
            return quantized_product<std::uint8_t>(op, std::move(broadcast), given.activation,
                                                   options);
        case ElementType::int8:
            return quantized_product<std::int8_t>(op, std::move(broadcast), given.activation,
                                                  options);
        case ElementType::int32: {
            const auto clamp = REEF_TRY(int32_activation_range(given.activation));
            return binary_kernel<std::int32_t>("mul reference", std::move(broadcast),
                                               Int32Product{clamp});
        }
        default: {
            const auto clamp = REEF_TRY(float_activation_range(given.activation));
            if (options.kernels == KernelSet::fast)
                return fast_float_binary("mul", std::move(broadcast), FloatBinary::product, clamp);
            return binary_kernel<float>("mul reference", std::move(broadcast), FloatProduct{clamp});
        }
    }
}

PreparedKernel prepare_div(const OperatorView& op, const PrepareOptions& options) {
    const auto given = REEF_TRY(op.options<model::DivOptions>());
    auto broadcast = REEF_TRY(check_binary(op, {ElementType::float32}));
    const auto clamp = REEF_TRY(float_activation_range(given.activation));
    if (options.kernels == KernelSet::fast)
        return fast_float_binary("div", std::move(broadcast), FloatBinary::quotient, clamp);
    return binary_kernel<float>("div reference", std::move(broadcast), FloatQuotient{clamp});
}

}  // namespace reef::cpu

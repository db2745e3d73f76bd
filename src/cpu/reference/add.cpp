// ADD and SUB.
#include "cpu/reference/add.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/elementwise.h"
#include "cpu/reference/float_runs.h"

namespace reef::cpu {
namespace {

/// TFLite's QuantizeMultiplierSmallerThanOneExp: the factor must be below one.
Result<Multiplier> fraction(double real) {
    const Multiplier multiplier = REEF_TRY(checked_multiplier(real));
    if (real >= 1 || multiplier.shift > 0)
        return fail(Cause::bad_input, "the output's scale is too small for the inputs' scales");
    return multiplier;
}

Result<SumParameters> sum_parameters(const OperatorView& op, model::Activation activation,
                                     int sign) {
    const auto a = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto b = REEF_TRY(per_tensor_parameters(op.input(1)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const double common = 2.0 * std::max(a.scale, b.scale);
    SumParameters p;
    p.zero_a = a.zero_point;
    p.zero_b = b.zero_point;
    p.zero_out = out.zero_point;
    p.a = REEF_TRY(fraction(a.scale / common));
    p.b = REEF_TRY(fraction(b.scale / common));
    p.b.multiplier *= sign;
    p.out = REEF_TRY(
        fraction(common / std::ldexp(static_cast<double>(out.scale), SumParameters::spare_bits)));
    p.clamp = REEF_TRY(quantized_activation_range(activation, op.output(0)));
    return p;
}

template <typename T>
PreparedKernel quantized_sum(const OperatorView& op, Broadcast broadcast,
                             model::Activation activation, int sign,
                             const PrepareOptions& options) {
    const std::string name = sign > 0 ? "add" : "sub";
    const auto p = REEF_TRY(sum_parameters(op, activation, sign));
    if (options.kernels == KernelSet::fast)
        return binary_run_kernel<T>(
            name + " fast " + std::string(simd_target()), std::move(broadcast),
            [sum = FastSum{p, in_float(p)}](const auto... run) { add_run_fast(run..., sum); });
    return binary_kernel<T>(name + " reference", std::move(broadcast), QuantizedSum<T>{p});
}

template <typename T>
struct IntegerSum {
    Limits<T> clamp;
    int sign;
    T operator()(T a, T b) const {
        // Overflow wraps.
        using Unsigned = std::make_unsigned_t<T>;
        const auto left = static_cast<Unsigned>(a);
        const auto right = static_cast<Unsigned>(b);
        const auto sum = static_cast<T>(sign > 0 ? left + right : left - right);
        return std::clamp(sum, clamp.min, clamp.max);
    }
};

struct FloatSum {
    Limits<float> clamp;
    int sign;
    float operator()(float a, float b) const {
        return std::min(std::max(sign > 0 ? a + b : a - b, clamp.min), clamp.max);
    }
};

PreparedKernel prepare_signed_sum(const OperatorView& op, model::Activation activation, int sign,
                                  const PrepareOptions& options) {
    auto broadcast =
        REEF_TRY(check_binary(op, {ElementType::uint8, ElementType::int8, ElementType::int32,
                                   ElementType::int64, ElementType::float32}));
    const std::string name = sign > 0 ? "add reference" : "sub reference";
    switch (op.output(0).type) {
        case ElementType::uint8:
            return quantized_sum<std::uint8_t>(op, std::move(broadcast), activation, sign, options);
        case ElementType::int8:
            return quantized_sum<std::int8_t>(op, std::move(broadcast), activation, sign, options);
        case ElementType::int32: {
            const auto clamp = REEF_TRY(int32_activation_range(activation));
            return binary_kernel<std::int32_t>(name, std::move(broadcast),
                                               IntegerSum<std::int32_t>{clamp, sign});
        }
        case ElementType::int64: {
            const auto clamp = REEF_TRY(int64_activation_range(activation));
            return binary_kernel<std::int64_t>(name, std::move(broadcast),
                                               IntegerSum<std::int64_t>{clamp, sign});
        }
        default: {
            const auto clamp = REEF_TRY(float_activation_range(activation));
            if (options.kernels == KernelSet::fast)
                return fast_float_binary(sign > 0 ? "add" : "sub", std::move(broadcast),
                                         sign > 0 ? FloatBinary::sum : FloatBinary::difference,
                                         clamp);
            return binary_kernel<float>(name, std::move(broadcast), FloatSum{clamp, sign});
        }
    }
}

}  // namespace

SumInFloat in_float(const SumParameters& p) {
    const auto real = [](Multiplier m) { return std::ldexp(m.multiplier, m.shift - 31); };
    constexpr double most_steps = 255;
    const double out = real(p.out);
    const double one = std::ldexp(out, SumParameters::spare_bits);
    const double a = real(p.a) * one, b = real(p.b) * one;
    const double of_a = most_steps * std::abs(a), of_b = most_steps * std::abs(b);
    const double in_integers = 4 * out + (p.out.shift < 0 ? std::ldexp(0.5, p.out.shift) : 0);
    const double most_result = 1 + std::max(std::abs(p.clamp.min), std::abs(p.clamp.max));
    const double in_floats = 0x1p-24 * (3 * of_a + 2 * of_b + std::abs(p.zero_out) + most_result);
    // The doubt itself, and its distance from a half, are rounded, too.
    return {.of_a = static_cast<float>(a),
            .of_b = static_cast<float>(b),
            .doubt = static_cast<float>(in_integers + 1.05 * in_floats + 0x1p-24)};
}

PreparedKernel prepare_add(const OperatorView& op, const PrepareOptions& options) {
    const auto given = REEF_TRY(op.options<model::AddOptions>());
    return prepare_signed_sum(op, given.activation, 1, options);
}

PreparedKernel prepare_sub(const OperatorView& op, const PrepareOptions& options) {
    const auto given = REEF_TRY(op.options<model::SubOptions>());
    return prepare_signed_sum(op, given.activation, -1, options);
}

}  // namespace reef::cpu

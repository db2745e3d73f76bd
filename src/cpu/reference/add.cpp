// ADD and SUB.
#include "cpu/reference/add.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
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
            [sum = FastSum{p, in_fixed_point(p, std::numeric_limits<T>::min())}](
                const auto... run) { add_run_fast(run..., sum); });
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

/// Of pairs drawn at random (in steps of any length some scales have all of their middles, or
/// none). A vector of the widest, 64, is computed again for one doubtful sum in it: where that
/// happens to every second one, to do it at once is faster.
bool few_are_doubtful(const SumInFixedPoint& sum) {
    constexpr std::int32_t pairs = 4096, vector = 64;
    const std::int32_t below = (1 << sum.shift) - 1;
    std::minstd_rand random;
    std::int32_t doubtful = 0;
    for (std::int32_t i = 0; i < pairs; ++i) {
        const auto pair = static_cast<std::int32_t>(random() >> 8U);
        const std::int32_t a = pair & 255, b = pair >> 8 & 255;
        doubtful += ((sum.start + a * sum.of_a + b * sum.of_b) & below) < sum.doubtful;
    }
    return doubtful * 2 * vector < pairs;
}

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

SumInFixedPoint in_fixed_point(const SumParameters& p, std::int32_t lowest) {
    const auto real = [](Multiplier m) { return std::ldexp(m.multiplier, m.shift - 31); };
    constexpr std::int32_t most_steps = 255;
    const double out = real(p.out);
    const double one = std::ldexp(out, SumParameters::spare_bits);
    const double a = real(p.a) * one, b = real(p.b) * one;
    const double in_integers = 4 * out + (p.out.shift < 0 ? std::ldexp(0.5, p.out.shift) : 0);
    // Two more: of a half and of what doubts take.
    const double reach = most_steps * (std::abs(a) + std::abs(b)) + std::abs(p.zero_out) + 2;
    // With fewer bits, or where spare bits are that much of a step, a hundredth of all sums is
    // doubtful at least.
    constexpr int int32_bits = 31, least_shift = 14;
    SumInFixedPoint sum{.shift = int32_bits - 1 - std::ilogb(reach)};
    if (sum.shift < least_shift || in_integers > 0x1p-8) return sum;
    const auto scaled = [&](double steps) {
        return static_cast<std::int32_t>(std::lround(std::ldexp(steps, sum.shift)));
    };
    sum.of_a = scaled(a);
    sum.of_b = scaled(b);
    const std::int32_t off = most_steps + 2 + scaled(in_integers);
    sum.doubtful = 2 * off;
    sum.start = scaled(p.zero_out) - (p.zero_a - lowest) * sum.of_a -
                (p.zero_b - lowest) * sum.of_b + scaled(0.5) + off;
    sum.pays = few_are_doubtful(sum);
    return sum;
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

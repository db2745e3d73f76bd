#include "cpu/prepare/fixed_point_functions.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "cpu/prepare/fixed_point.h"

namespace reef::cpu {
namespace {

using Raw = std::int16_t;
constexpr Raw raw_min = std::numeric_limits<Raw>::min();
constexpr Raw raw_max = std::numeric_limits<Raw>::max();

/// Sums and differences wrap, as 16-bit registers do.
constexpr Raw wrap(std::int32_t x) {
    return static_cast<Raw>(static_cast<std::uint16_t>(x));
}
constexpr Raw saturate(std::int32_t x) {
    return static_cast<Raw>(std::clamp<std::int32_t>(x, raw_min, raw_max));
}
/// a * b / 2^15, rounded to nearest with ties towards +infinity. Integer bits add up.
constexpr Raw multiply(Raw a, Raw b) {
    return saturate((std::int32_t{a} * b + (1 << 14)) >> 15);
}
constexpr Raw halve(Raw x, int exponent) {
    return static_cast<Raw>(rounding_divide_by_pot(x, exponent));
}
constexpr Raw double_saturating(Raw x, int exponent) {
    return saturate(std::int32_t{x} * (1 << exponent));
}
/// A constant given with 31 fractional bits, as the definition writes them.
constexpr Raw constant(std::int32_t x) {
    return static_cast<Raw>(rounding_divide_by_pot(x, 16));
}

/// exp(a) for a in [-1/4, 0), 0 integer bits.
Raw exp_above_minus_quarter(Raw a) {
    constexpr Raw exp_of_minus_eighth = constant(1895147668);
    constexpr Raw third = constant(715827883);
    const Raw x = wrap(a + (1 << 12));
    const Raw x2 = multiply(x, x);
    const Raw x3 = multiply(x2, x);
    const Raw x4_over_4 = halve(multiply(x2, x2), 2);
    const Raw tail = halve(wrap(multiply(wrap(x4_over_4 + x3), third) + x2), 1);
    return saturate(exp_of_minus_eighth + multiply(exp_of_minus_eighth, wrap(x + tail)));
}

/// exp(a) with 0 integer bits, for a <= 0 with `integer_bits`.
Raw exp_of_negative(Raw a, int integer_bits) {
    struct Factor {
        int exponent;  ///< exp(-2^exponent)
        Raw value;
    };
    constexpr Factor factors[] = {{-2, constant(1672461947)}, {-1, constant(1302514674)},
                                  {0, constant(790015084)},   {1, constant(290630308)},
                                  {2, constant(39332535)},    {3, constant(720401)},
                                  {4, constant(242)}};
    const int fractional_bits = 15 - integer_bits;
    const std::int32_t quarter = 1 << (fractional_bits - 2);
    const Raw below_quarter = wrap((a & (quarter - 1)) - quarter);
    Raw result = exp_above_minus_quarter(double_saturating(below_quarter, integer_bits));
    const std::int32_t quarters = wrap(below_quarter - a);
    for (const Factor& factor : factors) {
        if (factor.exponent >= integer_bits) break;
        if ((quarters & (1 << (fractional_bits + factor.exponent))) != 0)
            result = multiply(result, factor.value);
    }
    if (integer_bits > 5 && a < -(1 << (20 - integer_bits))) result = 0;  // below exp(-32)
    return a == 0 ? raw_max : result;
}

/// 2 / (1 + a) with 2 integer bits, for a in (0, 1) with 0 integer bits.
Raw two_over_one_plus(Raw a) {
    constexpr Raw k48_over_17 = constant(1515870810);
    constexpr Raw minus_32_over_17 = constant(-1010580540);
    constexpr Raw one = 1 << 13;
    const auto half_denominator = static_cast<Raw>((std::int32_t{a} + raw_max + 1) / 2);
    Raw x = wrap(k48_over_17 + multiply(half_denominator, minus_32_over_17));
    for (int i = 0; i < 3; ++i) {
        const Raw error = wrap(one - multiply(half_denominator, x));
        x = wrap(x + double_saturating(multiply(x, error), 2));
    }
    return x;
}

/// x * 2^exponent, at the ends of the range where it does not fit.
std::int32_t shift_left_saturating(std::int32_t x, int exponent) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(
        std::int64_t{x} * (std::int64_t{1} << exponent), std::numeric_limits<std::int32_t>::min(),
        std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

Multiplier inverse_square_root(std::int32_t x) {
    if (x <= 1) return {.multiplier = std::numeric_limits<std::int32_t>::max(), .shift = 0};
    int shift = 11;
    for (; x >= 1 << 29; x /= 4) ++shift;
    const int pairs = (std::countl_zero(static_cast<std::uint32_t>(x)) - 1) / 2 - 1;
    shift -= pairs;
    x <<= 2 * pairs;
    // From here on three integer bits: products have six, and nine, before they are brought back.
    const auto product = saturating_rounding_doubling_high_mul;
    const std::int32_t half = rounding_divide_by_pot(x >> 1, 1);
    constexpr std::int32_t three_halves = (1 << 28) + (1 << 27);
    constexpr std::int32_t root_of_half = 1518500250;  // no integer bits
    std::int32_t root = 1 << 28;
    for (int i = 0; i < 5; ++i) {
        const std::int32_t cube = shift_left_saturating(product(product(root, root), root), 6);
        root = shift_left_saturating(product(three_halves, root) - product(half, cube), 3);
    }
    root = product(root, root_of_half);
    if (shift < 0) {
        root = static_cast<std::int32_t>(static_cast<std::uint32_t>(root) << -shift);
        shift = 0;
    }
    return {.multiplier = root, .shift = -shift};
}

std::int16_t fixed_point_logistic(std::int16_t x, int integer_bits) {
    if (x == 0) return 1 << 14;
    const Raw negative = x > 0 ? wrap(-x) : x;
    const Raw of_magnitude =
        double_saturating(two_over_one_plus(exp_of_negative(negative, integer_bits)), 1);
    return x > 0 ? of_magnitude : wrap(raw_max - of_magnitude);
}

std::int16_t fixed_point_tanh(std::int16_t x, int integer_bits) {
    if (x == 0) return 0;
    const Raw negative = x > 0 ? wrap(-x) : x;
    // tanh(|x|) = (1 - exp(-2|x|)) / (1 + exp(-2|x|)) = 2 / (1 + exp(-2|x|)) - 1
    const Raw quotient = two_over_one_plus(exp_of_negative(negative, integer_bits + 1));
    const Raw of_magnitude = double_saturating(wrap(quotient - (1 << 13)), 2);
    return x > 0 ? of_magnitude : wrap(-of_magnitude);
}

}  // namespace reef::cpu

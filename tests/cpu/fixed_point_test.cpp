#include "cpu/prepare/fixed_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace reef::cpu {
namespace {

__extension__ using Int128 = __int128;

/// x * multiplier * 2^shift / 2^31, by the definition: the product rounded to nearest with ties
/// towards +infinity, then the right shift rounded to nearest with ties away from zero.
std::int32_t oracle(std::int32_t x, Multiplier m) {
    const Int128 shifted = static_cast<Int128>(x) << (m.shift > 0 ? m.shift : 0);
    const auto high = static_cast<std::int64_t>(
        std::floor(static_cast<long double>(shifted * m.multiplier) / 0x1p31L + 0.5L));
    const int right = m.shift > 0 ? 0 : -m.shift;
    return static_cast<std::int32_t>(std::round(std::ldexp(static_cast<double>(high), -right)));
}

TEST(FixedPoint, MultiplyEqualsItsDefinition) {
    std::mt19937 random(1);
    std::uniform_int_distribution<std::int32_t> any_multiplier(1 << 30, INT32_MAX);
    std::uniform_int_distribution<int> any_shift(-31, 8);
    std::uniform_int_distribution<int> any_width(1, 31);
    for (int i = 0; i < 500000; ++i) {
        const Multiplier m{any_multiplier(random), any_shift(random)};
        // The left shifted value must fit 32 bits; below that, every magnitude is drawn.
        const int width = std::min(any_width(random), 31 - std::max(m.shift, 0));
        const auto x = static_cast<std::int32_t>(random()) >> (32 - width);
        ASSERT_EQ(multiply_by_quantized_multiplier(x, m), oracle(x, m))
            << "x " << x << " multiplier " << m.multiplier << " shift " << m.shift;
    }
}

TEST(FixedPoint, RoundsTiesAsTheTwoStepsSay) {
    EXPECT_EQ(saturating_rounding_doubling_high_mul(1, 1 << 30), 1);    // 0.5
    EXPECT_EQ(saturating_rounding_doubling_high_mul(-1, 1 << 30), 0);   // -0.5
    EXPECT_EQ(saturating_rounding_doubling_high_mul(-3, 1 << 30), -1);  // -1.5
    EXPECT_EQ(saturating_rounding_doubling_high_mul(INT32_MIN, INT32_MIN), INT32_MAX);
    EXPECT_EQ(rounding_divide_by_pot(1, 1), 1);
    EXPECT_EQ(rounding_divide_by_pot(-1, 1), -1);
    EXPECT_EQ(rounding_divide_by_pot(-5, 1), -3);
    EXPECT_EQ(rounding_divide_by_pot(INT32_MIN, 31), -1);
    EXPECT_EQ(rounding_divide_by_pot(INT32_MAX, 31), 1);
    EXPECT_EQ(rounding_divide_by_pot(7, 0), 7);
}

TEST(FixedPoint, MultiplierIsTheClosest) {
    std::mt19937_64 random(2);
    std::uniform_real_distribution<double> any_exponent(-31, 30);
    for (int i = 0; i < 100000; ++i) {
        const double real = std::exp2(any_exponent(random));
        const Multiplier m = quantize_multiplier(real);
        ASSERT_GE(m.multiplier, 1 << 30);
        const double back = std::ldexp(static_cast<double>(m.multiplier), m.shift - 31);
        // Half a unit of the 31-bit fraction.
        ASSERT_LE(std::abs(back - real), std::ldexp(0.5, m.shift - 31)) << real;
    }
}

TEST(FixedPoint, MultiplierAtTheEdges) {
    EXPECT_EQ(quantize_multiplier(0), (Multiplier{0, 0}));
    EXPECT_EQ(quantize_multiplier(1), (Multiplier{1 << 30, 1}));
    EXPECT_EQ(quantize_multiplier(0.5), (Multiplier{1 << 30, 0}));
    EXPECT_EQ(quantize_multiplier(1 - 0x1p-40), (Multiplier{1 << 30, 1}));  // rounds up to 1
    EXPECT_EQ(quantize_multiplier(0x1p-32), (Multiplier{1 << 30, -31}));
    EXPECT_EQ(quantize_multiplier(0x1p-33), (Multiplier{0, 0}));
}

}  // namespace
}  // namespace reef::cpu

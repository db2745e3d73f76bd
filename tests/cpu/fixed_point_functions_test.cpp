#include "cpu/prepare/fixed_point_functions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace reef::cpu {
namespace {

// 16 bits leave the series and the division a few units of error; the golden LSTM fixes the bits.
constexpr double largest_error = 8;

TEST(FixedPointFunctions, LogisticIsCloseToTheRealFunction) {
    for (int bits = 0; bits <= 6; ++bits) {
        for (std::int32_t raw = -32768; raw <= 32767; raw += 7) {
            const double x = std::ldexp(raw, bits - 15);
            const double expected = 32768 / (1 + std::exp(-x));
            ASSERT_NEAR(fixed_point_logistic(static_cast<std::int16_t>(raw), bits), expected,
                        largest_error)
                << "raw " << raw << ", " << bits << " integer bits";
        }
    }
}

TEST(FixedPointFunctions, TanhIsCloseToTheRealFunctionAndOdd) {
    for (int bits = 0; bits <= 6; ++bits) {
        for (std::int32_t raw = -32767; raw <= 32767; raw += 7) {
            const auto value = static_cast<std::int16_t>(raw);
            const double expected = 32768 * std::tanh(std::ldexp(raw, bits - 15));
            ASSERT_NEAR(fixed_point_tanh(value, bits), expected, 2 * largest_error)
                << "raw " << raw << ", " << bits << " integer bits";
            ASSERT_EQ(fixed_point_tanh(static_cast<std::int16_t>(-raw), bits),
                      -fixed_point_tanh(value, bits));
        }
    }
}

TEST(FixedPointFunctions, ZeroIsExact) {
    EXPECT_EQ(fixed_point_logistic(0, 3), 1 << 14);
    EXPECT_EQ(fixed_point_tanh(0, 3), 0);
}

}  // namespace
}  // namespace reef::cpu

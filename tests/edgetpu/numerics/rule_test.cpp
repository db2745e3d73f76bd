// The rule of the chip's arithmetic: from sums to bytes, the ratios of additions, the tables.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "edgetpu/numerics/closest_ratio.h"
#include "edgetpu/numerics/functions.h"
#include "edgetpu/numerics/requantisation.h"
#include "reef/model/builder.h"

namespace reef::edgetpu::numerics {
namespace {

using model::Activation;
using model::per_tensor;

model::Tensor tensor_of(ElementType type, float scale, std::int64_t zero_point) {
    model::Tensor tensor;
    tensor.type = type;
    tensor.quantization = per_tensor(scale, zero_point);
    return tensor;
}

TEST(FloatRequantisation, TiesGoToEven) {
    const FloatRequantisation rule{-1000, 1000, 0, {-128, 127}};
    const std::array<std::int32_t, 9> halves{-5, -3, -1, 0, 1, 2, 3, 5, 7};
    const std::array<std::int32_t, 9> rounded{-2, -2, 0, 0, 0, 1, 2, 2, 4};
    for (std::size_t i = 0; i < halves.size(); ++i) EXPECT_EQ(rule(halves[i], 0.5F), rounded[i]);
}

TEST(FloatRequantisation, TheSumIsRoundedToFloatBeforeTheMultiplication) {
    // 2^24 + 1 is a tie between two floats and goes down: what is left is exactly 128.
    const FloatRequantisation rule{0, 255, 0, {0, 255}};
    EXPECT_EQ(rule((1 << 24) + 1, 0x1p-17F), 128);
    // 0.1F is above 0.1, but 5 * 0.1F rounds to 0.5 and 25 * 0.1F to 2.5, both ties.
    EXPECT_EQ(rule(5, 0.1F), 0);
    EXPECT_EQ(rule(25, 0.1F), 2);
}

TEST(FloatRequantisation, ClampsBeforeTheZeroPointAndSaturatesAfterIt) {
    const FloatRequantisation rule{-10.4F, 20.5F, 100, {0, 255}};
    EXPECT_EQ(rule(-50, 1), 90);
    EXPECT_EQ(rule(50, 1), 120);
    const FloatRequantisation open{-1000, 1000, 100, {0, 255}};
    EXPECT_EQ(open(-101, 1), 0);
    EXPECT_EQ(open(156, 1), 255);
    EXPECT_EQ(open(INT32_MAX, 1), 255);
    EXPECT_EQ(open(INT32_MIN, 1), 0);
}

TEST(FloatRequantisation, ClampsAreInTheVendorsFloats) {
    // Values of instructions of compiled models.
    const auto plain = float_requantisation(Activation::none,
                                            tensor_of(ElementType::uint8, 0.9941176176071167F, 0));
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->max, 255.00002F);
    EXPECT_EQ(plain->min, 0);
    const auto shifted = float_requantisation(Activation::none,
                                              tensor_of(ElementType::int8, 0.990686297416687F, -1));
    ASSERT_TRUE(shifted);
    EXPECT_EQ(shifted->max, 128.0F);
    EXPECT_EQ(shifted->min, -127.00001F);
    const auto six =
        float_requantisation(Activation::relu6, tensor_of(ElementType::int8, 0.05F, -28));
    ASSERT_TRUE(six);
    EXPECT_EQ(six->min, 0);
    EXPECT_NEAR(six->max, 120, 1e-4);
    EXPECT_FALSE(
        float_requantisation(Activation::relu_n1_to_1, tensor_of(ElementType::int8, 0.05F, 0)));
    EXPECT_FALSE(float_requantisation(Activation::none, tensor_of(ElementType::int8, 1e-40F, 0)));
    EXPECT_FALSE(float_requantisation(Activation::none, tensor_of(ElementType::int8, 3e38F, 0)));
}

TEST(FloatRequantisation, ScalesMultiplyByTheReciprocal) {
    const auto scale = float_scale(0.1F * 0.3F, {0.7F, 0});
    ASSERT_TRUE(scale);
    EXPECT_EQ(*scale, 0.1F * 0.3F * (1.0F / 0.7F));
    EXPECT_FALSE(float_scale(0x1p-140F, {0x1p20F, 0}));
    EXPECT_FALSE(float_scale(0x1p100F, {0x1p-100F, 0}));
}

TEST(ClosestRatio, IsTheBestOfAllQuotients) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> exponent(-3.9, 3.9);
    for (int round = 0; round < 200; ++round) {
        const double value = std::exp2(exponent(random));
        const Ratio found = closest_ratio(value, 15);
        EXPECT_EQ(std::gcd(found.numerator, found.denominator), 1);
        const double off = std::abs(1.0 * found.numerator / found.denominator - value);
        for (int p = 1; p <= 15; ++p)
            for (int q = 1; q <= 15; ++q) EXPECT_LE(off, std::abs(1.0 * p / q - value) + 1e-12);
    }
    EXPECT_EQ(closest_ratio(1, 32767), (Ratio{1, 1}));
    EXPECT_EQ(closest_ratio(32767, 32767), (Ratio{32767, 1}));
    EXPECT_EQ(closest_ratio(3.14159265358979, 1000), (Ratio{355, 113}));
}

TEST(EdgetpuFunctions, ApproximateWhatTheyAreCalled) {
    for (float x = -sigmoid_limit; x <= sigmoid_limit; x += 0.01F)
        EXPECT_NEAR(sigmoid_256(x), 256 / (1 + std::exp(-double{x})), 0.01) << x;
    for (float x = exponential_limit; x <= 0; x += 0.01F)
        EXPECT_NEAR(exponential_65536(x), 65536 * std::exp(double{x}), 1.2) << x;
    for (float x = 0.3F; x < 40000; x *= 1.01F)
        EXPECT_NEAR(inverse_root_65536.with_range(x) * std::sqrt(2 * double{x}), 65536, 3.5) << x;
    EXPECT_EQ(to_16_bits(-3), 0);
    EXPECT_EQ(to_16_bits(2.5F), 2);
    EXPECT_EQ(to_16_bits(65535.5F), 65535);
}

}  // namespace
}  // namespace reef::edgetpu::numerics

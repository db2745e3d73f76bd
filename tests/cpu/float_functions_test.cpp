// Functions, comparisons and choices of float32: the ends of their ranges, what is no number, and
// how far results lie from the real ones over much of the range. plain/ has random cases of them
// all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "cpu/one_operator.h"

namespace reef::test {
namespace {

using model::Op;

constexpr auto one_float = ElementType::float32;
constexpr auto boolean = ElementType::boolean;
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Shape length_of(std::size_t count) {
    return {static_cast<std::int32_t>(count)};
}

/// Both kernel sets' bits, which are compared inside.
std::vector<float> of(Op op, const std::vector<float>& values, model::Options options = {}) {
    return OneOperator()
        .input(one_float, length_of(values.size()), values)
        .output(one_float, length_of(values.size()))
        .run<float>(op, std::move(options));
}

/// Of functions whose last bits are free: of both kernel sets.
std::vector<std::vector<float>> of_each(Op op, const std::vector<float>& values,
                                        model::Options options = {}) {
    return OneOperator()
        .input(one_float, length_of(values.size()), values)
        .output(one_float, length_of(values.size()))
        .run_each<float>(op, std::move(options));
}

std::vector<float> of_two(Op op, const std::vector<float>& a, const std::vector<float>& b) {
    return OneOperator()
        .input(one_float, length_of(a.size()), a)
        .input(one_float, length_of(b.size()), b)
        .output(one_float, length_of(a.size()))
        .run<float>(op);
}

/// -0 is not 0 here, and what is no number equals itself.
void expect_bits(const std::vector<float>& got, const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(want[i])) {
            EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
        } else {
            EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want[i]))
                << i << ": " << got[i] << " for " << want[i];
        }
    }
}

TEST(FloatFunctions, SignsAndSquares) {
    expect_bits(of(Op::abs, {-0.0F, -1.5F, inf, -inf, nan}), {0.0F, 1.5F, inf, inf, nan});
    expect_bits(of(Op::neg, {0.0F, -0.0F, 1.5F, -inf, nan}), {-0.0F, 0.0F, -1.5F, inf, nan});
    expect_bits(of(Op::square, {-0.0F, -3, 1e20F, -inf, nan}), {0.0F, 9, inf, inf, nan});
}

TEST(FloatFunctions, TheSmallestIntegerIsItsOwnOpposite) {
    const std::vector<std::int32_t> values{INT32_MIN, -1, 0, INT32_MAX};
    EXPECT_EQ(OneOperator()
                  .input(ElementType::int32, {4}, values)
                  .output(ElementType::int32, {4})
                  .run<std::int32_t>(Op::neg),
              (std::vector<std::int32_t>{INT32_MIN, 1, 0, -INT32_MAX}));
}

TEST(FloatFunctions, WholeNumbers) {
    const std::vector<float> values{-2.5F,       -1.5F, -0.5F, -0.2F, -0.0F,
                                    0.5F,        1.5F,  2.5F,  2.6F,  0x1p23F,
                                    0x1p23F + 1, inf,   -inf,  nan,   0.49999997F};
    expect_bits(of(Op::floor, values),
                {-3, -2, -1, -1, -0.0F, 0, 1, 2, 2, 0x1p23F, 0x1p23F + 1, inf, -inf, nan, 0});
    expect_bits(of(Op::ceil, values),
                {-2, -1, -0.0F, -0.0F, -0.0F, 1, 2, 3, 3, 0x1p23F, 0x1p23F + 1, inf, -inf, nan, 1});
    // Half to even; above -1/2 TFLite's zero has no sign, but for -0 itself.
    expect_bits(of(Op::round, values),
                {-2, -2, 0, 0, -0.0F, 0, 2, 2, 3, 0x1p23F, 0x1p23F + 1, inf, -inf, nan, 0});
}

void expect_each(Op op, const std::vector<float>& values, const std::vector<float>& want,
                 model::Options options = {}) {
    const auto both = of_each(op, values, std::move(options));
    ASSERT_EQ(both.size(), 2U);
    for (const auto& got : both) expect_bits(got, want);
}

TEST(FloatFunctions, EndsOfTheCurves) {
    expect_each(Op::exp, {0, -inf, inf, 89, -104, nan}, {1, 0, inf, inf, 0, nan});
    expect_each(Op::log, {1, 0, -0.0F, inf, -1, nan}, {0, -inf, -inf, inf, nan, nan});
    expect_each(Op::elu, {-inf, -0.0F, 0, 3, inf, nan}, {-1, -0.0F, 0, 3, inf, nan});
    expect_each(Op::tanh, {-inf, -20, -0.0F, 0, 1e-40F, inf, nan},
                {-1, -1, -0.0F, 0, 1e-40F, 1, nan});
    expect_each(Op::rsqrt, {0, -0.0F, 4, inf, -1, nan}, {inf, -inf, 0.5F, 0, nan, nan});
    for (const bool approximate : {false, true})
        expect_each(Op::gelu, {0, -0.0F, 40, -40, -1e30F, inf, -inf, nan},
                    {0, -0.0F, 40, -0.0F, -0.0F, inf, nan, nan}, model::GeluOptions{approximate});
    expect_bits(of_two(Op::pow, {0, 2, -2, -2, 0, nan, nan, inf}, {0, -1, 3, 0.5F, -1, 0, 1, -1}),
                {1, 0.5F, -8, nan, inf, 1, nan, 0});
}

double ulps_between(float got, double real) {
    const float nearest = std::abs(static_cast<float>(real));
    const float next = std::nextafter(nearest, inf);
    return std::abs(static_cast<double>(got) - real) /
           (static_cast<double>(next) - static_cast<double>(nearest));
}

/// Of finite results only.
void expect_within(double ulps, Op op, float low, float high, double (*real)(double),
                   model::Options options = {}) {
    constexpr int steps = 40000;
    std::vector<float> values;
    for (int i = 0; i <= steps; ++i)
        values.push_back(low + (high - low) * (static_cast<float>(i) / steps));
    const auto both = of_each(op, values, std::move(options));
    ASSERT_EQ(both.size(), 2U);
    for (const auto& results : both)
        for (std::size_t i = 0; i < values.size(); ++i)
            ASSERT_LE(ulps_between(results.at(i), real(static_cast<double>(values[i]))), ulps)
                << values[i] << " gives " << results[i];
}

TEST(FloatFunctions, LieWithinTheirBounds) {
    expect_within(1, Op::exp, -103, 88, [](double x) { return std::exp(x); });
    expect_within(1, Op::exp, -1, 1, [](double x) { return std::exp(x); });
    expect_within(1, Op::log, 1e-3F, 2, [](double x) { return std::log(x); });
    expect_within(1, Op::log, 1e-38F, 3e38F, [](double x) { return std::log(x); });
    expect_within(2, Op::elu, -20, 2, [](double x) { return x < 0 ? std::expm1(x) : x; });
    // The distribution's tail, as the function of the other side that keeps its digits.
    expect_within(1, Op::gelu, -12, 6,
                  [](double x) { return x / 2 * std::erfc(-x * std::sqrt(0.5)); });
    expect_within(
        1, Op::gelu, -6, 6,
        [](double x) {
            const double y = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
            return x / (1 + std::exp(-2 * y));
        },
        model::GeluOptions{true});
}

TEST(FloatFunctions, PowersLieWithinTheirBound) {
    std::mt19937 random(9);
    std::uniform_real_distribution<float> base(0.01F, 50), exponent(-8, 8);
    std::vector<float> a(20000), b(a.size());
    for (float& value : a) value = base(random);
    for (float& value : b) value = exponent(random);
    const auto results = of_two(Op::pow, a, b);
    for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_LE(ulps_between(results[i],
                               std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]))),
                  1)
            << a[i] << " to the power of " << b[i];
}

std::vector<std::uint8_t> compared(Op op, const std::vector<float>& a,
                                   const std::vector<float>& b) {
    return OneOperator()
        .input(one_float, length_of(a.size()), a)
        .input(one_float, length_of(b.size()), b)
        .output(boolean, length_of(a.size()))
        .run<std::uint8_t>(op);
}

TEST(Comparisons, WhatIsNoNumberIsOnlyNotEqual) {
    const std::vector<float> a{nan, nan, 1, 0.0F, inf, 1}, b{nan, 1, nan, -0.0F, inf, 2};
    using Truths = std::vector<std::uint8_t>;
    EXPECT_EQ(compared(Op::equal, a, b), (Truths{0, 0, 0, 1, 1, 0}));
    EXPECT_EQ(compared(Op::not_equal, a, b), (Truths{1, 1, 1, 0, 0, 1}));
    EXPECT_EQ(compared(Op::less, a, b), (Truths{0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(compared(Op::less_equal, a, b), (Truths{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(compared(Op::greater, b, a), (Truths{0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(compared(Op::greater_equal, b, a), (Truths{0, 0, 0, 1, 1, 1}));
}

TEST(Comparisons, OfTwoTypesAreRefused) {
    EXPECT_THAT(OneOperator()
                    .input<float>(one_float, {1}, {1})
                    .input<std::int32_t>(ElementType::int32, {1}, {1})
                    .output(boolean, {1})
                    .refused(Op::less),
                testing::HasSubstr("float32 is compared with int32"));
}

TEST(Choices, BitsOfWhatIsNoNumberStay) {
    const std::vector<float> a{nan, -0.0F, 1}, b{2, 3, -nan};
    const auto chosen = OneOperator()
                            .input<std::uint8_t>(boolean, {3}, {1, 1, 0})
                            .input(one_float, {3}, a)
                            .input(one_float, {3}, b)
                            .output(one_float, {3})
                            .run<std::uint32_t>(Op::select_v2);
    EXPECT_EQ(chosen,
              (std::vector{std::bit_cast<std::uint32_t>(a[0]), std::bit_cast<std::uint32_t>(a[1]),
                           std::bit_cast<std::uint32_t>(b[2])}));
}

TEST(Choices, AConditionOfAnotherShapeIsRefused) {
    EXPECT_THAT(OneOperator()
                    .input<std::uint8_t>(boolean, {3}, {1, 1, 0})
                    .input<float>(one_float, {2, 3}, {1, 2, 3, 4, 5, 6})
                    .input<float>(one_float, {2, 3}, {1, 2, 3, 4, 5, 6})
                    .output(one_float, {2, 3})
                    .refused(Op::select),
                testing::HasSubstr("input 0 of shape 3"));
}

TEST(LogSoftmax, LargeNumbersDoNotOverflow) {
    expect_each(Op::log_softmax, {1000, -1000}, {0, -2000});
    expect_each(Op::log_softmax, {3e38F}, {0});
}

TEST(Gather, IndicesOutsideFailTheRun) {
    for (const std::int32_t index : {-1, 3}) {
        OneOperator one;
        one.input<float>(one_float, {3}, {1, 2, 3})
            .input<std::int32_t>(ElementType::int32, {1}, {index})
            .output(one_float, {1});
        auto executor = on_cpu(one.model(Op::gather, model::GatherOptions{}), {});
        ASSERT_TRUE(executor) << executor.error().message();
        std::memcpy(executor->input(1).data(), &index, sizeof(index));
        const Status ran = executor->run();
        ASSERT_FALSE(ran);
        EXPECT_EQ(ran.error().cause, Cause::bad_input);
        EXPECT_THAT(ran.error().what, testing::HasSubstr("outside a dimension of 3"));
    }
}

TEST(MirrorPad, MoreThanThereIsIsRefused) {
    for (const auto mode : {model::Mirror::reflect, model::Mirror::symmetric}) {
        const std::int32_t most = mode == model::Mirror::symmetric ? 3 : 2;
        EXPECT_THAT(OneOperator()
                        .input<float>(one_float, {3}, {1, 2, 3})
                        .constant<std::int32_t>(ElementType::int32, {1, 2}, {0, most + 1})
                        .output(one_float, {4 + most})
                        .refused(Op::mirror_pad, model::MirrorPadOptions{mode}),
                    testing::HasSubstr("of a dimension of 3"));
    }
}

}  // namespace
}  // namespace reef::test

// Matrix products, activations, choices, divisions and normalisations on values worked out by hand.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "cpu/one_operator.h"
#include "cpu/prepare/fixed_point_functions.h"
#include "cpu/prepare/kernels.h"

namespace reef::test {
namespace {

using model::Op;
using model::per_tensor;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto i8 = ElementType::int8;
constexpr auto u8 = ElementType::uint8;
constexpr auto f32 = ElementType::float32;
constexpr auto i32 = ElementType::int32;

TEST(BatchMatMul, MultipliesAndTransposes) {
    // (1 2 3; 4 5 6) times (1 0; 0 1; 1 1) = (4 5; 10 11); zero points 1 and -1, output halved,
    // + 3.
    const std::vector<std::int8_t> a{2, 3, 4, 5, 6, 7};
    const std::vector<std::int8_t> a_transposed{2, 5, 3, 6, 4, 7};
    const std::vector<std::int8_t> b{0, -1, -1, 0, 0, 0};
    const std::vector<std::int8_t> b_transposed{0, -1, 0, -1, 0, 0};
    for (const bool adj_x : {false, true})
        for (const bool adj_y : {false, true})
            EXPECT_THAT(
                OneOperator()
                    .input(i8, adj_x ? Shape{3, 2} : Shape{2, 3}, adj_x ? a_transposed : a,
                           per_tensor(1, 1))
                    .input(i8, adj_y ? Shape{2, 3} : Shape{3, 2}, adj_y ? b_transposed : b,
                           per_tensor(1, -1))
                    .output(i8, {2, 2}, per_tensor(2, 3))
                    .run<std::int8_t>(Op::batch_matmul, model::BatchMatMulOptions{adj_x, adj_y}),
                // 5 / 2 and 11 / 2: ties of a matrix product go upwards
                ElementsAre(5, 6, 8, 9));
}

TEST(BatchMatMul, BroadcastsBatches) {
    const auto product = OneOperator()
                             .input<float>(f32, {2, 1, 1, 2}, {1, 2, 3, 4})
                             .input<float>(f32, {2, 2, 1}, {1, 10, 100, 1000})
                             .output(f32, {2, 2, 1, 1})
                             .run<float>(Op::batch_matmul);
    EXPECT_THAT(product, ElementsAre(21, 2100, 43, 4300));
    EXPECT_THAT(OneOperator()
                    .input<float>(f32, {1, 2}, {1, 2})
                    .input<float>(f32, {3, 1}, {1, 2, 3})
                    .output(f32, {1, 1})
                    .refused(Op::batch_matmul),
                HasSubstr("rows of 2 elements times columns of 3"));
}

TEST(LeakyRelu, ScalesNegativeValues) {
    // In steps of 1 to steps of 1/2: x to 2 x, or to 2 * 0.25 x; -4.5 becomes -4.
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(i8, {4}, {10, 0, -6, -9}, per_tensor(1, 0))
                    .output(i8, {4}, per_tensor(0.5F, -1))
                    .run<std::int8_t>(Op::leaky_relu, model::LeakyReluOptions{0.25F}),
                ElementsAre(19, -1, -4, -5));
    EXPECT_THAT(OneOperator()
                    .input<std::uint8_t>(u8, {2}, {12, 8}, per_tensor(1, 10))
                    .output(u8, {2}, per_tensor(1, 20))
                    .run<std::uint8_t>(Op::leaky_relu, model::LeakyReluOptions{-2.0F}),
                ElementsAre(22, 24));
    EXPECT_THAT(OneOperator()
                    .input<float>(f32, {2}, {3, -4})
                    .output(f32, {2})
                    .run<float>(Op::leaky_relu, model::LeakyReluOptions{0.5F}),
                ElementsAre(3, -2));
}

TEST(HardSwish, RoundsAsSixteenBitsDo) {
    // Of the definition in 16-bit fixed point, computed apart: below -3 nothing, above 3 the value.
    EXPECT_THAT(
        OneOperator()
            .input<std::int8_t>(i8, {13}, {-128, -60, -57, -50, -27, 0, 3, 4, 40, 62, 63, 64, 100},
                                per_tensor(0.05F, 3))
            .output(i8, {13}, per_tensor(0.02F, -20))
            .run<std::int8_t>(model::Op::hard_swish),
        ElementsAre(-20, -20, -20, -28, -39, -24, -20, -19, 55, 126, 127, 127, 127));
    // Few bits are left: 1 and 4 are 0.7 and 1 away from the real numbers.
    EXPECT_THAT(
        OneOperator()
            .input<std::int8_t>(i8, {9}, {-128, -1, 0, 1, 2, 3, 4, 5, 9}, per_tensor(0.9F, 3))
            .output(i8, {9}, per_tensor(0.013F, -20))
            .run<std::int8_t>(model::Op::hard_swish),
        ElementsAre(-20, -20, -30, -47, -44, -20, 24, 90, 127));
    EXPECT_THAT(OneOperator()
                    .input<std::uint8_t>(u8, {9}, {0, 60, 90, 119, 120, 121, 150, 200, 255},
                                         per_tensor(0.06F, 120))
                    .output(u8, {9}, per_tensor(0.04F, 10))
                    .run<std::uint8_t>(model::Op::hard_swish),
                ElementsAre(10, 10, 1, 9, 10, 11, 46, 130, 212));
    EXPECT_THAT(OneOperator()
                    .input<float>(f32, {5}, {-4, -1.5F, 0, 1.5F, 4})
                    .output(f32, {5})
                    .run<float>(model::Op::hard_swish),
                ElementsAre(0, -0.375F, 0, 1.125F, 4));
}

TEST(HardSwish, IsRefusedWhereTFLiteHasNoShift) {
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(i8, {1}, {1}, per_tensor(1, 0))
                    .output(i8, {1}, per_tensor(0.001F, 0))
                    .refused(model::Op::hard_swish),
                HasSubstr("an output scale below 1/128"));
}

TEST(Prelu, HasASlopePerChannel) {
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(i8, {2, 2}, {-4, -4, 5, -1}, per_tensor(1, 0))
                    .constant<std::int8_t>(i8, {2}, {2, -2}, per_tensor(0.5F, 0))
                    .output(i8, {2, 2}, per_tensor(1, 1))
                    .run<std::int8_t>(Op::prelu),
                // slopes 1 and -1
                ElementsAre(-3, 5, 6, 2));
}

TEST(Tanh, SaturatesAtOne) {
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(i8, {4}, {0, 127, -128, 16}, per_tensor(1.0F / 32, 0))
                    .output(i8, {4}, per_tensor(1.0F / 128, 0))
                    .run<std::int8_t>(Op::tanh),
                // tanh(0.5) = 0.46212 is 59.15 steps, tanh(127 / 32) = 0.99929 127.9
                ElementsAre(0, 127, -128, 59));
}

TEST(Chosen, ComparesStoredValues) {
    const auto choose = [](Op op) {
        return OneOperator()
            .input<std::int8_t>(i8, {2, 2}, {1, -7, 3, 9}, per_tensor(1, 0))
            .input<std::int8_t>(i8, {1, 2}, {2, 5}, per_tensor(100, 0))
            .output(i8, {2, 2}, per_tensor(1, 0))
            .run<std::int8_t>(op);
    };
    EXPECT_THAT(choose(Op::maximum), ElementsAre(2, 5, 3, 9));
    EXPECT_THAT(choose(Op::minimum), ElementsAre(1, -7, 2, 5));
}

TEST(SquaredDifference, RescalesItsSquare) {
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(i8, {3}, {5, -3, 0}, per_tensor(1, 0))
                    .input<std::int8_t>(i8, {3}, {1, 1, 20}, per_tensor(0.5F, -1))
                    .output(i8, {3}, per_tensor(2, -4))
                    .run<std::int8_t>(Op::squared_difference),
                // 5 - 1, -3 - 1 and 0 - 10.5; squares 16, 16 and 110.25 in steps of 2
                ElementsAre(4, 4, 51));
    EXPECT_THAT(OneOperator()
                    .input<std::int32_t>(i32, {2}, {3, -70000})
                    .input<std::int32_t>(i32, {2}, {5, 0})
                    .output(i32, {2})
                    .run<std::int32_t>(Op::squared_difference),
                ElementsAre(4, 605032704));
}

TEST(FloorMod, HasTheDivisorsSign) {
    EXPECT_THAT(OneOperator()
                    .input<std::int32_t>(i32, {4}, {7, -7, 7, -7})
                    .input<std::int32_t>(i32, {4}, {3, 3, -3, -3})
                    .output(i32, {4})
                    .run<std::int32_t>(Op::floor_mod),
                ElementsAre(1, 2, -2, -1));
    EXPECT_THAT(OneOperator()
                    .input<std::int64_t>(ElementType::int64, {1}, {INT64_MIN})
                    .input<std::int64_t>(ElementType::int64, {1}, {-1})
                    .output(ElementType::int64, {1})
                    .run<std::int64_t>(Op::floor_mod),
                ElementsAre(0));
    EXPECT_THAT(OneOperator()
                    .input<float>(f32, {2}, {-5.5F, 5.5F})
                    .input<float>(f32, {2}, {2, -2})
                    .output(f32, {2})
                    .run<float>(Op::floor_mod),
                ElementsAre(0.5F, -0.5F));
    // -16777214 / 1.5 = -11184809.33 would be a whole number in float32.
    EXPECT_THAT(OneOperator()
                    .input<float>(f32, {2}, {-5.5F, -16777214})
                    .input<float>(f32, {2}, {2, 1.5F})
                    .output(f32, {2})
                    .run<float>(Op::floor_div),
                ElementsAre(-3, -11184810));
    auto executor = on_cpu(OneOperator()
                               .input<std::int32_t>(i32, {1}, {7})
                               .input<std::int32_t>(i32, {1}, {0})
                               .output(i32, {1})
                               .model(Op::floor_mod));
    ASSERT_TRUE(executor);
    EXPECT_THAT(executor->run().error().message(), HasSubstr("division by zero"));
}

TEST(Addition, WrapsInt64) {
    const std::vector<std::int64_t> numbers{INT64_MAX, 5};
    OneOperator one;
    one.input(ElementType::int64, {2}, numbers)
        .input<std::int64_t>(ElementType::int64, {}, {2})
        .output(ElementType::int64, {2});
    EXPECT_THAT(one.run<std::int64_t>(Op::add), ElementsAre(INT64_MIN + 1, 7));
}

TEST(GatherNd, TakesInt64Indices) {
    EXPECT_THAT(OneOperator()
                    .input<float>(f32, {2, 2}, {1, 2, 3, 4})
                    .input<std::int64_t>(ElementType::int64, {1, 2}, {1, 0})
                    .output(f32, {1})
                    .run<float>(Op::gather_nd),
                ElementsAre(3));
}

TEST(TopK, GivesTheFirstOfEqualsFirstAndNanLast) {
    const auto outputs = OneOperator()
                             .input<float>(f32, {2, 4}, {1, 3, 2, 3, NAN, -1, 0, NAN})
                             .constant<std::int32_t>(i32, {}, {3})
                             .output(f32, {2, 3})
                             .output(i32, {2, 3})
                             .run_all(Op::topk_v2);
    ASSERT_EQ(outputs.size(), 2U);
    EXPECT_THAT(values_of<std::int32_t>(outputs[1]), ElementsAre(1, 3, 2, 2, 1, 0));
    const auto values = values_of<float>(outputs[0]);
    EXPECT_EQ(values[0], 3);
    EXPECT_EQ(values[4], -1);
    EXPECT_TRUE(std::isnan(values[5]));
}

TEST(L2Normalization, DividesRowsByTheirLength) {
    // 3-4-5 triangle: 0.6 and 0.8 in steps of 1/128.
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(i8, {2, 2}, {13, 14, 10, 10}, per_tensor(0.5F, 10))
                    .output(i8, {2, 2}, per_tensor(1.0F / 128, 0))
                    .run<std::int8_t>(Op::l2_normalization),
                ElementsAre(77, 102, 0, 0));
    EXPECT_THAT(OneOperator()
                    .input<float>(f32, {1, 2}, {-3, 4})
                    .output(f32, {1, 2})
                    .run<float>(Op::l2_normalization),
                ElementsAre(-0.6F, 0.8F));
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(i8, {1, 1}, {1}, per_tensor(1, 0))
                    .output(i8, {1, 1}, per_tensor(0.5F, 0))
                    .refused(Op::l2_normalization),
                HasSubstr("not 1/128"));
}

TEST(Rsqrt, FollowsTheRoot) {
    // 1 / sqrt(4 / 16) = 2 and 1 / sqrt(1) = 1 in steps of 1/32; nothing is the largest value.
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(i8, {3}, {-124, -112, -128}, per_tensor(1.0F / 16, -128))
                    .output(i8, {3}, per_tensor(1.0F / 32, 0))
                    .run<std::int8_t>(Op::rsqrt),
                ElementsAre(64, 32, 127));
    auto executor = on_cpu(OneOperator()
                               .input<std::int8_t>(i8, {1}, {}, per_tensor(1, 5))
                               .output(i8, {1}, per_tensor(1, 0))
                               .model(Op::rsqrt));
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_THAT(executor->run().error().message(), HasSubstr("negative"));
}

TEST(InverseSquareRoot, IsWithinTwoMillionths) {
    for (std::int64_t x = 2; x < INT32_MAX; x = x * 5 / 4 + 1) {
        const cpu::Multiplier root = cpu::inverse_square_root(static_cast<std::int32_t>(x));
        const double value = std::ldexp(root.multiplier, root.shift - 31);
        EXPECT_NEAR(value * std::sqrt(static_cast<double>(x)), 1, 2e-6) << x;
    }
}

TEST(FloatFunctions, StayWithinOneUnitInTheLastPlace) {
    std::vector<float> x;
    for (int i = -2000; i < 2000; ++i) x.push_back(static_cast<float>(i) * 0.037F);
    const auto result = [&](Op op) {
        const Shape shape{static_cast<std::int32_t>(x.size())};
        return OneOperator().input(f32, shape, x).output(f32, shape).run<float>(op);
    };
    const auto sines = result(Op::sin);
    const auto cosines = result(Op::cos);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double at = x[i];
        EXPECT_NEAR(sines[i], std::sin(at), 0x1p-23) << at;
        EXPECT_NEAR(cosines[i], std::cos(at), 0x1p-23) << at;
    }
}

TEST(TransposeConv, AddsTheFilterAtEveryPixel) {
    // 2 x 2 pixels, stride 2, filter 3 x 3 of ones: windows overlap in the middle row and column.
    const auto spread = [](model::Padding padding, std::int32_t size) {
        return OneOperator()
            .numbers({1, size, size, 1})
            .constant<std::int8_t>(i8, {1, 3, 3, 1}, std::vector<std::int8_t>(9, 1),
                                   per_tensor(1, 0))
            .input<std::int8_t>(i8, {1, 2, 2, 1}, {2, 3, 4, 5}, per_tensor(1, 1))
            .output(i8, {1, size, size, 1}, per_tensor(1, 0))
            .run<std::int8_t>(
                Op::transpose_conv,
                model::TransposeConvOptions{.padding = padding, .stride_h = 2, .stride_w = 2});
    };
    EXPECT_THAT(
        spread(model::Padding::valid, 5),
        ElementsAre(1, 1, 3, 2, 2, 1, 1, 3, 2, 2, 4, 4, 10, 6, 6, 3, 3, 7, 4, 4, 3, 3, 7, 4, 4));
    EXPECT_THAT(spread(model::Padding::same, 4),
                ElementsAre(1, 1, 3, 2, 1, 1, 3, 2, 4, 4, 10, 6, 3, 3, 7, 4));
}

TEST(TransposeConv, HasAScaleAndABiasPerChannel) {
    const std::vector<std::int32_t> bias{10, -10};
    EXPECT_THAT(
        OneOperator()
            .numbers({1, 1, 1, 2})
            .constant<std::int8_t>(i8, {2, 1, 1, 1}, {2, 2}, model::per_channel({1, 0.5F}, 0))
            .input<std::int8_t>(i8, {1, 1, 1, 1}, {7}, per_tensor(1, 0))
            .constant(i32, {2}, bias)
            .output(i8, {1, 1, 1, 2}, per_tensor(1, 0))
            .run<std::int8_t>(Op::transpose_conv,
                              model::TransposeConvOptions{.stride_h = 1, .stride_w = 1}),
        ElementsAre(24, 2));
}

TEST(FloatConvolutions, AddProductsAndBias) {
    const std::vector<float> pixels{1, 2, 3, 4, 5, 6, 7, 8};  // 2 x 2 of two channels
    const auto one_output = [&](const Shape& filter, const std::vector<float>& weights,
                                const std::vector<float>& bias, const Shape& out) {
        OneOperator one;
        one.input(f32, {1, 2, 2, 2}, pixels)
            .constant(f32, filter, weights)
            .constant(f32, {static_cast<std::int32_t>(bias.size())}, bias)
            .output(f32, out);
        return one;
    };
    // Two filters of 1 x 2 pixels: the first adds channel 0 of the left one to channel 1 of the
    // right one, the second subtracts; clamped at 0.
    EXPECT_THAT(
        one_output({2, 1, 2, 2}, {1, 0, 0, 1, 1, 0, 0, -1}, {0.5F, 3}, {1, 2, 1, 2})
            .run<float>(Op::conv_2d, model::Conv2dOptions{.padding = model::Padding::valid,
                                                          .stride_h = 1,
                                                          .stride_w = 1,
                                                          .activation = model::Activation::relu}),
        ElementsAre(5.5F, 0, 13.5F, 0));
    EXPECT_THAT(one_output({1, 2, 1, 2}, {1, 10, 100, 1000}, {0, 1}, {1, 1, 2, 2})
                    .run<float>(Op::depthwise_conv_2d,
                                model::DepthwiseConv2dOptions{.padding = model::Padding::valid,
                                                              .stride_h = 1,
                                                              .stride_w = 1,
                                                              .depth_multiplier = 1}),
                ElementsAre(501, 6021, 703, 8041));
    EXPECT_THAT(one_output({1, 4}, {1, 1, 1, -1}, {-0.25F}, {2, 1}).run<float>(Op::fully_connected),
                ElementsAre(1.75F, 9.75F));
}

TEST(FloatConvolutions, AreTransposed) {
    EXPECT_THAT(
        OneOperator()
            .numbers({1, 1, 3, 1})
            .constant<float>(f32, {1, 1, 2, 1}, {1, 10})
            .input<float>(f32, {1, 1, 2, 1}, {3, 5})
            .constant<float>(f32, {1}, {0.5F})
            .output(f32, {1, 1, 3, 1})
            .run<float>(Op::transpose_conv,
                        model::TransposeConvOptions{
                            .padding = model::Padding::valid, .stride_h = 1, .stride_w = 1}),
        ElementsAre(3.5F, 35.5F, 50.5F));
}

TEST(FloatConvolutions, OutputsThatNoTapReachesAreTheBias) {
    const float infinite = std::numeric_limits<float>::infinity();
    EXPECT_THAT(OneOperator()
                    .numbers({1, 1, 6, 1})
                    .constant<float>(f32, {1, 1, 1, 1}, {2})
                    .input<float>(f32, {1, 1, 2, 1}, {infinite, 5})
                    .constant<float>(f32, {1}, {0.5F})
                    .output(f32, {1, 1, 6, 1})
                    .run<float>(Op::transpose_conv,
                                model::TransposeConvOptions{
                                    .padding = model::Padding::same, .stride_h = 1, .stride_w = 3}),
                ElementsAre(infinite, 0.5F, 0.5F, 10.5F, 0.5F, 0.5F));
}

TEST(FloatWindows, AreAveragedMaximisedAndResized) {
    const auto pooled = [](Op op) {
        return OneOperator()
            .input<float>(f32, {1, 1, 3, 1}, {-4, 1, 9})
            .output(f32, {1, 1, 2, 1})
            .run<float>(op, model::Pool2dOptions{
                                .stride_h = 1, .stride_w = 2, .filter_h = 1, .filter_w = 2});
    };
    EXPECT_THAT(pooled(Op::average_pool_2d), ElementsAre(-1.5F, 9));
    EXPECT_THAT(pooled(Op::max_pool_2d), ElementsAre(1, 9));
    EXPECT_THAT(OneOperator()
                    .input<float>(f32, {1, 1, 2, 1}, {0, 1})
                    .numbers({1, 4})
                    .output(f32, {1, 1, 4, 1})
                    .run<float>(Op::resize_bilinear),
                ElementsAre(0, 0.5F, 1, 1));
}

TEST(Svdf, RemembersFilteredInputs) {
    // One unit of rank 2 over two steps; the second filter looks at the second input.
    const std::vector<float> features{1, 0, 0, 1};
    const std::vector<float> time{1, 10, 100, 1000};
    OneOperator one;
    one.input<float>(f32, {1, 2}, {1, 2})
        .constant(f32, {2, 2}, features)
        .constant(f32, {2, 2}, time)
        .constant<float>(f32, {1}, {0.5F})
        .state(f32, {1, 4}, {})
        .output(f32, {1, 1});
    auto executor = on_cpu(one.model(Op::svdf, model::SvdfOptions{.rank = 2}));
    ASSERT_TRUE(executor) << executor.error().message();
    const auto step = [&](std::vector<float> input) {
        std::ranges::copy(bytes_of(input), executor->input(0).begin());
        EXPECT_TRUE(executor->run());
        return values_of<float>(executor->output(0)).at(0);
    };
    EXPECT_EQ(step({1, 2}), 10 + 2000 + 0.5F);
    EXPECT_EQ(step({3, 4}), 1 + 30 + 200 + 4000 + 0.5F);
    EXPECT_EQ(step({0, 0}), 3 + 400 + 0.5F);
}

TEST(Svdf, Int8SaturatesItsState) {
    // 100 * 100 in steps of 1/8: 32767 and no more; times 1 in steps of 512, halves away from zero.
    OneOperator one;
    one.input<std::int8_t>(i8, {1, 1}, {100}, per_tensor(1, 0))
        .constant<std::int8_t>(i8, {1, 1}, {100}, per_tensor(1, 0))
        .constant<std::int16_t>(ElementType::int16, {1, 1}, {1}, per_tensor(1, 0))
        .absent()
        .state(ElementType::int16, {1, 1}, per_tensor(0.125F, 0))
        .output(i8, {1, 1}, per_tensor(64, -1));
    EXPECT_THAT(one.run<std::int8_t>(
                    Op::svdf, model::SvdfOptions{.rank = 1, .activation = model::Activation::relu}),
                ElementsAre(63));
}

/// 2^30 rows of a state of 2^34 would be 0 modulo 2^64, as many elements as it has.
TEST(Svdf, RefusesAStateOfMoreElementsThan64BitsCount) {
    constexpr std::int32_t filters = 1 << 17, rows = 1 << 30;
    model::Builder builder("large state");
    const auto one = per_tensor(1, 0);
    const auto in = builder.input("in", i8, {rows, 0}, one);
    const auto features = builder.input("features", i8, {filters, 0}, one);
    const auto time = builder.input("time", ElementType::int16, {filters, 1 << 17}, one);
    const auto state = builder.variable("state", ElementType::int16, {0}, one);
    const auto out = builder.tensor("out", i8, {rows, 1}, one);
    builder.add(model::Op::svdf, {in, features, time, model::absent_tensor, state}, {out},
                model::SvdfOptions{.rank = filters, .activation = model::Activation::relu});
    builder.output(out);
    const auto model = builder.finish();
    ASSERT_TRUE(model) << model.error().message();
    const auto executor = on_cpu(*model);
    ASSERT_FALSE(executor);
    EXPECT_EQ(executor.error().message(), "operator 0 SVDF: a state of 0");
}

TEST(Multiplication, TakesFactorsBeyond32Bits) {
    // 2^33: the shift of 34 counts as 2, as on x86-64; a distance of 0 stays 0.
    const auto product = OneOperator()
                             .input<std::int8_t>(i8, {3}, {0, 1, -3}, per_tensor(1, 0))
                             .input<std::int8_t>(i8, {3}, {5, 1, 2}, per_tensor(1, 0))
                             .output(i8, {3}, per_tensor(0x1p-33F, 7))
                             .run<std::int8_t>(Op::mul);
    EXPECT_THAT(product, ElementsAre(7, 7 + 2, 7 - 12));
}

TEST(Int16Activations, AreRefusedByName) {
    const auto refused = [](Op op, model::Options options = {}) {
        return OneOperator()
            .input<std::int16_t>(ElementType::int16, {1, 2}, {1, 2}, per_tensor(1, 0))
            .output(ElementType::int16, {1, 2}, per_tensor(1, 0))
            .refused(op, std::move(options));
    };
    for (const Op op : {Op::leaky_relu, Op::tanh, Op::l2_normalization, Op::rsqrt})
        EXPECT_THAT(refused(op), HasSubstr("input 0 is int16")) << model::builtin_name(op);
}

}  // namespace
}  // namespace reef::test

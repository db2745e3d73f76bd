// Operators in the chip's arithmetic, computed a second time as the chip does it (in uint8).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "chip_operator.h"
#include "cpu/run_model.h"
#include "edgetpu/numerics/closest_ratio.h"
#include "edgetpu/numerics/forms.h"
#include "edgetpu/numerics/functions.h"
#include "edgetpu/numerics/requantisation.h"
#include "reef/model/builder.h"
#include "support/element_type_name.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

using model::Activation;
using model::Builder;
using model::Op;
using model::per_tensor;
using test::bytes_of;
using test::pick;
using test::random_bytes;
using test::refusal;
using testing::HasSubstr;

// --- operators, computed again in uint8

TEST_P(ChipOperator, ConvolutionsAreSumsTimesOneFloat) {
    for (int round = 0; round < 60; ++round) {
        const bool depthwise = round % 2 == 1;
        const std::int32_t height = pick(random_, 1, 6), width = pick(random_, 1, 6);
        const std::int32_t depth = pick(random_, 1, 9);
        const std::int32_t channels = depthwise ? depth : pick(random_, 1, 20);
        const std::int32_t taps = pick(random_, 1, 3);
        const Activation activation =
            std::array{Activation::none, Activation::relu,
                       Activation::relu6}[static_cast<std::size_t>(pick(random_, 0, 2))];
        const Side in = any_side(), out = any_side(-4, 5);
        const bool per_channel = is_signed() && pick(random_, 0, 1) == 1;
        const auto count = static_cast<std::size_t>(channels);
        std::vector<float> scales(per_channel ? count : 1);
        for (float& scale : scales) scale = any_side(-9, -4).scale;
        const std::int32_t weight_zero = is_signed() ? 128 : pick(random_, 0, 255);
        const std::int32_t per_filter = depthwise ? 1 : depth;
        const auto weights =
            random_bytes(random_, count * static_cast<std::size_t>(taps * taps * per_filter));
        std::vector<std::int32_t> bias(count);
        for (std::int32_t& value : bias) value = pick(random_, -20000, 20000);

        Builder builder("convolution");
        const auto x = builder.input("x", GetParam(), {1, height, width, depth}, quantisation(in));
        const auto w =
            builder.constant_bytes("w", GetParam(),
                                   depthwise ? std::vector{1, taps, taps, channels}
                                             : std::vector{channels, taps, taps, depth},
                                   weights,
                                   per_channel ? model::per_channel(scales, depthwise ? 3 : 0)
                                               : per_tensor(scales[0], weight_zero - sign_bit()));
        const auto b = builder.constant<std::int32_t>("b", ElementType::int32, {channels}, bias);
        const auto y =
            builder.tensor("y", GetParam(), {1, height, width, channels}, quantisation(out));
        if (depthwise)
            builder.add(Op::depthwise_conv_2d, {x, w, b}, {y},
                        model::DepthwiseConv2dOptions{.padding = model::Padding::same,
                                                      .stride_h = 1,
                                                      .stride_w = 1,
                                                      .depth_multiplier = 1,
                                                      .activation = activation});
        else
            builder.add(Op::conv_2d, {x, w, b}, {y},
                        model::Conv2dOptions{.padding = model::Padding::same,
                                             .stride_h = 1,
                                             .stride_w = 1,
                                             .activation = activation});
        const auto input = random_bytes(random_, static_cast<std::size_t>(height * width * depth));
        const auto values = run(builder, y, {input});
        ASSERT_EQ(values.size(), static_cast<std::size_t>(height * width) * count);

        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto o = static_cast<std::int32_t>(i % count);
            const auto pixel = static_cast<std::int32_t>(i / count);
            std::int64_t sum = bias[i % count];
            for (std::int32_t ky = 0; ky < taps; ++ky)
                for (std::int32_t kx = 0; kx < taps; ++kx)
                    for (std::int32_t k = 0; k < per_filter; ++k) {
                        const std::int32_t iy = pixel / width + ky - (taps - 1) / 2;
                        const std::int32_t ix = pixel % width + kx - (taps - 1) / 2;
                        if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
                        const std::int32_t channel = depthwise ? o : k;
                        const std::int32_t tap = depthwise
                                                     ? (ky * taps + kx) * channels + o
                                                     : ((o * taps + ky) * taps + kx) * depth + k;
                        sum += std::int64_t{on_chip(input[static_cast<std::size_t>(
                                                (iy * width + ix) * depth + channel)]) -
                                            in.zero} *
                               (on_chip(weights[static_cast<std::size_t>(tap)]) - weight_zero);
                    }
            const float weight = scales[per_channel ? i % count : 0];
            const float scale = in.scale * weight * (1.0F / out.scale);
            ASSERT_EQ(values[i], requantise(sum, scale, out, activation))
                << "round " << round << ", element " << i;
        }
    }
}

TEST_P(ChipOperator, FullyConnectedIsAConvolutionOfOnePixel) {
    constexpr std::int32_t depth = 37, channels = 70;
    const Side in = any_side(), out = any_side(-2, 3);
    const std::int32_t weight_zero = is_signed() ? 128 : 119;
    const auto weights = random_bytes(random_, depth * channels);
    Builder builder("fully connected");
    const auto x = builder.input("x", GetParam(), {2, depth}, quantisation(in));
    const auto w = builder.constant_bytes("w", GetParam(), {channels, depth}, weights,
                                          per_tensor(0.01F, weight_zero - sign_bit()));
    const auto y = builder.tensor("y", GetParam(), {2, channels}, quantisation(out));
    builder.add(Op::fully_connected, {x, w}, {y}, model::FullyConnectedOptions{});
    const auto input = random_bytes(random_, 2 * depth);
    const auto values = run(builder, y, {input});
    ASSERT_EQ(values.size(), 2U * channels);
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < depth; ++k)
            sum += std::int64_t{on_chip(input[i / channels * depth + k]) - in.zero} *
                   (on_chip(weights[i % channels * depth + k]) - weight_zero);
        EXPECT_EQ(values[i], requantise(sum, in.scale * 0.01F * (1.0F / out.scale), out)) << i;
    }
}

TEST_P(ChipOperator, AddWeighsBothInputsWithIntegers) {
    for (int round = 0; round < 20; ++round) {
        const Side a = any_side(), b = any_side(), out = any_side(-5, 2);
        Builder builder("add");
        const auto x = builder.input("x", GetParam(), {1, 40, 50, 1}, quantisation(a));
        const auto y = builder.input("y", GetParam(), {1, 40, 50, 1}, quantisation(b));
        const auto z = builder.tensor("z", GetParam(), {1, 40, 50, 1}, quantisation(out));
        builder.add(Op::add, {x, y}, {z}, model::AddOptions{.activation = Activation::relu});
        const auto left = random_bytes(random_, 2000), right = random_bytes(random_, 2000);
        const auto values = run(builder, z, {left, right});
        ASSERT_EQ(values.size(), 2000U);
        const Ratio ratio = closest_ratio(double{a.scale} / double{b.scale}, 32767);
        const float scale = a.scale / static_cast<float>(ratio.numerator) * (1.0F / out.scale);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::int64_t sum = std::int64_t{on_chip(left[i]) - a.zero} * ratio.numerator +
                                     std::int64_t{on_chip(right[i]) - b.zero} * ratio.denominator;
            ASSERT_EQ(values[i], requantise(sum, scale, out, Activation::relu)) << i;
        }
    }
}

TEST_P(ChipOperator, MulMultipliesWithoutZeroPoints) {
    const Side a = any_side(), b = any_side(), out = any_side(-5, 2);
    for (const std::int32_t second : {2000, 1}) {
        Builder builder("mul");
        const auto x = builder.input("x", GetParam(), {2000}, quantisation(a));
        const auto y = builder.input("y", GetParam(), {second}, quantisation(b));
        const auto z = builder.tensor("z", GetParam(), {2000}, quantisation(out));
        builder.add(Op::mul, {x, y}, {z}, model::MulOptions{});
        const auto left = random_bytes(random_, 2000);
        const auto right = random_bytes(random_, static_cast<std::size_t>(second));
        const auto values = run(builder, z, {left, right});
        ASSERT_EQ(values.size(), 2000U);
        const float scale = a.scale * b.scale * (1.0F / out.scale);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::byte factor = right[second == 1 ? 0 : i];
            const std::int64_t product =
                std::int64_t{on_chip(left[i]) - a.zero} * (on_chip(factor) - b.zero);
            ASSERT_EQ(values[i], requantise(product, scale, out)) << i;
        }
    }
}

TEST_P(ChipOperator, MulByAConstantPerChannelScalesEachLane) {
    const Side a = any_side(), b = any_side(), out = any_side(-5, 2);
    constexpr std::int32_t channels = 24, pixels = 50;
    const auto factors = random_bytes(random_, channels);
    Builder builder("mul");
    const auto x = builder.input("x", GetParam(), {1, 5, 10, channels}, quantisation(a));
    const auto k =
        builder.constant_bytes("k", GetParam(), {1, 1, channels}, factors, quantisation(b));
    const auto z = builder.tensor("z", GetParam(), {1, 5, 10, channels}, quantisation(out));
    builder.add(Op::mul, {x, k}, {z}, model::MulOptions{});
    const auto input = random_bytes(random_, std::size_t{channels} * pixels);
    const auto values = run(builder, z, {input});
    ASSERT_EQ(values.size(), input.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto steps = static_cast<float>(on_chip(factors[i % channels]) - b.zero);
        const float scale = a.scale * (b.scale * steps) * (1.0F / out.scale);
        ASSERT_EQ(values[i], requantise(on_chip(input[i]) - a.zero, scale, out)) << i;
    }
}

// Two instructions of face_landmark_192: half of the second operand less the first, up to zero;
// then the second less twice that. The half's scale in its instructions is 0.5, or 0.49999997 for
// tensors whose scale times its reciprocal is less than one.
TEST_P(ChipOperator, MaximumGoesByHalves) {
    const Side side{0.25F, any_side().zero};
    Builder builder("maximum");
    const auto x = builder.input("x", GetParam(), {1, 256, 256, 1}, quantisation(side));
    const auto y = builder.input("y", GetParam(), {1, 256, 256, 1}, quantisation(side));
    const auto z = builder.tensor("z", GetParam(), {1, 256, 256, 1}, quantisation(side));
    builder.add(Op::maximum, {x, y}, {z});
    const auto [first, second] = every_pair();
    const auto values = run(builder, z, {first, second});
    ASSERT_EQ(values.size(), first.size());
    std::size_t off = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int32_t a = on_chip(first[i]), b = on_chip(second[i]);
        const auto half = static_cast<std::int32_t>(
            std::nearbyint(std::clamp(0.5F * static_cast<float>(b - a), -128.0F, 0.0F)));
        ASSERT_EQ(values[i], std::clamp(b - 2 * half, 0, 255)) << a << " " << b;
        EXPECT_LE(std::abs(values[i] - std::max(a, b)), 1);
        off += values[i] != std::max(a, b) ? 1 : 0;
    }
    // Where the first is larger by an odd number, but for the 64 that would be 256.
    EXPECT_EQ(off, 128U * 128U - 64);
}

TEST_P(ChipOperator, MaximumOfAScaleWithoutAnExactReciprocal) {
    float scale = 0.1F;
    while (scale * (1.0F / scale) == 1.0F) scale = std::nextafter(scale, 1.0F);
    ASSERT_EQ(0.5F * scale * (1.0F / scale), 0.49999997F);
    const Side side{scale, 7};
    Builder builder("maximum");
    const auto x = builder.input("x", GetParam(), {1, 1, 4, 1}, quantisation(side));
    const auto y = builder.input("y", GetParam(), {1, 1, 4, 1}, quantisation(side));
    const auto z = builder.tensor("z", GetParam(), {1, 1, 4, 1}, quantisation(side));
    builder.add(Op::maximum, {x, y}, {z});
    const auto stored = [&](int value) { return static_cast<std::byte>(value ^ sign_bit()); };
    // Above by 3 and by 7: a tie no more, and 1.4999999 and 3.4999998 go down.
    const auto values = run(builder, z,
                            {{stored(103), stored(107), stored(104), stored(0)},
                             {stored(100), stored(100), stored(100), stored(9)}});
    EXPECT_THAT(values, testing::ElementsAre(102, 106, 104, 9));
}

TEST_P(ChipOperator, SubTakesAWholeNumberOfSteps) {
    // MoveNet's: 1.0 is 127.5 steps of the input, and 128 on the chip.
    const Side in{0.007843137718737125F, 0}, out{in.scale, 127}, one{0.5F * in.scale, 0};
    Builder builder("sub");
    const auto x = builder.input("x", GetParam(), {1, 2, 128, 1}, quantisation(in));
    const auto k = builder.constant_bytes("k", GetParam(), {},
                                          std::vector{static_cast<std::byte>(255 ^ sign_bit())},
                                          quantisation(one));
    const auto y = builder.tensor("y", GetParam(), {1, 2, 128, 1}, quantisation(out));
    builder.add(Op::sub, {x, k}, {y}, model::SubOptions{});
    std::vector<std::byte> input(256);
    for (std::size_t i = 0; i < 256; ++i) input[i] = static_cast<std::byte>(i);
    const auto values = run(builder, y, {input});
    ASSERT_EQ(values.size(), 256U);
    for (std::size_t i = 0; i < 256; ++i)
        EXPECT_EQ(values[i], std::max(0, on_chip(input[i]) - 128 + 127));
}

/// As SUB, wherever the constant stands.
TEST_P(ChipOperator, AddOfAConstantIsAWholeNumberOfSteps) {
    const Side in{0.007843137718737125F, 0}, out{in.scale, 3}, one{0.5F * in.scale, 0};
    for (const bool first : {false, true}) {
        Builder builder("add");
        const auto x = builder.input("x", GetParam(), {1, 2, 128, 1}, quantisation(in));
        const auto k = builder.constant_bytes("k", GetParam(), {},
                                              std::vector{static_cast<std::byte>(81 ^ sign_bit())},
                                              quantisation(one));
        const auto y = builder.tensor("y", GetParam(), {1, 2, 128, 1}, quantisation(out));
        const std::vector<model::TensorIndex> from{first ? k : x, first ? x : k};
        builder.add(Op::add, from, {y}, model::AddOptions{});
        std::vector<std::byte> input(256);
        for (std::size_t i = 0; i < 256; ++i) input[i] = static_cast<std::byte>(i);
        const auto values = run(builder, y, {input});
        ASSERT_EQ(values.size(), 256U);
        // 40.5 steps become 40.
        for (std::size_t i = 0; i < 256; ++i)
            EXPECT_EQ(values[i], std::min(255, on_chip(input[i]) + 40 + 3));
    }
}

/// One for all, one for each channel, and one for each element.
TEST_P(ChipOperator, ProductsWithAConstantAreTheSameInAnyOrder) {
    for (const std::vector<std::int32_t>& shape :
         {std::vector<std::int32_t>{}, {6}, {1, 5, 4, 6}}) {
        const Side in = any_side(), factor{0.01F, 100}, out{in.scale * 0.4F, 90};
        std::size_t size = 1;
        for (const auto n : shape) size *= static_cast<std::size_t>(n);
        const auto constant = random_bytes(random_, size);
        const auto input = random_bytes(random_, 5 * 4 * 6);
        const auto values = [&](bool first) {
            Builder builder("mul");
            const auto x = builder.input("x", GetParam(), {1, 5, 4, 6}, quantisation(in));
            const auto k =
                builder.constant_bytes("k", GetParam(), shape, constant, quantisation(factor));
            const auto y = builder.tensor("y", GetParam(), {1, 5, 4, 6}, quantisation(out));
            const std::vector<model::TensorIndex> from{first ? k : x, first ? x : k};
            builder.add(Op::mul, from, {y}, model::MulOptions{});
            return run(builder, y, {input});
        };
        EXPECT_EQ(values(true), values(false));
        EXPECT_EQ(values(true).size(), input.size());
    }
}

TEST_P(ChipOperator, AveragesAreSumsTimesAShare) {
    const Side in = any_side();
    const auto input = random_bytes(random_, 8 * 12 * 5);
    const auto average = [&](Builder& builder, model::TensorIndex y, std::int32_t rows,
                             std::int32_t columns, Side out) {
        const auto values = run(builder, y, {input});
        const std::int32_t across = 12 / columns;
        ASSERT_EQ(values.size(), static_cast<std::size_t>(8 / rows * across * 5));
        const float share = 1.0F / static_cast<float>(rows * columns);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto at = static_cast<std::int32_t>(i);
            std::int64_t sum = 0;
            for (std::int32_t ky = 0; ky < rows; ++ky)
                for (std::int32_t kx = 0; kx < columns; ++kx)
                    sum +=
                        on_chip(input[static_cast<std::size_t>(
                            ((at / 5 / across * rows + ky) * 12 + at / 5 % across * columns + kx) *
                                5 +
                            at % 5)]) -
                        in.zero;
            ASSERT_EQ(values[i], requantise(sum, in.scale * share * (1.0F / out.scale), out)) << i;
        }
    };
    Builder pool("pool");
    const auto x = pool.input("x", GetParam(), {1, 8, 12, 5}, quantisation(in));
    const auto y = pool.tensor("y", GetParam(), {1, 4, 4, 5}, quantisation(in));
    pool.add(Op::average_pool_2d, {x}, {y},
             model::Pool2dOptions{.padding = model::Padding::valid,
                                  .stride_h = 2,
                                  .stride_w = 3,
                                  .filter_h = 2,
                                  .filter_w = 3});
    average(pool, y, 2, 3, in);

    const Side out = any_side();
    Builder mean("mean");
    const auto u = mean.input("u", GetParam(), {1, 8, 12, 5}, quantisation(in));
    const auto axes = mean.constant<std::int32_t>("axes", ElementType::int32, {2},
                                                  std::vector<std::int32_t>{1, 2});
    const auto v = mean.tensor("v", GetParam(), {1, 1, 1, 5}, quantisation(out));
    mean.add(Op::mean, {u, axes}, {v}, model::ReducerOptions{.keep_dims = true});
    average(mean, v, 8, 12, out);
}

TEST_P(ChipOperator, CopiesToAnotherQuantisationAreOneMultiplication) {
    const Side a = any_side(), b = any_side(), out = any_side();
    const auto first = random_bytes(random_, 300), second = random_bytes(random_, 300);
    Builder join("join");
    const auto x = join.input("x", GetParam(), {300, 1}, quantisation(a));
    const auto y = join.input("y", GetParam(), {300, 1}, quantisation(b));
    const auto z = join.tensor("z", GetParam(), {300, 2}, quantisation(out));
    join.add(Op::concatenation, {x, y}, {z}, model::ConcatenationOptions{.axis = 1});
    const auto joined = run(join, z, {first, second});
    ASSERT_EQ(joined.size(), 600U);
    const auto expected = [&](std::byte value, Side in, Activation activation) {
        return requantise(on_chip(value) - in.zero, in.scale * (1.0F / out.scale), out, activation);
    };
    for (std::size_t i = 0; i < 300; ++i) {
        ASSERT_EQ(joined[2 * i], expected(first[i], a, Activation::none)) << i;
        ASSERT_EQ(joined[2 * i + 1], expected(second[i], b, Activation::none)) << i;
    }
    for (const Op op : {Op::quantize, Op::relu, Op::relu6}) {
        Builder copy("copy");
        const auto u = copy.input("u", GetParam(), {300}, quantisation(a));
        const auto v = copy.tensor("v", GetParam(), {300}, quantisation(out));
        copy.add(op, {u}, {v});
        const auto copied = run(copy, v, {first});
        ASSERT_EQ(copied.size(), 300U);
        const Activation activation = op == Op::relu    ? Activation::relu
                                      : op == Op::relu6 ? Activation::relu6
                                                        : Activation::none;
        for (std::size_t i = 0; i < 300; ++i)
            ASSERT_EQ(copied[i], expected(first[i], a, activation)) << model::builtin_name(op);
    }
}

TEST_P(ChipOperator, MinimumGoesByHalvesDownwards) {
    const Side side{0.25F, any_side().zero};
    Builder builder("minimum");
    const auto x = builder.input("x", GetParam(), {1, 256, 256, 1}, quantisation(side));
    const auto y = builder.input("y", GetParam(), {1, 256, 256, 1}, quantisation(side));
    const auto z = builder.tensor("z", GetParam(), {1, 256, 256, 1}, quantisation(side));
    builder.add(Op::minimum, {x, y}, {z});
    const auto [first, second] = every_pair();
    const auto values = run(builder, z, {first, second});
    ASSERT_EQ(values.size(), first.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int32_t a = on_chip(first[i]), b = on_chip(second[i]);
        EXPECT_LE(std::abs(values[i] - std::min(a, b)), 1);
        if ((a - b) % 2 == 0 || a > b) {
            EXPECT_EQ(values[i], std::min(a, b)) << a << " " << b;
        }
    }
}

/// ADD's rule with the second's factor negative.
TEST_P(ChipOperator, SubOfTwoTensorsIsWeightedAsAdd) {
    const Side a = any_side(-5, -3), b = any_side(-5, -3);
    const Side out{a.scale + b.scale, pick(random_, 0, 255)};
    Builder builder("sub");
    const auto x = builder.input("x", GetParam(), {1, 64, 64, 1}, quantisation(a));
    const auto y = builder.input("y", GetParam(), {1, 64, 64, 1}, quantisation(b));
    const auto z = builder.tensor("z", GetParam(), {1, 64, 64, 1}, quantisation(out));
    builder.add(Op::sub, {x, y}, {z}, model::SubOptions{});
    const auto first = random_bytes(random_, 4096), second = random_bytes(random_, 4096);
    const auto values = run(builder, z, {first, second});
    ASSERT_EQ(values.size(), first.size());
    const Ratio weights =
        closest_ratio(static_cast<double>(a.scale) / static_cast<double>(b.scale), 32767);
    const float scale = a.scale / static_cast<float>(weights.numerator) * (1.0F / out.scale);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t sum = std::int64_t{weights.numerator} * (on_chip(first[i]) - a.zero) -
                                 std::int64_t{weights.denominator} * (on_chip(second[i]) - b.zero);
        ASSERT_EQ(values[i], requantise(sum, scale, out)) << i;
    }
}

TEST_P(ChipOperator, SoftmaxIsWithinOneStepOfTheRealOne) {
    const Side in{0.11F, 70}, out{1.0F / 256, 0};
    for (const std::int32_t length : {1, 2, 10, 1001}) {
        Builder builder("softmax");
        const auto x = builder.input("x", GetParam(), {1, length}, quantisation(in));
        const auto y = builder.tensor("y", GetParam(), {1, length}, quantisation(out));
        builder.add(Op::softmax, {x}, {y}, model::SoftmaxOptions{.beta = 1});
        const auto input = random_bytes(random_, static_cast<std::size_t>(length));
        const auto values = run(builder, y, {input});
        ASSERT_EQ(values.size(), static_cast<std::size_t>(length));
        double sum = 0;
        for (const std::byte value : input) sum += std::exp(0.11 * on_chip(value));
        for (std::size_t i = 0; i < values.size(); ++i)
            EXPECT_NEAR(values[i], 256 * std::exp(0.11 * on_chip(input[i])) / sum, 1) << i;
    }
}

TEST_P(ChipOperator, ResizeWeighsQuarters) {
    const Side any = any_side();
    Builder builder("resize");
    const auto x = builder.input("x", GetParam(), {1, 3, 5, 2}, quantisation(any));
    const auto size = builder.constant<std::int32_t>("size", ElementType::int32, {2},
                                                     std::vector<std::int32_t>{6, 10});
    const auto y = builder.tensor("y", GetParam(), {1, 6, 10, 2}, quantisation(any));
    builder.add(Op::resize_bilinear, {x, size}, {y},
                model::ResizeBilinearOptions{.half_pixel_centers = true});
    const auto input = random_bytes(random_, 30);
    const auto values = run(builder, y, {input});
    ASSERT_EQ(values.size(), 120U);
    // Along one axis an output takes three quarters of the nearer input and one of the other.
    const auto near = [](int o) { return o / 2; };
    const auto far = [](int o, int length) {
        return std::clamp(o / 2 + (o % 2 == 0 ? -1 : 1), 0, length - 1);
    };
    for (int oy = 0; oy < 6; ++oy)
        for (int ox = 0; ox < 10; ++ox)
            for (int c = 0; c < 2; ++c) {
                const auto at = [&](int iy, int ix) {
                    return on_chip(input[static_cast<std::size_t>((iy * 5 + ix) * 2 + c)]);
                };
                const int sixteenths = 9 * at(near(oy), near(ox)) + 3 * at(near(oy), far(ox, 5)) +
                                       3 * at(far(oy, 3), near(ox)) + at(far(oy, 3), far(ox, 5));
                EXPECT_EQ(values[static_cast<std::size_t>((oy * 10 + ox) * 2 + c)],
                          static_cast<int>(std::lrint(sixteenths / 16.0)));
            }
}

INSTANTIATE_TEST_SUITE_P(Types, ChipOperator,
                         testing::Values(ElementType::uint8, ElementType::int8),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace reef::edgetpu::numerics

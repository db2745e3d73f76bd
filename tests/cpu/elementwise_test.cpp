// Operators on quantised tensors: the table kernels against the plain ones on all pairs of values,
// and both against real arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "reef/model/builder.h"
#include "support/cpu_executor.h"
#include "support/element_type_name.h"

namespace reef::cpu {
namespace {

using model::Builder;
using model::Op;

struct Parameters {
    float scale = 1;
    std::int64_t zero_point = 0;
};

/// The product is rounded to an integer, shifted right by one bit at least or not at all, and
/// rounded again: 1/2 + 1/4 of a step. (Sums carry 20 more bits.)
constexpr double twice_rounded = 0.75 + 1e-6;

class Elementwise : public testing::TestWithParam<ElementType> {
  protected:
    [[nodiscard]] bool is_signed() const { return GetParam() == ElementType::int8; }
    [[nodiscard]] int lowest() const { return is_signed() ? -128 : 0; }
    [[nodiscard]] int highest() const { return is_signed() ? 127 : 255; }
    [[nodiscard]] int value(std::byte byte) const {
        return is_signed() ? static_cast<std::int8_t>(byte) : std::to_integer<int>(byte);
    }

    Parameters any_parameters() {
        std::uniform_real_distribution<float> exponent(-6, 0);
        std::uniform_int_distribution<int> zero(lowest(), highest());
        return {std::exp2(exponent(random_)), zero(random_)};
    }

    std::mt19937 random_{1};
};

std::vector<std::byte> run(const model::Model& model, KernelSet kernels, int threads,
                           const std::vector<std::vector<std::byte>>& inputs) {
    auto executor = test::on_cpu(model, {.kernels = kernels, .threads = threads});
    EXPECT_TRUE(executor) << executor.error().message();
    if (!executor) return {};
    for (std::size_t i = 0; i < inputs.size(); ++i)
        std::ranges::copy(inputs[i], executor->input(i).begin());
    EXPECT_TRUE(executor->run());
    const Bytes output = executor->output(0);
    return {output.begin(), output.end()};
}

std::vector<std::byte> all_bytes() {
    std::vector<std::byte> bytes(256);
    for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::byte>(i);
    return bytes;
}

TEST_P(Elementwise, SumsDifferencesAndProductsOfAllPairs) {
    for (int round = 0; round < 30; ++round) {
        const Op op = std::array{Op::add, Op::sub, Op::mul}[static_cast<std::size_t>(round % 3)];
        const Parameters a = any_parameters();
        const Parameters b = any_parameters();
        const Parameters out = any_parameters();
        Builder builder("pairs");
        const auto x =
            builder.input("x", GetParam(), {256, 1}, model::per_tensor(a.scale, a.zero_point));
        const auto y =
            builder.input("y", GetParam(), {1, 256}, model::per_tensor(b.scale, b.zero_point));
        const auto z = builder.tensor("z", GetParam(), {256, 256},
                                      model::per_tensor(out.scale, out.zero_point));
        builder.add(op, {x, y}, {z});
        builder.output(z);
        const auto model = builder.finish().value();
        const auto plain = run(model, KernelSet::reference, 1, {all_bytes(), all_bytes()});
        ASSERT_EQ(plain.size(), 65536U);
        ASSERT_EQ(run(model, KernelSet::fast, 1, {all_bytes(), all_bytes()}), plain);
        ASSERT_EQ(run(model, KernelSet::fast, 2, {all_bytes(), all_bytes()}), plain);
        for (std::size_t i = 0; i < plain.size(); ++i) {
            const double p = a.scale * (value(static_cast<std::byte>(i / 256)) - a.zero_point);
            const double q = b.scale * (value(static_cast<std::byte>(i % 256)) - b.zero_point);
            const double real = op == Op::add ? p + q : op == Op::sub ? p - q : p * q;
            const double exact = std::clamp<double>(
                real / out.scale + static_cast<double>(out.zero_point), lowest(), highest());
            ASSERT_NEAR(value(plain[i]), exact, op == Op::mul ? twice_rounded : 0.51) << i;
        }
    }
}

TEST_P(Elementwise, RequantisesEveryValue) {
    for (int round = 0; round < 60; ++round) {
        const Parameters in = any_parameters();
        const Parameters out = any_parameters();
        Builder builder("requantise");
        const auto x =
            builder.input("x", GetParam(), {256}, model::per_tensor(in.scale, in.zero_point));
        const auto y =
            builder.tensor("y", GetParam(), {256}, model::per_tensor(out.scale, out.zero_point));
        builder.add(Op::quantize, {x}, {y});
        builder.output(y);
        const auto model = builder.finish().value();
        const auto plain = run(model, KernelSet::reference, 1, {all_bytes()});
        ASSERT_EQ(plain.size(), 256U);
        ASSERT_EQ(run(model, KernelSet::fast, 1, {all_bytes()}), plain);
        for (std::size_t i = 0; i < 256; ++i) {
            const double real = in.scale * (value(static_cast<std::byte>(i)) - in.zero_point);
            const double exact = std::clamp<double>(
                real / out.scale + static_cast<double>(out.zero_point), lowest(), highest());
            ASSERT_NEAR(value(plain[i]), exact, twice_rounded) << i;
        }
    }
}

TEST_P(Elementwise, FusedActivationsClamp) {
    Builder builder("clamp");
    const int zero = lowest() + 100;
    const auto x = builder.input("x", GetParam(), {256}, model::per_tensor(0.1F, zero));
    const auto k =
        builder.constant_bytes("k", GetParam(), {1}, std::vector{static_cast<std::byte>(zero)},
                               model::per_tensor(0.1F, zero));
    const auto y = builder.tensor("y", GetParam(), {256}, model::per_tensor(0.1F, zero));
    builder.add(Op::add, {x, k}, {y}, model::AddOptions{.activation = model::Activation::relu6});
    builder.output(y);
    const auto model = builder.finish().value();
    for (const KernelSet kernels : {KernelSet::reference, KernelSet::fast}) {
        const auto result = run(model, kernels, 1, {all_bytes()});
        for (std::size_t i = 0; i < 256; ++i)
            EXPECT_EQ(value(result[i]),
                      std::clamp(value(static_cast<std::byte>(i)), zero, zero + 60));
    }
}

/// RELU or RELU6 from one quantisation to another, on `input`.
std::vector<std::byte> rectified(Op op, ElementType type, Parameters in, Parameters out,
                                 const std::vector<std::byte>& input, KernelSet kernels) {
    const auto count = static_cast<std::int32_t>(input.size() / *size_of(type));
    Builder builder("rectify");
    const auto x = builder.input("x", type, {count}, model::per_tensor(in.scale, in.zero_point));
    const auto y = builder.tensor("y", type, {count}, model::per_tensor(out.scale, out.zero_point));
    builder.add(op, {x}, {y});
    builder.output(y);
    return run(builder.finish().value(), kernels, 1, {input});
}

TEST_P(Elementwise, RectifiersAtOneScaleOnlyClamp) {
    const int zero = lowest() + 100;
    const Parameters same{0.1F, zero};
    for (const KernelSet kernels : {KernelSet::reference, KernelSet::fast}) {
        const auto relu = rectified(Op::relu, GetParam(), same, same, all_bytes(), kernels);
        const auto relu6 = rectified(Op::relu6, GetParam(), same, same, all_bytes(), kernels);
        ASSERT_EQ(relu.size(), 256U);
        ASSERT_EQ(relu6.size(), 256U);
        for (std::size_t i = 0; i < 256; ++i) {
            const int x = value(static_cast<std::byte>(i));
            EXPECT_EQ(value(relu[i]), std::max(x, zero));
            EXPECT_EQ(value(relu6[i]), std::clamp(x, zero, zero + 60));
        }
    }
}

TEST_P(Elementwise, RectifiersRescaleEveryValue) {
    for (int round = 0; round < 60; ++round) {
        const Op op = round % 2 == 0 ? Op::relu : Op::relu6;
        const double most = op == Op::relu ? std::numeric_limits<double>::infinity() : 6;
        const Parameters in = any_parameters();
        const Parameters out = any_parameters();
        const auto plain = rectified(op, GetParam(), in, out, all_bytes(), KernelSet::reference);
        ASSERT_EQ(plain.size(), 256U);
        ASSERT_EQ(rectified(op, GetParam(), in, out, all_bytes(), KernelSet::fast), plain);
        for (std::size_t i = 0; i < 256; ++i) {
            const double real = std::clamp<double>(
                in.scale * (value(static_cast<std::byte>(i)) - in.zero_point), 0, most);
            const double exact = std::clamp<double>(
                real / out.scale + static_cast<double>(out.zero_point), lowest(), highest());
            ASSERT_NEAR(value(plain[i]), exact, twice_rounded) << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Elementwise, testing::Values(ElementType::uint8, ElementType::int8),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST(Rectifiers, OnInt16AndFloat32) {
    const std::vector<std::int16_t> steps{-32768, -1, 0, 1, 11, 12, 13, 32767};
    const auto steps_bytes = std::as_bytes(std::span(steps));
    const std::vector<float> reals{-INFINITY, -1, -0.0F, 0.5F, 6, 6.5F, INFINITY, NAN};
    const auto reals_bytes = std::as_bytes(std::span(reals));
    const auto of_steps = [&](Op op) {
        const auto bytes = rectified(op, ElementType::int16, {0.5F, 0}, {0.5F, 0},
                                     {steps_bytes.begin(), steps_bytes.end()}, KernelSet::fast);
        std::vector<std::int16_t> values(bytes.size() / sizeof(std::int16_t));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    };
    EXPECT_EQ(of_steps(Op::relu), (std::vector<std::int16_t>{0, 0, 0, 1, 11, 12, 13, 32767}));
    EXPECT_EQ(of_steps(Op::relu6), (std::vector<std::int16_t>{0, 0, 0, 1, 11, 12, 12, 12}));
    for (const Op op : {Op::relu, Op::relu6}) {
        Builder builder("rectify");
        const auto x = builder.input("x", ElementType::float32, {8});
        const auto y = builder.tensor("y", ElementType::float32, {8});
        builder.add(op, {x}, {y});
        builder.output(y);
        const auto bytes = run(builder.finish().value(), KernelSet::fast, 1,
                               {{reals_bytes.begin(), reals_bytes.end()}});
        ASSERT_EQ(bytes.size(), 32U);
        std::vector<float> values(8);
        std::memcpy(values.data(), bytes.data(), 32);
        const float six = op == Op::relu ? 6.5F : 6;
        const float most = op == Op::relu ? INFINITY : 6;
        // TFLite's RELU6 gives 0 for -0 and for what is no number; its RELU keeps both.
        EXPECT_EQ(std::signbit(values[2]), op == Op::relu);
        if (op == Op::relu6) {
            EXPECT_EQ(values.back(), 0);
        } else {
            EXPECT_TRUE(std::isnan(values.back()));
        }
        values.pop_back();
        EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 0.5F, 6, six, most}));
    }
}

TEST(Rectifiers, RefuseOtherTypes) {
    Builder builder("rectify");
    const auto x = builder.input("x", ElementType::int32, {4});
    const auto y = builder.tensor("y", ElementType::int32, {4});
    builder.add(Op::relu, {x}, {y});
    builder.output(y);
    const auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_FALSE(executor);
    EXPECT_EQ(executor.error().cause, Cause::unsupported);
}

TEST(Concatenation, RefusesScalesWhoseValuesHaveNoFloat32) {
    Builder builder("join");
    const auto a = builder.input("a", ElementType::uint8, {2, 2}, model::per_tensor(3e38F, 10));
    const auto y = builder.tensor("y", ElementType::uint8, {2, 2}, model::per_tensor(1, 20));
    builder.add(Op::concatenation, {a}, {y}, model::ConcatenationOptions{.axis = 1});
    builder.output(y);
    const auto refused = test::on_cpu(builder.finish().value(), {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().cause, Cause::bad_input);
}

TEST(Concatenation, RescalesUint8InputsAndRefusesOtherTypes) {
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        Builder builder("join");
        const auto a = builder.input("a", type, {2, 2}, model::per_tensor(0.5F, 10));
        const auto b = builder.input("b", type, {2, 1}, model::per_tensor(0.25F, 20));
        const auto y = builder.tensor("y", type, {2, 3}, model::per_tensor(0.25F, 20));
        builder.add(Op::concatenation, {a, b}, {y}, model::ConcatenationOptions{.axis = -1});
        builder.output(y);
        const auto model = builder.finish().value();
        if (type == ElementType::int8) {
            EXPECT_EQ(test::on_cpu(model, {}).error().cause, Cause::unsupported);
            continue;
        }
        const auto bytes = [](std::initializer_list<int> values) {
            std::vector<std::byte> result;
            for (const int value : values) result.push_back(static_cast<std::byte>(value));
            return result;
        };
        // (10 - 10) * 2 + 20, (11 - 10) * 2 + 20, clamped above and below.
        EXPECT_EQ(run(model, KernelSet::fast, 1, {bytes({10, 11, 200, 0}), bytes({7, 8})}),
                  bytes({20, 22, 7, 255, 0, 8}));
    }
}

/// 64 times the same, so that vectors are full.
std::vector<int> quantised(ElementType type, std::int64_t zero, const std::vector<float>& values,
                           float scale = 0.01F) {
    Builder builder("quantize");
    const auto length = static_cast<std::int32_t>(64 * values.size());
    const auto x = builder.input("x", ElementType::float32, {length});
    const auto y = builder.tensor("y", type, {length}, model::per_tensor(scale, zero));
    builder.add(Op::quantize, {x}, {y});
    builder.output(y);
    const auto model = builder.finish().value();
    std::vector<float> all;
    for (const float value : values) all.insert(all.end(), 64, value);
    const auto bytes = std::as_bytes(std::span(all));
    std::vector<int> first;
    for (const KernelSet kernels : {KernelSet::reference, KernelSet::fast}) {
        const auto out = run(model, kernels, 1, {{bytes.begin(), bytes.end()}});
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t at = 64 * i + (kernels == KernelSet::fast ? 63 : 0);
            first.push_back(type == ElementType::int8 ? static_cast<std::int8_t>(out[at])
                                                      : static_cast<std::uint8_t>(out[at]));
            EXPECT_EQ(std::ranges::count(out, out[at]) % 64, 0) << values[i];
        }
    }
    return first;
}

// As TensorFlow Lite 2.9's library for x86-64 gives them.
TEST(Quantize, WhatNoInt32HoldsWrapsRoundFromTheLowest) {
    const std::vector<float> values{3e7F, -3e7F, INFINITY, NAN, 2e7F};
    EXPECT_EQ(quantised(ElementType::int8, 5, values),
              (std::vector<int>{-128, -128, -128, -128, 127, -128, -128, -128, -128, 127}));
    EXPECT_EQ(quantised(ElementType::int8, -128, values),
              (std::vector<int>{127, 127, 127, 127, 127, 127, 127, 127, 127, 127}));
    EXPECT_EQ(quantised(ElementType::uint8, 5, values),
              (std::vector<int>{0, 0, 0, 0, 255, 0, 0, 0, 0, 255}));
}

TEST(Quantize, StepsThatFit16BitsAreClampedToo) {
    for (const float steps : {300.0F, 32700.0F, 32767.0F, 32768.0F, 32935.0F, 33023.0F, 33024.0F,
                              65535.0F, 65536.0F, 65600.0F, 1e6F}) {
        const std::vector<float> both{steps, -steps};
        EXPECT_EQ(quantised(ElementType::uint8, 0, both, 1), (std::vector<int>{255, 0, 255, 0}))
            << steps;
        EXPECT_EQ(quantised(ElementType::int8, 0, both, 1),
                  (std::vector<int>{127, -128, 127, -128}))
            << steps;
    }
}

TEST(Quantize, AZeroPointThatLeaves32BitsWrapsRound) {
    EXPECT_EQ(quantised(ElementType::int8, -3, {-0x1p31F}, 1), (std::vector<int>{127, 127}));
    EXPECT_EQ(quantised(ElementType::uint8, 200, {2147483520.0F}, 1), (std::vector<int>{0, 0}));
}

TEST(Casts, TruncateAndGiveTheLowestForWhatDoesNotFit) {
    Builder builder("cast");
    const auto x = builder.input("x", ElementType::float32, {6});
    const auto y = builder.tensor("y", ElementType::int32, {6});
    builder.add(Op::cast, {x}, {y});
    builder.output(y);
    const std::vector<float> values{1.9F, -1.9F, 1e20F, -1e20F, NAN, 2147483520.0F};
    std::vector<std::byte> input(24);
    std::memcpy(input.data(), values.data(), 24);
    const auto output = run(builder.finish().value(), KernelSet::fast, 1, {input});
    std::vector<std::int32_t> cast(6);
    std::memcpy(cast.data(), output.data(), 24);
    EXPECT_EQ(cast,
              (std::vector<std::int32_t>{1, -1, INT32_MIN, INT32_MIN, INT32_MIN, 2147483520}));
}

}  // namespace
}  // namespace reef::cpu

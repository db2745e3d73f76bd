// Functions of one value in the chip's arithmetic: tables, and lines with a bend.
#include "chip_operator.h"

namespace reef::edgetpu::numerics {
namespace {

using model::Builder;
using model::Op;
using test::pick;
using test::random_bytes;

/// Every byte.
std::vector<std::byte> all_bytes() {
    std::vector<std::byte> bytes(256);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    return bytes;
}

using ChipFunction = ChipOperator;

TEST_P(ChipFunction, LogisticIsTheTableRounded) {
    const Side in{0.0625F, 120}, out{1.0F / 256, 0};
    Builder builder("logistic");
    const auto x = builder.input("x", GetParam(), {256}, quantisation(in));
    const auto y = builder.tensor("y", GetParam(), {256}, quantisation(out));
    builder.add(Op::logistic, {x}, {y});
    const auto input = all_bytes();
    const auto values = run(builder, y, {input});
    ASSERT_EQ(values.size(), 256U);
    for (std::size_t i = 0; i < 256; ++i) {
        const double real = 0.0625 * (on_chip(input[i]) - 120);
        EXPECT_NEAR(values[i], std::min(256 / (1 + std::exp(-real)), 255.0), 0.51) << real;
    }
}

TEST_P(ChipFunction, TanhIsTheTableOfLogisticRounded) {
    const Side in{0.03125F, 120}, out{1.0F / 128, 128};
    Builder builder("tanh");
    const auto x = builder.input("x", GetParam(), {256}, quantisation(in));
    const auto y = builder.tensor("y", GetParam(), {256}, quantisation(out));
    builder.add(Op::tanh, {x}, {y});
    const auto input = all_bytes();
    const auto values = run(builder, y, {input});
    ASSERT_EQ(values.size(), 256U);
    for (std::size_t i = 0; i < 256; ++i) {
        const double real = 0.03125 * (on_chip(input[i]) - 120);
        EXPECT_NEAR(values[i], std::min(128 + 128 * std::tanh(real), 255.0), 0.51) << real;
    }
}

TEST_P(ChipFunction, LeakyReluIsACopyWithASlopeBelowZero) {
    for (const float slope : {0.2F, -0.4F, 1.75F, 0.0F, 1e30F}) {
        const Side in = any_side(), out{in.scale * 0.83F, pick(random_, 0, 255)};
        Builder builder("leaky");
        const auto x = builder.input("x", GetParam(), {256}, quantisation(in));
        const auto y = builder.tensor("y", GetParam(), {256}, quantisation(out));
        builder.add(Op::leaky_relu, {x}, {y}, model::LeakyReluOptions{slope});
        const auto input = all_bytes();
        const auto values = run(builder, y, {input});
        ASSERT_EQ(values.size(), 256U);
        for (std::size_t i = 0; i < 256; ++i) {
            const double steps = on_chip(input[i]) - in.zero;
            const double real = static_cast<double>(in.scale) / static_cast<double>(out.scale) *
                                steps * (steps < 0 ? static_cast<double>(slope) : 1.0);
            EXPECT_NEAR(values[i], std::clamp(out.zero + real, 0.0, 255.0), 0.5001) << slope;
        }
    }
}

TEST_P(ChipFunction, HardSwishIsATableRounded) {
    for (int round = 0; round < 8; ++round) {
        const Side in = any_side(-6, -3), out{in.scale * 0.71F, pick(random_, 0, 255)};
        Builder builder("hard swish");
        const auto x = builder.input("x", GetParam(), {256}, quantisation(in));
        const auto y = builder.tensor("y", GetParam(), {256}, quantisation(out));
        builder.add(Op::hard_swish, {x}, {y});
        const auto input = all_bytes();
        const auto values = run(builder, y, {input});
        ASSERT_EQ(values.size(), 256U);
        for (std::size_t i = 0; i < 256; ++i) {
            const double real = static_cast<double>(in.scale) * (on_chip(input[i]) - in.zero);
            const double expected = real * std::clamp(real + 3, 0.0, 6.0) / 6;
            EXPECT_NEAR(
                values[i],
                std::clamp(out.zero + expected / static_cast<double>(out.scale), 0.0, 255.0),
                0.5001)
                << real;
        }
    }
}

/// Above zero and below it by themselves, each rounded once.
TEST_P(ChipFunction, PreluHasTwoScales) {
    const Side in = any_side(-6, -2), out{in.scale * 1.1F, pick(random_, 0, 255)};
    const Side slopes{0.007F, pick(random_, 0, 255)};
    constexpr std::int32_t channels = 7;
    const auto factors = random_bytes(random_, channels);
    Builder builder("prelu");
    const auto x = builder.input("x", GetParam(), {1, 8, 32, channels}, quantisation(in));
    const auto k =
        builder.constant_bytes("k", GetParam(), {1, 1, channels}, factors, quantisation(slopes));
    const auto y = builder.tensor("y", GetParam(), {1, 8, 32, channels}, quantisation(out));
    builder.add(Op::prelu, {x, k}, {y});
    const auto input = random_bytes(random_, 8UL * 32 * channels);
    const auto values = run(builder, y, {input});
    ASSERT_EQ(values.size(), input.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int32_t steps = on_chip(input[i]) - in.zero;
        const std::int32_t factor = on_chip(factors[i % channels]) - slopes.zero;
        const float inverse = 1.0F / out.scale;
        const auto expected =
            steps >= 0 ? requantise(steps, in.scale * inverse, out)
                       : requantise(steps * factor, in.scale * slopes.scale * inverse, out);
        ASSERT_EQ(values[i], expected) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Types, ChipFunction,
                         testing::Values(ElementType::uint8, ElementType::int8),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace reef::edgetpu::numerics

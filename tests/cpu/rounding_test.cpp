// Vectorised kernels compute in float32 or fixed point first, and in the integers that define a
// result only where that may round another way. Here is where it may: sums right beside the middle
// between two values, and every pair of elements.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "cpu/run_model.h"
#include "cpu/simd_targets.h"

namespace reef::test {
namespace {

using model::Builder;
using model::Op;

constexpr ElementType signs[] = {ElementType::uint8, ElementType::int8};

void expect_plain_bytes(const model::Model& model,
                        const std::vector<std::vector<std::byte>>& inputs) {
    const auto plain = run_model(model, inputs);
    ASSERT_FALSE(plain.empty());
    on_every_target([&] { ASSERT_EQ(run_model(model, inputs, cpu::KernelSet::fast, 1), plain); });
}

/// Biases whose scaled value is half a step beside an integer, and one to four sums from there; far
/// ones and the largest.
std::vector<std::int32_t> biases_beside_steps(std::mt19937& random, double scale,
                                              std::size_t count) {
    std::vector<std::int32_t> biases(count);
    for (std::int32_t& bias : biases) {
        const double step = pick(random, -300, 300) + 0.5;
        const double sum = std::round(step / scale) + pick(random, -4, 4);
        bias = static_cast<std::int32_t>(std::clamp(sum, -2147483648.0, 2147483647.0));
        if (pick(random, 0, 30) == 0) bias = static_cast<std::int32_t>(random());
    }
    return biases;
}

/// A convolution of one pixel whose sums are its biases; its scale may be above one, a left shift.
/// `taps` in each direction, of a depthwise one.
model::Model sums_alone(std::mt19937& random, Op op, ElementType type, std::int32_t channels,
                        std::int32_t taps) {
    const float input_scale =
        std::ldexp(1.0F + static_cast<float>(pick(random, 0, 999)) / 1000, -6);
    const float weight_scale =
        std::ldexp(1.0F + static_cast<float>(pick(random, 0, 999)) / 1000, pick(random, -20, 4));
    const float output_scale = 0.05F;
    const double scale = static_cast<double>(input_scale) * weight_scale / output_scale;
    const std::int32_t zero = type == ElementType::uint8 ? 120 : 0;
    const auto size = static_cast<std::size_t>(channels);
    const bool depthwise = op == Op::depthwise_conv_2d;
    const auto count = depthwise ? size * static_cast<std::size_t>(taps * taps) : size;
    Builder builder("sums");
    const auto input = builder.input("in", type, {1, 1, 1, depthwise ? channels : 1},
                                     model::per_tensor(input_scale, zero));
    const auto weights =
        builder.constant_bytes("weights", type,
                               depthwise ? std::vector<std::int32_t>{1, taps, taps, channels}
                                         : std::vector<std::int32_t>{channels, 1, 1, 1},
                               std::vector<std::byte>(count, static_cast<std::byte>(zero)),
                               model::per_tensor(weight_scale, zero));
    const auto bias = builder.constant<std::int32_t>("bias", ElementType::int32, {channels},
                                                     biases_beside_steps(random, scale, size));
    const auto output = builder.tensor("out", type, {1, 1, 1, channels},
                                       model::per_tensor(output_scale, pick(random, 0, 100)));
    if (depthwise)
        builder.add(
            op, {input, weights, bias}, {output},
            model::DepthwiseConv2dOptions{.stride_h = 1, .stride_w = 1, .depth_multiplier = 1});
    else
        builder.add(op, {input, weights, bias}, {output},
                    model::Conv2dOptions{.stride_h = 1, .stride_w = 1});
    builder.output(output);
    auto model = builder.finish();
    EXPECT_TRUE(model) << model.error().message();
    return std::move(*model);
}

class Rounding : public testing::TestWithParam<Op> {};

TEST_P(Rounding, OfSumsBesideAStepIsThePlainKernels) {
    std::mt19937 random(31);
    for (int round = 0; round < 60; ++round) {
        const auto model =
            sums_alone(random, GetParam(), signs[round % 2], 512, round % 4 < 2 ? 3 : 1);
        const auto bytes = static_cast<std::size_t>(*model.subgraphs[0].tensors[0].byte_count());
        SCOPED_TRACE(round);
        ASSERT_NO_FATAL_FAILURE(expect_plain_bytes(model, {random_bytes(random, bytes)}));
    }
}

INSTANTIATE_TEST_SUITE_P(Convolutions, Rounding,
                         testing::Values(Op::conv_2d, Op::depthwise_conv_2d), [](const auto& of) {
                             return of.param == Op::conv_2d ? "conv_2d" : "depthwise_conv_2d";
                         });

class EveryPair : public testing::TestWithParam<Op> {};

/// Of two bytes, at random scales: near each other, far apart, and such that results are far out.
TEST_P(EveryPair, OfElementsGivesThePlainKernelsByte) {
    std::mt19937 random(32);
    const std::vector<std::int32_t> shape{256, 256};
    std::vector<std::byte> rows(65536), columns(65536);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<std::byte>(i / 256);
        columns[i] = static_cast<std::byte>(i % 256);
    }
    // Of products in float32 few are as far off as they may be.
    const int quantisations = GetParam() == Op::mul ? 1500 : 120;
    for (int round = 0; round < quantisations; ++round) {
        const ElementType type = signs[round % 2];
        const int spread = round % 4 == 0 ? 1 : round % 4 == 1 ? 8 : 2;
        const auto numbers = [&] {
            const float scale = std::ldexp(1.0F + static_cast<float>(pick(random, 0, 999)) / 1000,
                                           pick(random, -spread, spread) - 4);
            return model::per_tensor(round % 5 == 0 ? 0.125F : scale,
                                     pick(random, 0, 255) - (type == ElementType::int8 ? 128 : 0));
        };
        Builder builder("pairs");
        auto numbers_of_a = numbers(), numbers_of_b = numbers(), numbers_of_out = numbers();
        // Odd steps of b are beside the middle of two of the output's.
        if (round % 5 == 1)
            numbers_of_b.scale[0] = numbers_of_out.scale[0] *
                                    (static_cast<float>(pick(random, 0, 2)) + 0.5F) *
                                    (1.0F + std::ldexp(1.0F, -pick(random, 8, 22)));
        // Many sums are in the middle, of scales that are small multiples of each other.
        if (round % 5 == 2) {
            numbers_of_b.scale[0] = 0.01F * static_cast<float>(pick(random, 1, 9));
            numbers_of_a.scale[0] = 0.01F * static_cast<float>(pick(random, 1, 9));
            numbers_of_out.scale[0] = 0.01F * static_cast<float>(pick(random, 1, 16));
        }
        // Every shift to the right that there is; products with one to the left, too, some of which
        // wrap.
        if (round % 5 == 3) {
            const bool a_is_small = pick(random, 0, 1) == 0;
            numbers_of_a.scale[0] = std::ldexp(0.01F, a_is_small ? -pick(random, 0, 33) : 0);
            numbers_of_b.scale[0] = std::ldexp(0.01F, a_is_small ? 0 : -pick(random, 0, 33));
            numbers_of_out.scale[0] =
                GetParam() == Op::mul ? std::ldexp(numbers_of_a.scale[0] * numbers_of_b.scale[0],
                                                   pick(random, -20, 33))
                                      : std::ldexp(0.01F, pick(random, 1, 13));
        }
        const auto a = builder.input("a", type, shape, numbers_of_a);
        const auto b = builder.input("b", type, shape, numbers_of_b);
        const auto out = builder.tensor("out", type, shape, numbers_of_out);
        if (GetParam() == Op::add)
            builder.add(Op::add, {a, b}, {out}, model::AddOptions{});
        else if (GetParam() == Op::sub)
            builder.add(Op::sub, {a, b}, {out}, model::SubOptions{});
        else
            builder.add(Op::mul, {a, b}, {out}, model::MulOptions{});
        builder.output(out);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(round);
        ASSERT_NO_FATAL_FAILURE(expect_plain_bytes(*model, {rows, columns}));
    }
}

INSTANTIATE_TEST_SUITE_P(Operators, EveryPair, testing::Values(Op::add, Op::sub, Op::mul),
                         [](const auto& of) {
                             return of.param == Op::add   ? "add"
                                    : of.param == Op::sub ? "sub"
                                                          : "mul";
                         });

}  // namespace
}  // namespace reef::test

// Sums that a convolution computes, against their definition in floating point.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "reef/model/builder.h"
#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"

namespace reef {
namespace {

constexpr float in_scale = 0.02F, weight_scale = 0.01F, other_scale = 0.03F;
constexpr std::int32_t in_zero = 120, weight_zero = 131, other_zero = 110, out_zero = 90;

/// sum(in * weights) + other, all uint8; a kernel of one pixel.
struct FusedLayer {
    std::int32_t height = 0, width = 0, channels = 0, out_channels = 0;
    bool relu = false;
    float out_scale = 0;
    std::vector<std::byte> weights;
    std::vector<std::int32_t> biases;

    [[nodiscard]] model::Model model() const {
        using model::per_tensor;
        model::Builder b("a sum");
        const std::vector<std::int32_t> shape{1, height, width, out_channels};
        const auto in = b.input("in", ElementType::uint8, {1, height, width, channels},
                                per_tensor(in_scale, in_zero));
        const auto other =
            b.input("other", ElementType::uint8, shape, per_tensor(other_scale, other_zero));
        const auto w = b.constant_bytes("w", ElementType::uint8, {out_channels, 1, 1, channels},
                                        weights, per_tensor(weight_scale, weight_zero));
        const auto bias =
            b.constant<std::int32_t>("bias", ElementType::int32, {out_channels}, biases);
        const auto conv = b.tensor("conv", ElementType::uint8, shape, per_tensor(out_scale, 128));
        const auto out =
            b.tensor("out", ElementType::uint8, shape, per_tensor(out_scale, out_zero));
        b.add(model::Op::conv_2d, {in, w, bias}, {conv},
              model::Conv2dOptions{.padding = model::Padding::valid, .stride_h = 1, .stride_w = 1});
        b.add(model::Op::add, {other, conv}, {out},
              model::AddOptions{.activation =
                                    relu ? model::Activation::relu : model::Activation::none});
        b.output(out);
        auto done = b.finish();
        EXPECT_TRUE(done) << done.error().message();
        return std::move(*done);
    }
};

FusedLayer layer_of(unsigned seed) {
    std::mt19937 random(seed);
    const auto any = [&](unsigned low, unsigned high) {
        return static_cast<std::int32_t>(low + random() % (high - low + 1));
    };
    FusedLayer layer;
    // The last ones take several tasks.
    layer.height = seed % 4 == 3 ? 150 : any(3, 20);
    layer.width = seed % 4 == 3 ? 61 : any(4, 20);
    layer.channels = any(1, 70);
    layer.out_channels = any(1, 70);
    layer.relu = random() % 2 == 0;
    layer.out_scale =
        static_cast<float>(0.02 * 0.01 * 80 * std::sqrt(layer.channels)) + other_scale;
    for (std::int32_t i = 0; i < layer.channels * layer.out_channels; ++i)
        layer.weights.push_back(static_cast<std::byte>(random()));
    for (std::int32_t i = 0; i < layer.out_channels; ++i)
        layer.biases.push_back(any(0, 4000) - 2000);
    return layer;
}

std::vector<std::byte> bytes_from(unsigned seed, std::size_t count) {
    std::mt19937 random(seed);
    std::vector<std::byte> out(count);
    for (std::byte& b : out) b = static_cast<std::byte>(random());
    return out;
}

std::int32_t definition(const FusedLayer& layer, Bytes in, Bytes other, std::size_t at) {
    const auto n = [](std::byte b) { return std::to_integer<std::int32_t>(b); };
    const auto outs = static_cast<std::size_t>(layer.out_channels);
    const auto ins = static_cast<std::size_t>(layer.channels);
    const std::size_t pixel = at / outs, channel = at % outs;
    std::int32_t sum = layer.biases[channel];
    for (std::size_t i = 0; i < ins; ++i)
        sum += (n(in[pixel * ins + i]) - in_zero) *
               (n(layer.weights[channel * ins + i]) - weight_zero);
    const double real = sum * double{in_scale} * double{weight_scale} +
                        (n(other[at]) - other_zero) * double{other_scale};
    const double stored = std::nearbyint(real / double{layer.out_scale}) + out_zero;
    return static_cast<std::int32_t>(std::clamp<double>(stored, layer.relu ? out_zero : 0, 255));
}

class FusedSums : public testing::TestWithParam<rk3588::Options::Requant> {};

TEST_P(FusedSums, AreTheirDefinitionButForFewBytes) {
    std::size_t equal = 0, all = 0, tasks = 0;
    for (unsigned seed = 0; seed < 24; ++seed) {
        const FusedLayer layer = layer_of(seed);
        rk3588::Options numbers;
        numbers.requant = GetParam();
        numbers.fuse_sums = true;
        const auto compiled = rk3588::compile(layer.model(), numbers, {});
        ASSERT_TRUE(compiled) << compiled.error().message();
        for (const auto& op : compiled->operators)
            ASSERT_TRUE(op.on_chip) << op.name << ": " << op.reason;
        ASSERT_EQ(compiled->programs.at(0).fused_sums, 1U);
        const auto artifact = test::programs_of(compiled->model).at(0);
        ASSERT_EQ(artifact.operators.size(), 1U);
        tasks = std::max(tasks, artifact.tasks.size());
        test::ChipMemory chip(artifact);
        const auto in = bytes_from(seed + 100, artifact.inputs[0].elements());
        const auto other = bytes_from(seed + 200, artifact.inputs[1].elements());
        chip.write(artifact.inputs[0], in);
        chip.write(artifact.inputs[1], other);
        const auto done = chip.run(artifact.operators[0]);
        ASSERT_TRUE(done) << done.error().message();
        const auto got = chip.read(artifact.outputs[0]);
        for (std::size_t i = 0; i < got.size(); ++i, ++all) {
            const auto off = std::to_integer<int>(got[i]) - definition(layer, in, other, i);
            ASSERT_LE(std::abs(off), 1) << seed << " " << i;
            equal += off == 0 ? 1 : 0;
        }
        EXPECT_EQ(compiled->programs[0].operators[0].bytes.total(), chip.traffic().total());
    }
    const double share = static_cast<double>(equal) / static_cast<double>(all);
    fmt::print("{} of {} bytes equal ({:.3f} %), up to {} tasks\n", equal, all, 100 * share, tasks);
    // The product's first rounding costs some where there are two.
    EXPECT_GE(share, GetParam() == rk3588::Options::Requant::exact ? 0.999 : 0.97);
    EXPECT_GT(tasks, 1U);
}

INSTANTIATE_TEST_SUITE_P(Roundings, FusedSums,
                         testing::Values(rk3588::Options::Requant::tflite,
                                         rk3588::Options::Requant::exact),
                         [](const auto& each) {
                             return each.param == rk3588::Options::Requant::exact ? "exact"
                                                                                  : "tflite";
                         });

// Readers of the convolution's own result, and activations of it, forbid it.
TEST(FusedSum, IsTheConvolutionsOnlyReader) {
    const FusedLayer layer = layer_of(1);
    auto model = layer.model();
    rk3588::Options numbers;
    numbers.fuse_sums = true;
    auto& graph = model.subgraphs[0];
    auto two = model;
    two.subgraphs[0].outputs.push_back(graph.operators[0].outputs[0]);
    auto relu = model;
    std::get<model::Conv2dOptions>(relu.subgraphs[0].operators[0].options).activation =
        model::Activation::relu;
    for (const auto* other : {&two, &relu}) {
        const auto compiled = rk3588::compile(*other, numbers, {});
        ASSERT_TRUE(compiled) << compiled.error().message();
        EXPECT_EQ(compiled->programs.at(0).fused_sums, 0U);
        EXPECT_EQ(compiled->programs[0].operators.size(), 2U);
    }
}

/// A constant that is taken off, of one channel: the convolution in front of the sum has finer
/// weights than the model's.
TEST(FusedSum, OfAConstantTakenOffIsTheCpus) {
    const std::vector<std::int32_t> shape{1, 9, 11, 1};
    const auto numbers = model::per_tensor(in_scale, in_zero);
    model::Builder b("a constant and a sum");
    const auto in = b.input("in", ElementType::uint8, shape, numbers);
    const auto other = b.input("other", ElementType::uint8, shape, numbers);
    const auto constant =
        b.constant_bytes("constant", ElementType::uint8, {1}, std::vector{std::byte{77}},
                         model::per_tensor(0.013F, 9));
    const auto less = b.tensor("less", ElementType::uint8, shape, numbers);
    const auto out = b.tensor("out", ElementType::uint8, shape, model::per_tensor(0.05F, 90));
    b.add(model::Op::sub, {in, constant}, {less}, model::SubOptions{});
    b.add(model::Op::add, {less, other}, {out}, model::AddOptions{});
    b.output(out);
    const auto plain = b.finish();
    ASSERT_TRUE(plain) << plain.error().message();
    const auto compiled = rk3588::compile(*plain, {.fuse_sums = true}, {.keep_islands = true});
    ASSERT_TRUE(compiled) << compiled.error().message();
    ASSERT_EQ(compiled->programs.at(0).fused_sums, 1U);
    const auto artifact = test::programs_of(compiled->model).at(0);
    test::ChipMemory chip(artifact);
    std::vector<std::byte> inputs[2];
    for (std::size_t i = 0; i < 2; ++i) {
        inputs[i] = bytes_from(static_cast<unsigned>(i) + 1, 99);
        // The difference is not cut off.
        for (std::byte& v : inputs[i]) v |= std::byte{0x80};
        chip.write(artifact.inputs[i], inputs[i]);
    }
    const auto done = chip.run(artifact.operators[0]);
    ASSERT_TRUE(done) << done.error().message();
    const auto got = chip.read(artifact.outputs[0]);
    const auto number = [](std::byte v) { return std::to_integer<int>(v); };
    for (std::size_t i = 0; i < got.size(); ++i) {
        const double real = in_scale * (number(inputs[0][i]) + number(inputs[1][i]) - 2 * in_zero) -
                            0.013 * (77 - 9);
        EXPECT_LE(std::abs(number(got[i]) - std::clamp(90 + real / 0.05, 0.0, 255.0)), 1.0) << i;
    }
}

}  // namespace
}  // namespace reef

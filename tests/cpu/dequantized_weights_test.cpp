// Float32 networks whose files keep their weights in another form: float16, or int8 with a scale
// for each channel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "cpu/one_operator.h"

namespace reef::test {
namespace {

using model::Builder;
using model::Op;
using model::TensorIndex;

constexpr auto single = ElementType::float32;
constexpr auto half = ElementType::float16;

/// The number that 16 bits stand for.
double half_value(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double size =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31)
        size = fraction == 0 ? std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    return (bits & 0x8000) != 0 ? -size : size;
}

TEST(DequantizedWeights, EveryFloat16IsItsFloat32) {
    std::vector<std::uint16_t> halves(65536);
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
    OneOperator one;
    one.input(half, {65536}, halves).output(single, {65536});
    const auto model = one.model(Op::dequantize);
    for (const auto kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast}) {
        const auto outputs = run_model(model, {bytes_of(halves)}, kernels, 2);
        ASSERT_EQ(outputs.size(), 1U);
        const auto floats = values_of<float>(outputs[0]);
        for (std::size_t i = 0; i < floats.size(); ++i) {
            const double want = half_value(halves[i]);
            if (std::isnan(want)) {
                ASSERT_TRUE(std::isnan(floats[i])) << i;
            } else {
                ASSERT_EQ(std::bit_cast<std::uint32_t>(floats[i]),
                          std::bit_cast<std::uint32_t>(static_cast<float>(want)))
                    << i;
            }
        }
    }
}

TEST(DequantizedWeights, ChannelsHaveZeroPointsOfTheirOwn) {
    model::Quantization q = model::per_channel({0.5F, 0.25F}, 1);
    q.zero_point = {1, -2};
    EXPECT_EQ(OneOperator()
                  .input<std::int8_t>(ElementType::int8, {2, 2, 2},
                                      {1, 3, -2, 0, 127, -128, 127, -128}, q)
                  .output(single, {2, 2, 2})
                  .run<float>(Op::dequantize),
              (std::vector<float>{0, 1, 0, 0.5F, 63, -64.5F, 32.25F, -31.5F}));
}

/// How a network's file keeps its weights.
enum class Kept : std::uint8_t { as_float32, as_float16, as_int8 };

/// A small network; its weights are the same numbers however they are kept.
class WeightsNetwork {
  public:
    explicit WeightsNetwork(Kept kept) : kept_(kept) {
        const auto in = builder_.input("in", single, {1, 9, 9, 3});
        const auto wide = builder_.tensor("wide", single, {1, 9, 9, 24});
        builder_.add(Op::conv_2d, {in, weights({24, 3, 3, 3}, 0), weights({24}, 0)}, {wide},
                     model::Conv2dOptions{.stride_h = 1, .stride_w = 1});
        const auto deep = builder_.tensor("deep", single, {1, 5, 5, 24});
        builder_.add(
            Op::depthwise_conv_2d, {wide, weights({1, 3, 3, 24}, 3), weights({24}, 0)}, {deep},
            model::DepthwiseConv2dOptions{.stride_h = 2, .stride_w = 2, .depth_multiplier = 1});
        const auto scaled = builder_.tensor("scaled", single, {1, 5, 5, 24});
        builder_.add(Op::mul, {deep, weights({1, 1, 1, 24}, 3)}, {scaled}, model::MulOptions{});
        const auto large = builder_.tensor("large", single, {1, 10, 10, 8});
        const auto size = builder_.constant<std::int32_t>("size", ElementType::int32, {4},
                                                          std::vector<std::int32_t>{1, 10, 10, 8});
        builder_.add(Op::transpose_conv, {size, weights({8, 2, 2, 24}, 0), scaled}, {large},
                     model::TransposeConvOptions{.stride_h = 2, .stride_w = 2});
        const auto out = builder_.tensor("out", single, {1, 10});
        builder_.add(Op::fully_connected, {large, weights({10, 800}, 0), weights({10}, 0)}, {out},
                     model::FullyConnectedOptions{});
        builder_.output(out);
    }
    [[nodiscard]] model::Model finish() {
        auto model = builder_.finish();
        EXPECT_TRUE(model) << model.error().message();
        return model ? std::move(*model) : model::Model{};
    }
    [[nodiscard]] const std::vector<TensorIndex>& dequantized() const { return dequantized_; }

  private:
    TensorIndex weights(const Shape& shape, std::int32_t axis) {
        std::size_t count = 1;
        for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
        std::vector<std::int8_t> steps(count);
        for (auto& step : steps) step = static_cast<std::int8_t>(pick(random_, -127, 127));
        // Of a power of two: float16 has all of the products.
        const float scale = 1.0F / 64;
        std::vector<float> numbers(count);
        std::vector<std::uint16_t> halves(count);
        for (std::size_t i = 0; i < count; ++i) {
            numbers[i] = scale * static_cast<float>(steps[i]);
            halves[i] = half_of(steps[i]);
        }
        if (kept_ == Kept::as_float32)
            return builder_.constant<float>("weights", single, shape,
                                            std::span<const float>(numbers));
        const auto channels = static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]);
        const auto stored =
            kept_ == Kept::as_float16
                ? builder_.constant<std::uint16_t>("halves", half, shape,
                                                   std::span<const std::uint16_t>(halves))
                : builder_.constant<std::int8_t>(
                      "bytes", ElementType::int8, shape, std::span<const std::int8_t>(steps),
                      model::per_channel(std::vector<float>(channels, scale), axis));
        const auto weights = builder_.tensor("weights", single, shape);
        builder_.add(Op::dequantize, {stored}, {weights});
        return dequantized_.emplace_back(weights);
    }
    /// step / 64
    static std::uint16_t half_of(int step) {
        const auto size = static_cast<std::uint32_t>(std::abs(step));
        if (size == 0) return 0;
        const int exponent = std::bit_width(size) - 1;
        const std::uint32_t fraction = (size << (10 - exponent)) & 1023U;
        const auto biased = static_cast<std::uint32_t>(exponent - 6 + 15);
        return static_cast<std::uint16_t>((step < 0 ? 0x8000U : 0U) | biased << 10 | fraction);
    }

    Kept kept_;
    Builder builder_{"weights"};
    std::mt19937 random_{3};
    std::vector<TensorIndex> dequantized_;
};

TEST(DequantizedWeights, NetworksComputeAsWithFloat32Ones) {
    std::mt19937 random(5);
    std::vector<float> input(243);
    for (float& value : input) value = std::uniform_real_distribution<float>(-1, 1)(random);
    const auto plain = WeightsNetwork(Kept::as_float32).finish();
    for (const Kept kept : {Kept::as_float16, Kept::as_int8}) {
        const auto model = WeightsNetwork(kept).finish();
        for (const auto kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast})
            for (const int threads : {1, 2})
                EXPECT_EQ(run_model(model, {bytes_of(input)}, kernels, threads),
                          run_model(plain, {bytes_of(input)}, kernels, threads));
    }
}

TEST(DequantizedWeights, GoOnceTheyArePacked) {
    WeightsNetwork network(Kept::as_float16);
    const auto model = network.finish();
    const auto executor = on_cpu(model, {});
    ASSERT_TRUE(executor) << executor.error().message();
    std::size_t kept = 0;
    for (const TensorIndex weights : network.dequantized()) {
        const auto& tensor = model.subgraphs[0].tensors[static_cast<std::size_t>(weights)];
        // The factors of MUL are read in every run.
        if (executor->tensor(weights).empty()) continue;
        EXPECT_EQ(tensor.shape, (Shape{1, 1, 1, 24}));
        ++kept;
    }
    EXPECT_EQ(kept, 1U);
    for (const auto& placement : executor->placements()) {
        if (placement.operator_name != "DEQUANTIZE") continue;
        EXPECT_THAT(placement.reason, testing::HasSubstr("computed once"));
    }
    const auto plain = on_cpu(WeightsNetwork(Kept::as_float32).finish(), {});
    ASSERT_TRUE(plain) << plain.error().message();
    EXPECT_EQ(executor->memory().arena_bytes, plain->memory().arena_bytes);
}

TEST(DequantizedWeights, MayBeRearrangedBeforeTheyArePacked) {
    Builder builder("transposed");
    const auto in = builder.input("in", single, {1, 2});
    // 1, 2, 3 and 4, 5, 6
    const auto stored = builder.constant<std::uint16_t>(
        "halves", half, {2, 3},
        std::vector<std::uint16_t>{0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600});
    const auto rows = builder.tensor("rows", single, {2, 3});
    builder.add(Op::dequantize, {stored}, {rows});
    const auto order = builder.constant<std::int32_t>("order", ElementType::int32, {2},
                                                      std::vector<std::int32_t>{1, 0});
    const auto columns = builder.tensor("columns", single, {3, 2});
    builder.add(Op::transpose, {rows, order}, {columns});
    const auto out = builder.tensor("out", single, {1, 3});
    builder.add(Op::fully_connected, {in, columns, model::absent_tensor}, {out},
                model::FullyConnectedOptions{});
    builder.output(out);
    const auto model = builder.finish().value();
    for (const auto kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast}) {
        const auto outputs = run_model(model, {bytes_of(std::vector<float>{1, 10})}, kernels);
        ASSERT_EQ(outputs.size(), 1U);
        EXPECT_EQ(values_of<float>(outputs[0]), (std::vector<float>{41, 52, 63}));
    }
}

TEST(DequantizedWeights, StayReadableWhereAllTensorsAre) {
    WeightsNetwork network(Kept::as_int8);
    const auto model = network.finish();
    auto executor = on_cpu(model, {.keep_all_tensors = true});
    ASSERT_TRUE(executor) << executor.error().message();
    ASSERT_TRUE(executor->run());
    for (const TensorIndex weights : network.dequantized())
        EXPECT_FALSE(executor->tensor(weights).empty());
}

TEST(DequantizedWeights, AreAnOutputLikeAnyOther) {
    EXPECT_EQ(OneOperator()
                  .constant<std::uint16_t>(half, {3}, {0x3C00, 0xC000, 0x3800})
                  .output(single, {3})
                  .run<float>(Op::dequantize),
              (std::vector<float>{1, -2, 0.5F}));
}

}  // namespace
}  // namespace reef::test

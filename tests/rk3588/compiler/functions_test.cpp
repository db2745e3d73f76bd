// Functions of bytes by table, against the CPU's kernels: every byte of every result is theirs.
#include "rk3588/compiler/functions.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "reef/model/builder.h"
#include "reef/runtime/session.h"
#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/random_run.h"

namespace reef {
namespace {

using model::Op;
using testing::HasSubstr;

/// A network of one input, in the making.
class Drawing {
  public:
    Drawing(unsigned seed, std::vector<std::int32_t> shape)
        : type(seed % 2 == 0 ? ElementType::uint8 : ElementType::int8),
          random_(seed),
          shape_(std::move(shape)) {}

    const ElementType type;
    model::Builder builder{"functions"};

    model::Quantization numbers(float scale, std::int64_t zero) const {
        return model::per_tensor(scale, type == ElementType::uint8 ? zero : zero - 128);
    }
    model::Quantization any_numbers(float low, float high) {
        const float share = static_cast<float>(random_() % 10000) / 10000;
        return numbers(low + (high - low) * share, static_cast<std::int64_t>(random_() % 256));
    }
    std::int32_t input() { return builder.input("in", type, shape_, any_numbers(0.01F, 0.1F)); }
    std::int32_t tensor(const model::Quantization& q) {
        return builder.tensor(fmt::format("t{}", made_++), type, shape_, q);
    }
    std::int32_t constant(std::uint8_t value, const model::Quantization& q) {
        return builder.constant_bytes(fmt::format("c{}", made_++), type, {1},
                                      std::vector{static_cast<std::byte>(value)}, q);
    }
    std::uint8_t byte() { return static_cast<std::uint8_t>(random_()); }

  private:
    std::mt19937 random_;
    std::vector<std::int32_t> shape_;
    int made_ = 0;
};

const std::vector<std::int32_t> usual_shape{1, 9, 11, 20};

model::Model function_of(Op op, unsigned seed) {
    Drawing d(seed, usual_shape);
    const auto in = d.input();
    const auto one = d.numbers(1.0F / 256, 0), signed_one = d.numbers(1.0F / 128, 128);
    const auto out = d.tensor(op == Op::logistic ? one
                              : op == Op::tanh   ? signed_one
                                                 : d.any_numbers(0.05F, 0.2F));
    if (op == Op::prelu)
        d.builder.add(op, {in, d.constant(d.byte(), d.any_numbers(0.002F, 0.01F))}, {out});
    else if (op == Op::leaky_relu)
        d.builder.add(op, {in}, {out}, model::LeakyReluOptions{0.1F});
    else
        d.builder.add(op, {in}, {out});
    d.builder.output(out);
    return d.builder.finish().value();
}

/// x * logistic(x).
model::Model silu(unsigned seed, std::vector<std::int32_t> shape = usual_shape) {
    Drawing d(seed, std::move(shape));
    const auto in = d.input();
    const auto share = d.tensor(d.numbers(1.0F / 256, 0));
    const auto out = d.tensor(d.any_numbers(0.01F, 0.1F));
    d.builder.add(Op::logistic, {in}, {share});
    d.builder.add(Op::mul, {in, share}, {out}, model::MulOptions{});
    d.builder.output(out);
    return d.builder.finish().value();
}

/// x * relu6(x + 3) / 6, as networks that have no HARD_SWISH write it.
model::Model hard_swish_of_parts(unsigned seed) {
    Drawing d(seed, usual_shape);
    const auto in = d.builder.input("in", d.type, usual_shape, d.numbers(0.05F, 100));
    const auto six = d.tensor(d.numbers(0.05F, 0));
    const auto product = d.tensor(d.numbers(0.2F, 10));
    const auto out = d.tensor(d.numbers(0.04F, 10));
    d.builder.add(Op::add, {in, d.constant(60, d.numbers(0.05F, 0))}, {six},
                  model::AddOptions{.activation = model::Activation::relu6});
    d.builder.add(Op::mul, {in, six}, {product}, model::MulOptions{});
    d.builder.add(Op::mul, {product, d.constant(200, d.numbers(1.0F / 1200, 0))}, {out},
                  model::MulOptions{});
    d.builder.output(out);
    return d.builder.finish().value();
}

/// All of it on the chip, in so many operators.
void expect_tflites(const model::Model& plain, std::size_t operators, std::int32_t cores = 1) {
    const auto compiled =
        rk3588::compile(plain, {.assume_lut = true, .cores = cores}, {.keep_islands = true});
    ASSERT_TRUE(compiled) << compiled.error().message();
    for (const auto& op : compiled->operators) EXPECT_TRUE(op.on_chip) << op.name << op.reason;
    EXPECT_EQ(test::programs_of(compiled->model).at(0).operators.size(), operators);
    for (const char* device :
         {"rk3588:sim", "rk3588:sim?interpolation=down", "rk3588:sim?output_rounding=away",
          "rk3588:rknpu?kernel=simulated&start=chain", "rk3588:rocket?kernel=simulated"})
        EXPECT_EQ(test::run_on(compiled->model, device, 5), test::run_on(plain, "cpu", 5))
            << device;
}

TEST(NpuFunctions, AreTflitesByteByByte) {
    for (const Op op : {Op::logistic, Op::tanh, Op::hard_swish, Op::leaky_relu, Op::prelu})
        for (unsigned seed = 0; seed < 12; ++seed) {
            SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(op), seed));
            expect_tflites(function_of(op, seed), 1);
        }
}

TEST(NpuFunctions, OfSeveralOperatorsAreOneTable) {
    for (unsigned seed = 0; seed < 12; ++seed) {
        SCOPED_TRACE(seed);
        expect_tflites(silu(seed), 1, static_cast<std::int32_t>(1 + seed % 3));
        expect_tflites(hard_swish_of_parts(seed), 1);
    }
}

/// Shapes whose last atom has lanes that no channel fills, and cores with one surface each.
TEST(NpuFunctions, OfOddShapesAreTflites) {
    for (const auto& shape : std::vector<std::vector<std::int32_t>>{
             {1, 3, 4, 1}, {1, 1, 12, 40}, {1, 40, 3, 17}, {1, 20, 20, 64}})
        expect_tflites(silu(1, shape), 1, 3);
}

// A value that something else reads, too, is stored.
TEST(NpuFunctions, OthersReadAreStored) {
    auto model = silu(2);
    model.subgraphs[0].outputs.push_back(model.subgraphs[0].operators[0].outputs[0]);
    const auto compiled = rk3588::compile(model, {.assume_lut = true}, {.keep_islands = true});
    ASSERT_TRUE(compiled) << compiled.error().message();
    const auto artifact = test::programs_of(compiled->model).at(0);
    EXPECT_EQ(artifact.operators.size(), 2U);
    EXPECT_TRUE(artifact.absorbed.empty());
}

TEST(NpuFunctions, AreLeftWithTheirReason) {
    const auto reason_of = [](const model::Model& model, const rk3588::Options& numbers) {
        const auto mapped = rk3588::mapping(model, numbers, {.keep_islands = true});
        EXPECT_TRUE(mapped) << mapped.error().message();
        return mapped->at(0).reason;
    };
    EXPECT_THAT(reason_of(function_of(Op::logistic, 1), {}), HasSubstr("`assume` lut"));
    EXPECT_THAT(reason_of(silu(1, {1, 2, 5, 16}), {.assume_lut = true}),
                HasSubstr("at least 12 pixels"));
    auto slopes = function_of(Op::prelu, 1);
    auto& constant =
        slopes.subgraphs[0]
            .tensors[static_cast<std::size_t>(slopes.subgraphs[0].operators[0].inputs[1])];
    std::vector<std::byte> many(20);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::byte>(i);
    constant.shape = {1, 1, 20};
    slopes.buffers[constant.buffer] = SharedBytes::copy_of(many);
    EXPECT_THAT(reason_of(slopes, {.assume_lut = true}), HasSubstr("more than one slope"));
}

/// Averages of as many pixels as the tables have room for.
TEST(NpuFunctions, QuotientsOfAllCountsUpTo128AreCutOff) {
    for (std::int32_t count = 1; count <= 128; ++count)
        EXPECT_TRUE(rk3588::lowering::truncation_of(count)) << count;
    EXPECT_FALSE(rk3588::lowering::truncation_of(129));
}

/// What the words of a task are: those of vendor tasks but for entries and factors.
TEST(NpuFunctions, HaveTheWordsOfVendorTasks) {
    const auto compiled =
        rk3588::compile(function_of(Op::logistic, 0), {.assume_lut = true}, {.keep_islands = true});
    ASSERT_TRUE(compiled) << compiled.error().message();
    const auto task = task_of(test::programs_of(compiled->model).at(0), 0);
    ASSERT_TRUE(task) << task.error().message();
    using rk3588::register_named;
    const auto& r = task->registers;
    EXPECT_EQ(task->blocks, 0x18U);
    EXPECT_EQ(r.value(register_named("DPU_FEATURE_MODE_CFG")), 0x1e5U);
    EXPECT_EQ(r.value(register_named("DPU_BS_CFG")), 0x53U);
    EXPECT_EQ(r.value(register_named("DPU_BN_CFG")), 0x20040U);
    EXPECT_EQ(r.value(register_named("DPU_EW_CFG")), 0x302U);
    EXPECT_EQ(r.value(register_named("DPU_LUT_CFG")), 0x68U);
    EXPECT_EQ(r.value(register_named("DPU_LUT_INFO")), 0x50500U);
    EXPECT_EQ(r.value(register_named("DPU_LUT_LE_START")), 0xffffc000U);
    EXPECT_EQ(r.value(register_named("DPU_LUT_LE_END")), 0U);
    EXPECT_EQ(r.value(register_named("DPU_LUT_LO_START")), 0U);
    EXPECT_EQ(r.value(register_named("DPU_LUT_LO_END")), 0x4000U);
    EXPECT_EQ(task->tables.size(), 2 * 513U);
    EXPECT_EQ(task->tables.front().table, 0);
    EXPECT_EQ(task->tables.back().entry, 512);
}

}  // namespace
}  // namespace reef

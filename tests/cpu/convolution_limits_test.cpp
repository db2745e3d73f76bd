// CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED: how large packed weights may be, which of them
// are others', and what the kernels refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpu/one_convolution.h"
#include "cpu/run_kernel.h"
#include "cpu/simd_targets.h"

namespace reef::cpu::one_convolution {
namespace {

TEST(Convolution, FewOutputsOfLongRowsArePackedInHardlyMoreThanTheirBytes) {
    for (const std::int32_t outputs : {1, 3, 7, 37}) {
        Case c;
        c.op = Op::fully_connected;
        c.input = {1, 9440};
        c.filter = {outputs, 9440};
        c.output = {1, outputs};
        c.weight_scales = {1};
        c.options = model::FullyConnectedOptions{};
        const model::Model model = build(c);
        test::on_every_target([&] {
            const auto kernel = prepare(model, {});
            ASSERT_TRUE(kernel) << kernel.error().message();
            EXPECT_LE((*kernel)->packed_bytes(), 9440 * static_cast<std::size_t>(outputs) * 11 / 10)
                << outputs << " outputs";
        });
    }
}

/// A valid 1x1 convolution to spoil.
Case small_case(Op op = Op::conv_2d) {
    Case c;
    c.op = op;
    c.input = {1, 2, 2, 4};
    c.output = {1, 2, 2, 4};
    c.filter = op == Op::conv_2d ? std::vector<std::int32_t>{4, 1, 1, 4}
                                 : std::vector<std::int32_t>{1, 1, 1, 4};
    c.weight_scales = {1};
    c.options = model::Conv2dOptions{.stride_h = 1, .stride_w = 1};
    if (op == Op::depthwise_conv_2d)
        c.options = model::DepthwiseConv2dOptions{.stride_h = 1, .stride_w = 1};
    return c;
}

std::string refusal(const Case& c, const auto& spoil) {
    model::Model model = build(c);
    spoil(model);
    const auto kernel = prepare(model, {});
    EXPECT_FALSE(kernel);
    return kernel ? "" : kernel.error().what;
}

Case few_channels(ElementType type, std::vector<std::int32_t> filter, std::int64_t weight_zero) {
    Case c;
    c.type = type;
    c.input = {1, 8, 64, filter[3]};
    c.output = {1, 8, 64, filter[0]};
    c.filter = std::move(filter);
    c.options = model::Conv2dOptions{.padding = model::Padding::same, .stride_h = 1, .stride_w = 1};
    c.weight_scales = {0.01F};
    c.input_zero = 3;
    c.weight_zero = weight_zero;
    c.input_scale = 0.05F;
    c.output_scale = 0.1F;
    // One that all results are beyond would hide everything else.
    c.with_bias = false;
    c.seed = 7;
    return c;
}

Case few_outputs(std::int64_t weight_zero) {
    Case c = few_channels(ElementType::int8, {2, 1, 1, 12}, weight_zero);
    c.op = Op::fully_connected;
    c.input = {64, 12};
    c.filter = {2, 12};
    c.output = {64, 2};
    c.options = model::FullyConnectedOptions{};
    return c;
}

/// The second while the first holds its packed weights.
void compare_behind_another(const Case& first, const Case& second) {
    SCOPED_TRACE(first.text() + ", then " + second.text());
    const model::Model model = build(first), other = build(second);
    const auto input_of = [](const Case& c) {
        std::size_t count = 1;
        for (const std::int32_t length : c.input) count *= static_cast<std::size_t>(length);
        return Random(c.seed + 1).bytes(count);
    };
    WorkerPool one(1);
    const auto first_input = input_of(first), input = input_of(second);
    const auto expected = run(other, input, {.kernels = KernelSet::reference}, one);
    test::on_every_target([&] {
        const auto held = prepare(model, {});
        ASSERT_TRUE(held) << held.error().message();
        test::run_kernel(**held, model, std::as_bytes(std::span(first_input)), one);
        EXPECT_EQ(run(other, input, {}, one), expected);
    });
}

// Joined weights are those of an operator at places and among zero points that are not theirs
// alone.
TEST(Convolution, EqualWeightsOfOtherConvolutionsAreJoinedAnew) {
    constexpr auto u8 = ElementType::uint8, i8 = ElementType::int8;
    const std::pair<Case, Case> pairs[] = {
        {few_channels(u8, {1, 1, 1, 3}, 128), few_channels(u8, {1, 1, 1, 3}, 100)},
        {few_channels(u8, {1, 3, 3, 3}, 0), few_channels(u8, {1, 3, 3, 3}, 255)},
        {few_outputs(0), few_outputs(5)},
        {few_channels(i8, {1, 1, 3, 3}, 0), few_channels(i8, {1, 3, 3, 1}, 0)},
        {few_channels(i8, {1, 1, 1, 16}, 0), few_channels(i8, {1, 2, 1, 8}, 0)},
        {few_channels(i8, {2, 1, 1, 16}, 0), few_channels(i8, {1, 1, 1, 32}, 0)},
    };
    for (const auto& [a, b] : pairs) {
        compare_behind_another(a, b);
        compare_behind_another(b, a);
    }
}

TEST(Convolution, GroupsRunOnTheReferenceKernel) {
    Case c = small_case();
    c.filter = {4, 1, 1, 2};
    compare_kernels(c, nullptr);
    const auto kernel = prepare(build(c), {.kernels = KernelSet::fast});
    ASSERT_TRUE(kernel);
    EXPECT_EQ((*kernel)->name(), "conv_2d reference");
}

TEST(Convolution, RefusalsNameTheReason) {
    const auto tensor = [](std::size_t index, const auto& change) {
        return [=](model::Model& model) { change(model.subgraphs[0].tensors[index]); };
    };
    const auto as_float = tensor(0, [](model::Tensor& t) { t.type = ElementType::float32; });
    EXPECT_THAT(refusal(small_case(), as_float), testing::HasSubstr("float32"));
    EXPECT_THAT(refusal(small_case(Op::depthwise_conv_2d), as_float),
                testing::HasSubstr("float32"));
    const auto as_int16 = tensor(0, [](model::Tensor& t) { t.type = ElementType::int16; });
    EXPECT_THAT(refusal(small_case(), as_int16), testing::HasSubstr("int16"));
    const auto no_data = tensor(1, [](model::Tensor& t) { t.buffer = 0; });
    EXPECT_THAT(refusal(small_case(), no_data), testing::HasSubstr("computed at run time"));
    const auto wrong_depth = tensor(0, [](model::Tensor& t) { t.shape = {1, 2, 2, 3}; });
    EXPECT_THAT(refusal(small_case(), wrong_depth), testing::HasSubstr("do not fit"));
    const auto wrong_output = tensor(3, [](model::Tensor& t) { t.shape = {1, 2, 1, 4}; });
    EXPECT_THAT(refusal(small_case(), wrong_output), testing::HasSubstr("1x2x2x4"));
    Case symmetric = small_case();
    symmetric.type = ElementType::int8;
    symmetric.weight_zero = 3;
    EXPECT_THAT(refusal(symmetric, [](model::Model&) {}), testing::HasSubstr("zero point 3"));
    Case still = small_case();
    still.options = model::Conv2dOptions{.stride_h = 0, .stride_w = 1};
    EXPECT_THAT(refusal(still, [](model::Model&) {}), testing::HasSubstr("stride 0"));
    Case tanh = small_case();
    tanh.options =
        model::Conv2dOptions{.stride_h = 1, .stride_w = 1, .activation = model::Activation::tanh};
    EXPECT_THAT(refusal(tanh, [](model::Model&) {}), testing::HasSubstr("TANH"));
}

}  // namespace
}  // namespace reef::cpu::one_convolution

// CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED: random operators through the
// reference and the fast kernels, every byte, on every SIMD target of this machine.
#include <gtest/gtest.h>

#include "cpu/one_convolution.h"
#include "cpu/simd_targets.h"
#include "reef/edgetpu/numerics.h"

namespace reef::cpu::one_convolution {
namespace {

std::int32_t output_length(std::int32_t in, std::int32_t taps, std::int32_t stride,
                           std::int32_t dilation, model::Padding padding) {
    if (padding == model::Padding::same) return (in + stride - 1) / stride;
    return (in - ((taps - 1) * dilation + 1)) / stride + 1;
}

void random_arithmetic(Random& random, Case& c) {
    c.type = random.one_of({ElementType::uint8, ElementType::int8});
    const std::int32_t low = c.type == ElementType::uint8 ? 0 : -128;
    const auto zero = [&] { return random.chance(20) ? low : random.between(low, low + 255); };
    c.input_zero = zero();
    c.output_zero = zero();
    if (c.type == ElementType::uint8 || c.op == Op::fully_connected) c.weight_zero = zero();
    c.with_bias = random.chance(80);
    c.input_scale = random.scale(-8, -4);
    // Mostly sums that fit, now and then multipliers far below and above 1.
    c.output_scale = random.chance(70) ? random.scale(-4, 2) : random.scale(-20, 12);
    c.weight_scales = {random.scale(-8, -4)};
    if (c.type == ElementType::int8 && random.chance(60)) {
        c.weight_zero = 0;
        c.weight_scales.resize(static_cast<std::size_t>(c.output.back()));
        for (float& scale : c.weight_scales) scale = random.scale(-12, -2);
    }
}

/// Of those that the arithmetic has.
model::Activation random_activation(Random& random, const Arithmetic* arithmetic) {
    const auto activation =
        random.one_of({model::Activation::none, model::Activation::none, model::Activation::relu,
                       model::Activation::relu6, model::Activation::relu_n1_to_1});
    const bool known = arithmetic == nullptr || activation != model::Activation::relu_n1_to_1;
    return known ? activation : model::Activation::none;
}

Case random_convolution(std::uint64_t seed, Op op, const Arithmetic* arithmetic) {
    Random random(seed);
    Case c;
    c.op = op;
    c.seed = seed;
    const auto channels = [&] {
        return random.chance(50) ? random.between(1, 20)
                                 : random.one_of({8, 16, 24, 32, 33, 40, 48, 64, 70, 96, 129});
    };
    std::int32_t in_channels = channels();
    std::int32_t out_channels = channels();
    if (op == Op::depthwise_conv_2d) {
        const std::int32_t multiplier = random.chance(70) ? 1 : random.between(2, 9);
        if (arithmetic != nullptr && multiplier > 1) in_channels = 1;
        out_channels = in_channels * multiplier;
    }
    const bool pointwise = op == Op::conv_2d && random.chance(30);
    const std::int32_t taps_h = pointwise ? 1 : random.between(1, random.chance(80) ? 3 : 7);
    const std::int32_t taps_w = pointwise ? 1 : random.chance(70) ? taps_h : random.between(1, 5);
    const std::int32_t stride_h = random.one_of({1, 1, 2, 3});
    const std::int32_t stride_w = random.chance(80) ? stride_h : random.between(1, 4);
    const std::int32_t dilation_h = random.chance(75) ? 1 : random.between(1, 4);
    const std::int32_t dilation_w = random.chance(75) ? dilation_h : random.between(1, 4);
    const auto padding = random.one_of({model::Padding::same, model::Padding::valid});
    const std::int32_t least_h =
        padding == model::Padding::valid ? (taps_h - 1) * dilation_h + 1 : 1;
    const std::int32_t least_w =
        padding == model::Padding::valid ? (taps_w - 1) * dilation_w + 1 : 1;
    c.input = {random.between(1, 2), least_h + random.between(0, 12),
               least_w + random.between(0, 12), in_channels};
    c.output = {c.input[0], output_length(c.input[1], taps_h, stride_h, dilation_h, padding),
                output_length(c.input[2], taps_w, stride_w, dilation_w, padding), out_channels};
    random_arithmetic(random, c);
    const auto activation = random_activation(random, arithmetic);
    if (op == Op::conv_2d) {
        c.filter = {out_channels, taps_h, taps_w, in_channels};
        c.options = model::Conv2dOptions{.padding = padding,
                                         .stride_h = stride_h,
                                         .stride_w = stride_w,
                                         .dilation_h = dilation_h,
                                         .dilation_w = dilation_w,
                                         .activation = activation};
    } else {
        c.filter = {1, taps_h, taps_w, out_channels};
        c.options = model::DepthwiseConv2dOptions{.padding = padding,
                                                  .stride_h = stride_h,
                                                  .stride_w = stride_w,
                                                  .dilation_h = dilation_h,
                                                  .dilation_w = dilation_w,
                                                  .depth_multiplier = out_channels / in_channels,
                                                  .activation = activation};
    }
    return c;
}

/// The output has the sizes that a convolution's input has, and the input those of its output.
Case random_transpose_conv(std::uint64_t seed) {
    Random random(seed);
    Case c;
    c.op = Op::transpose_conv;
    c.seed = seed;
    const auto channels = [&] {
        return random.chance(60) ? random.between(1, 20) : random.one_of({24, 32, 33, 64, 70});
    };
    const std::int32_t in_channels = channels(), out_channels = channels();
    const std::int32_t taps_h = random.between(1, 5);
    const std::int32_t taps_w = random.chance(70) ? taps_h : random.between(1, 5);
    // Above the taps it leaves gaps.
    const std::int32_t stride_h = random.one_of({1, 2, 2, 3});
    const std::int32_t stride_w = random.chance(80) ? stride_h : random.between(1, 4);
    const auto padding = random.one_of({model::Padding::same, model::Padding::valid});
    c.output = {random.between(1, 2), taps_h + random.between(0, 10),
                taps_w + random.between(0, 20), out_channels};
    c.input = {c.output[0], output_length(c.output[1], taps_h, stride_h, 1, padding),
               output_length(c.output[2], taps_w, stride_w, 1, padding), in_channels};
    c.filter = {out_channels, taps_h, taps_w, in_channels};
    random_arithmetic(random, c);
    c.options =
        model::TransposeConvOptions{.padding = padding, .stride_h = stride_h, .stride_w = stride_w};
    return c;
}

Case random_fully_connected(std::uint64_t seed, const Arithmetic* arithmetic) {
    Random random(seed);
    Case c;
    c.op = Op::fully_connected;
    c.seed = seed;
    const std::int32_t depth =
        random.chance(90) ? random.between(1, 150) : random.between(1000, 3000);
    const std::int32_t rows = random.between(1, 4);
    const std::int32_t columns = random.between(1, 20);
    c.filter = {random.between(1, 140), depth};
    const bool keep = random.chance(40);
    c.input = {rows, columns, depth};
    c.output = {rows * columns, c.filter[0]};
    if (keep) c.output = {rows, columns, c.filter[0]};
    random_arithmetic(random, c);
    c.options = model::FullyConnectedOptions{.activation = random_activation(random, arithmetic),
                                             .keep_num_dims = keep};
    return c;
}

constexpr std::uint64_t cases = 500;

// Otherwise the comparisons would leave out the kernels that users get.
TEST(Convolution, TheTestedTargetsIncludeTheOneInUse) {
    const std::string in_use(simd_target());
    bool found = false;
    test::on_every_target([&] { found = found || simd_target() == in_use; });
    EXPECT_TRUE(found) << in_use;
}

class FastConvolution : public testing::TestWithParam<const Arithmetic*> {};

TEST_P(FastConvolution, Conv2dEqualsTheReference) {
    for (std::uint64_t seed = 0; seed < cases && !HasFailure(); ++seed)
        compare_kernels(random_convolution(seed, Op::conv_2d, GetParam()), GetParam());
}

TEST_P(FastConvolution, DepthwiseConv2dEqualsTheReference) {
    for (std::uint64_t seed = 0; seed < cases && !HasFailure(); ++seed)
        compare_kernels(random_convolution(seed, Op::depthwise_conv_2d, GetParam()), GetParam());
}

/// Of a case with an input and a filter. Weights differ from their zero by up to 9 bits.
void complete_depthwise(Random& random, model::DepthwiseConv2dOptions options, Case& c) {
    options.depth_multiplier = 1;
    const std::int32_t h = c.filter[1], w = c.filter[2];
    c.output = {c.input[0],
                output_length(c.input[1], h, options.stride_h, options.dilation_h, options.padding),
                output_length(c.input[2], w, options.stride_w, options.dilation_w, options.padding),
                c.filter[3]};
    c.options = options;
    c.weight_zero = 0;
    random_arithmetic(random, c);
    if (c.type == ElementType::uint8) c.weight_zero = random.one_of({0, 1, 100, 128, 254, 255});
}

/// Kernels of 3 x 3 of as many channels as fill blocks of four vectors, some or none, and of runs
/// that are one row of bytes (cpu/fast/depthwise_product.h).
TEST_P(FastConvolution, DepthwiseOf3x3OfAnyChannelsEqualsTheReference) {
    for (std::uint64_t seed = 0; seed < 600 && !HasFailure(); ++seed) {
        Case c = random_convolution(seed, Op::depthwise_conv_2d, GetParam());
        auto options = std::get<model::DepthwiseConv2dOptions>(c.options);
        Random random(seed);
        const std::int32_t channels = seed % 4 == 0 ? random.one_of({40, 48, 63, 64, 70, 100})
                                                    : static_cast<std::int32_t>(seed % 34) + 1;
        options.stride_w = options.stride_h = random.one_of({1, 1, 2, 3});
        options.dilation_w = options.dilation_h = random.one_of({1, 1, 1, 2});
        c.filter = {1, 3, 3, channels};
        c.input = {1, 5 + random.between(0, 3), 5 + random.between(0, 24), channels};
        complete_depthwise(random, options, c);
        compare_kernels(c, GetParam());
    }
}

/// Of other sizes, whose last group of four taps has any number of them.
TEST_P(FastConvolution, DepthwiseOfAnySizeAndChannelsEqualsTheReference) {
    for (std::uint64_t seed = 0; seed < 200 && !HasFailure(); ++seed) {
        Case c = random_convolution(seed, Op::depthwise_conv_2d, GetParam());
        auto options = std::get<model::DepthwiseConv2dOptions>(c.options);
        Random random(seed);
        const std::int32_t channels = random.one_of({8, 15, 16, 24, 33, 40, 64, 100});
        const auto number = static_cast<std::int32_t>(seed);
        options.dilation_w = options.dilation_h = 1;
        options.stride_w = options.stride_h = random.one_of({1, 1, 2});
        c.filter = {1, 1 + number / 7 % 7, 1 + number % 7, channels};
        c.input = {1, c.filter[1] + random.between(0, 3), c.filter[2] + random.between(0, 9),
                   channels};
        complete_depthwise(random, options, c);
        compare_kernels(c, GetParam());
    }
}

/// Which two threads share in halves of rows: so wide that a half is worth a thread.
TEST_P(FastConvolution, DepthwiseOfFewRowsEqualsTheReference) {
    for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
        Case c = random_convolution(seed, Op::depthwise_conv_2d, GetParam());
        auto options = std::get<model::DepthwiseConv2dOptions>(c.options);
        Random random(seed);
        const std::int32_t channels = random.one_of({1, 8, 24, 40, 48, 70, 500, 1030, 4100, 9000});
        options.stride_w = options.stride_h = random.one_of({1, 1, 2});
        options.dilation_w = options.dilation_h = 1;
        c.filter = {1, 3, 3, channels};
        const std::int32_t products = 36'000 * options.stride_w;
        c.input = {random.between(1, 2), random.between(3, 8),
                   products / 9 / channels + random.between(3, 4), channels};
        complete_depthwise(random, options, c);
        compare_kernels(c, GetParam());
    }
}

TEST_P(FastConvolution, TransposeConvEqualsTheReference) {
    for (std::uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed)
        compare_kernels(random_transpose_conv(seed), GetParam());
}

TEST_P(FastConvolution, FullyConnectedEqualsTheReference) {
    for (std::uint64_t seed = 0; seed < cases && !HasFailure(); ++seed)
        compare_kernels(random_fully_connected(seed, GetParam()), GetParam());
}

/// Such as pixels are joined of (cpu/fast/joined_pixels.h): few output channels, rows of many
/// pixels.
TEST_P(FastConvolution, FewChannelsOfManyPixelsEqualTheReference) {
    for (std::uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
        Case c = random_convolution(seed, Op::conv_2d, GetParam());
        auto options = std::get<model::Conv2dOptions>(c.options);
        Random random(seed);
        c.filter[0] = c.output.back() = random.between(1, 8);
        if (random.chance(70)) c.filter[3] = c.input.back() = random.between(1, 16);
        if (random.chance(80)) options.dilation_w = 1;
        c.output[2] = random.one_of({5, 6, 7, 8, 12, 16, 24, 45});
        c.input[2] = options.padding == model::Padding::same
                         ? c.output[2] * options.stride_w - random.between(0, options.stride_w - 1)
                         : (c.output[2] - 1) * options.stride_w +
                               (c.filter[2] - 1) * options.dilation_w + 1 +
                               random.between(0, options.stride_w - 1);
        c.options = options;
        c.weight_zero = 0;
        random_arithmetic(random, c);
        compare_kernels(c, GetParam());
    }
}

/// Long rows of fewer outputs than the narrowest block has lanes, alone and behind full blocks.
TEST_P(FastConvolution, FewOutputsOfLongRowsEqualTheReference) {
    for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
        Case c = random_fully_connected(seed, GetParam());
        const auto number = static_cast<std::int32_t>(seed);
        c.filter = {1 + number % 7 + (number % 3 == 2 ? 32 : 0), 500 + 13 * number};
        c.input.back() = c.filter[1];
        c.output.back() = c.filter[0];
        Random random(seed);
        random_arithmetic(random, c);
        compare_kernels(c, GetParam());
    }
}

/// Two threads share out channels, and each gathers the rows of all pixels once, as one tile, or
/// again for each piece of the channels (TiledProduct::is_cut_by_blocks()).
TEST_P(FastConvolution, FewPixelsOfManyChannelsEqualTheReference) {
    for (std::uint64_t seed = 0; seed < 8 && !HasFailure(); ++seed) {
        Case c = random_convolution(seed, Op::conv_2d, GetParam());
        std::get<model::Conv2dOptions>(c.options) = {
            .padding = model::Padding::same, .stride_h = 1, .stride_w = 1};
        c.input = {1, 7, 7, 24 + 225 * static_cast<std::int32_t>(seed / 2)};
        c.filter = {130, 3, 3, c.input[3]};
        c.output = {1, 7, 7, 130};
        Random random(seed);
        random_arithmetic(random, c);
        compare_kernels(c, GetParam());
    }
}

/// Few of them saturate 16 bits (GroupOf::bounded_quads).
TEST_P(FastConvolution, WeightsNearTheMiddleEqualTheReference) {
    for (std::uint64_t seed = 0; seed < 400 && !HasFailure(); ++seed) {
        Case c = seed % 4 == 0 ? random_fully_connected(seed, GetParam())
                               : random_convolution(seed, Op::conv_2d, GetParam());
        c.any_weights = Random(seed).one_of({0, 3, 10, 30});
        compare_kernels(c, GetParam());
    }
}

INSTANTIATE_TEST_SUITE_P(Arithmetics, FastConvolution,
                         testing::Values(nullptr, &edgetpu::arithmetic()),
                         [](const testing::TestParamInfo<const Arithmetic*>& given) {
                             return given.param == nullptr ? "tflite" : "edgetpu";
                         });

}  // namespace
}  // namespace reef::cpu::one_convolution

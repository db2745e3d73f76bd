// CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED: random operators through the
// reference and the fast kernels, every byte, on every SIMD target of this machine; and what the
// kernels refuse.
#include "cpu/prepare/convolution.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/worker_pool.h"
#include "cpu/prepare/arithmetic.h"
#include "cpu/prepare/kernels.h"
#include "cpu/run_kernel.h"
#include "cpu/simd_targets.h"
#include "reef/edgetpu/numerics.h"
#include "reef/model/builder.h"

namespace reef::cpu {
namespace {

using model::Op;

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::int32_t between(std::int32_t low, std::int32_t high) {
        return std::uniform_int_distribution<std::int32_t>(low, high)(engine_);
    }
    bool chance(int percent) { return between(0, 99) < percent; }
    template <typename T>
    T one_of(std::initializer_list<T> values) {
        return *(values.begin() + between(0, static_cast<std::int32_t>(values.size()) - 1));
    }
    /// Spread over powers of two.
    float scale(int low_exponent, int high_exponent) {
        return std::ldexp(static_cast<float>(between(1 << 10, 1 << 11)) / (1 << 10),
                          between(low_exponent, high_exponent));
    }
    /// Half of the time extremes only, which reach the ends of the sums.
    std::vector<std::uint8_t> bytes(std::size_t count) {
        std::vector<std::uint8_t> result(count);
        const bool extremes = chance(20);
        for (std::uint8_t& value : result)
            value = extremes ? one_of<std::uint8_t>({0, 0x7F, 0x80, 0xFF})
                             : static_cast<std::uint8_t>(between(0, 255));
        return result;
    }

  private:
    std::mt19937_64 engine_;
};

/// One operator with everything that decides its arithmetic.
struct Case {
    Op op = Op::conv_2d;
    ElementType type = ElementType::uint8;
    std::vector<std::int32_t> input;
    std::vector<std::int32_t> filter;
    std::vector<std::int32_t> output;
    model::Options options;
    std::vector<float> weight_scales;
    std::int64_t input_zero = 0;
    std::int64_t weight_zero = 0;
    std::int64_t output_zero = 0;
    float input_scale = 1;
    float output_scale = 1;
    bool with_bias = true;
    /// In a thousand weights, of any value; the others are within 50 of the middle of their type.
    int any_weights = 1000;
    std::uint64_t seed = 0;

    [[nodiscard]] std::string text() const {
        return fmt::format(
            "{} {} input {} filter {} output {} zeros {} {} {} scales {} {} {} seed {}",
            model::builtin_name(op), name_of(type), model::shape_text(input),
            model::shape_text(filter), model::shape_text(output), input_zero, weight_zero,
            output_zero, input_scale, weight_scales[0], output_scale, seed);
    }
};

model::Model build(const Case& c) {
    Random random(c.seed);
    model::Builder builder("one operator");
    const auto input =
        builder.input("input", c.type, c.input, model::per_tensor(c.input_scale, c.input_zero));
    model::Quantization q = model::per_tensor(c.weight_scales[0], c.weight_zero);
    if (c.weight_scales.size() > 1)
        q = model::per_channel(c.weight_scales, c.op == Op::depthwise_conv_2d ? 3 : 0);
    std::size_t count = 1;
    for (const std::int32_t length : c.filter) count *= static_cast<std::size_t>(length);
    auto weights = random.bytes(count);
    const int middle = c.type == ElementType::uint8 ? 128 : 0;
    for (std::uint8_t& weight : weights)
        if (c.any_weights < 1000 && random.between(0, 999) >= c.any_weights)
            weight = static_cast<std::uint8_t>(middle + random.between(-50, 50));
    const auto filter = builder.constant<std::uint8_t>("weights", c.type, c.filter, weights, q);
    std::vector<model::TensorIndex> inputs{input, filter};
    if (c.op == Op::transpose_conv)
        inputs = {builder.constant<std::int32_t>("shape", ElementType::int32, {4}, c.output),
                  filter, input};
    if (c.with_bias) {
        const std::int32_t channels = c.output.back();
        std::vector<std::int32_t> bias(static_cast<std::size_t>(channels));
        const std::int32_t size = random.one_of({100, 100000, INT32_MAX});
        for (std::int32_t& value : bias) value = random.between(-size, size);
        inputs.push_back(
            builder.constant<std::int32_t>("bias", ElementType::int32, {channels}, bias));
    }
    const auto output = builder.tensor("output", c.type, c.output,
                                       model::per_tensor(c.output_scale, c.output_zero));
    builder.add(c.op, inputs, {output}, c.options);
    builder.output(output);
    auto built = builder.finish();
    EXPECT_TRUE(built) << built.error().message();
    return std::move(*built);
}

struct KernelChoice {
    KernelSet kernels = KernelSet::fast;
    const Arithmetic* arithmetic = nullptr;
    int threads = 1;
    [[nodiscard]] PrepareOptions options() const {
        return {.kernels = kernels, .threads = threads};
    }
};

PreparedKernel prepare(const model::Model& model, const KernelChoice& options) {
    const model::Subgraph& graph = model.subgraphs[0];
    const model::Operator& op = graph.operators[0];
    const Prepare prepares = options.arithmetic == nullptr
                                 ? find_kernel(op.code)->prepare
                                 : options.arithmetic->find(op.code.builtin)->prepare;
    return prepares(OperatorView(model, graph, 0), options.options());
}

/// The output's bytes.
std::vector<std::byte> run(const model::Model& model, std::span<const std::uint8_t> input,
                           const KernelChoice& options, WorkerPool& pool) {
    auto kernel = prepare(model, options);
    EXPECT_TRUE(kernel) << kernel.error().message();
    if (!kernel) return {};
    return test::run_kernel(**kernel, model, std::as_bytes(input), pool);
}

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

/// Both kernels on every target, with one thread and with two.
void compare_kernels(const Case& c, const Arithmetic* arithmetic) {
    SCOPED_TRACE(c.text());
    const model::Model model = build(c);
    std::size_t count = 1;
    for (const std::int32_t length : c.input) count *= static_cast<std::size_t>(length);
    const auto input = Random(c.seed + 1).bytes(count);
    WorkerPool one(1);
    static WorkerPool two(2);
    const auto expected =
        run(model, input, {.kernels = KernelSet::reference, .arithmetic = arithmetic}, one);
    test::on_every_target([&] {
        KernelChoice fast{.kernels = KernelSet::fast, .arithmetic = arithmetic};
        EXPECT_EQ(run(model, input, fast, one), expected);
        fast.threads = 2;
        EXPECT_EQ(run(model, input, fast, two), expected) << "with two threads";
    });
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
    c.output = {1,
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
}  // namespace reef::cpu

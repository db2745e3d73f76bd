// Float32 activations on int8 weights, against the rule written down again: the input's values are
// taken apart one by one, sums are kept in 64 bits and results in double. And the vectorised
// kernels against the plain ones, every byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/worker_pool.h"
#include "cpu/fast/matrix_product.h"
#include "cpu/prepare/kernel.h"
#include "cpu/run_kernel.h"
#include "cpu/simd_targets.h"
#include "one_operator.h"

namespace reef::test {
namespace {

using model::Op;

constexpr auto f32 = ElementType::float32;
constexpr auto i8 = ElementType::int8;

model::Quantization scales_of(std::vector<float> scales, std::int32_t axis = 0,
                              std::int64_t zero = 0) {
    model::Quantization q;
    q.zero_point.assign(scales.size(), zero);
    q.scale = std::move(scales);
    q.axis = axis;
    return q;
}

/// One image's values as whole steps around 0.
struct Steps {
    double scale = 1;
    std::vector<std::int64_t> values;
};

Steps steps_of(const float* values, std::size_t count, bool asymmetric) {
    double low = 0, high = 0;
    for (std::size_t i = 0; i < count; ++i) {
        low = std::min(low, double{values[i]});
        high = std::max(high, double{values[i]});
    }
    Steps steps{.scale = 1, .values = std::vector<std::int64_t>(count)};
    if (low == high) return steps;
    float factor = 0;
    std::int64_t zero = 0, bottom = -127;
    if (asymmetric) {
        const double step = (high - low) / 255;
        steps.scale = double{static_cast<float>(step)};
        factor = 1 / static_cast<float>(step);
        // The end of the range with the smaller sum of magnitudes is kept.
        const bool keeps_low = 128 + std::abs(low / step) < 127 + std::abs(high / step);
        zero = std::lround(keeps_low ? -128 - low / step : 127 - high / step);
        zero = std::clamp<std::int64_t>(zero, -128, 127);
        bottom = -128;
    } else {
        const auto range = static_cast<float>(std::max(-low, high));
        steps.scale = double{range / 127};
        factor = 127 / range;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const float place = static_cast<float>(zero) + values[i] * factor;
        const std::int64_t stored = std::clamp<std::int64_t>(std::lround(place), bottom, 127);
        steps.values[i] = stored - zero;
    }
    return steps;
}

struct HybridCase {
    Op op = Op::conv_2d;
    bool asymmetric = false;
    std::int32_t images = 1, h = 1, w = 1, depth = 1, outputs = 1;
    std::int32_t taps_h = 1, taps_w = 1, stride = 1, dilation = 1, multiplier = 1;
    model::Padding padding = model::Padding::same;
    std::vector<float> input = {}, bias = {}, scales = {};
    std::vector<std::int8_t> weights = {};
    model::Activation activation = model::Activation::none;

    [[nodiscard]] bool depthwise() const { return op == Op::depthwise_conv_2d; }
    [[nodiscard]] std::int32_t out(std::int32_t in, std::int32_t taps) const {
        if (padding == model::Padding::same) return (in + stride - 1) / stride;
        return (in - ((taps - 1) * dilation + 1)) / stride + 1;
    }
    [[nodiscard]] std::int32_t out_h() const { return out(h, taps_h); }
    [[nodiscard]] std::int32_t out_w() const { return out(w, taps_w); }
    [[nodiscard]] std::int32_t before(std::int32_t in, std::int32_t taps) const {
        return std::max(0, ((out(in, taps) - 1) * stride + (taps - 1) * dilation + 1 - in) / 2);
    }
};

/// Results, and the sum of magnitudes that each is made of.
struct Wanted {
    double value = 0;
    double magnitude = 0;
};

std::vector<Wanted> wanted(const HybridCase& c) {
    std::vector<Wanted> out;
    const std::size_t image = c.input.size() / static_cast<std::size_t>(c.images);
    const auto at = [](auto... n) { return (static_cast<std::size_t>(n) + ...); };
    for (std::int32_t b = 0; b < c.images; ++b) {
        const Steps steps = steps_of(c.input.data() + at(b) * image, image, c.asymmetric);
        for (std::int32_t y = 0; y < c.out_h(); ++y)
            for (std::int32_t x = 0; x < c.out_w(); ++x)
                for (std::int32_t o = 0; o < c.outputs; ++o) {
                    std::int64_t sum = 0;
                    for (std::int32_t ky = 0; ky < c.taps_h; ++ky)
                        for (std::int32_t kx = 0; kx < c.taps_w; ++kx) {
                            const std::int32_t iy =
                                y * c.stride + ky * c.dilation - c.before(c.h, c.taps_h);
                            const std::int32_t ix =
                                x * c.stride + kx * c.dilation - c.before(c.w, c.taps_w);
                            if (iy < 0 || iy >= c.h || ix < 0 || ix >= c.w) continue;
                            const std::int32_t pixel = (iy * c.w + ix) * c.depth;
                            const std::int32_t tap = ky * c.taps_w + kx;
                            if (c.depthwise()) {
                                sum += steps.values[at(pixel + o / c.multiplier)] *
                                       c.weights[at(tap * c.outputs + o)];
                                continue;
                            }
                            for (std::int32_t i = 0; i < c.depth; ++i)
                                sum += steps.values[at(pixel + i)] *
                                       c.weights[at((o * c.taps_h * c.taps_w + tap) * c.depth + i)];
                        }
                    const double scale = c.scales[c.scales.size() == 1 ? 0 : at(o)];
                    const double product = static_cast<double>(sum) * steps.scale * scale;
                    const double bias = c.bias[at(o)];
                    double value = product + bias;
                    if (c.activation == model::Activation::relu6)
                        value = std::clamp(value, 0.0, 6.0);
                    out.push_back({value, std::abs(product) + std::abs(bias)});
                }
    }
    return out;
}

/// Whether windows of the case fit the image without padding.
bool fits(const HybridCase& c) {
    return (c.taps_h - 1) * c.dilation < c.h && (c.taps_w - 1) * c.dilation < c.w;
}

/// Sizes as in networks, or around those of vectors.
void random_shape(std::mt19937& random, HybridCase& c) {
    const int kind = pick(random, 0, 2);
    c.op = std::array{Op::conv_2d, Op::depthwise_conv_2d,
                      Op::fully_connected}[static_cast<std::size_t>(kind)];
    c.images = pick(random, 1, 3);
    c.depth = pick(random, 0, 2) > 0 ? pick(random, 1, 40) : 8 * pick(random, 1, 17);
    if (c.op != Op::fully_connected) {
        c.h = pick(random, 1, 9);
        c.w = pick(random, 1, 12);
        c.taps_h = pick(random, 1, 3);
        c.taps_w = pick(random, 1, 3);
        c.stride = pick(random, 1, 3);
        c.dilation = pick(random, 0, 3) > 0 ? 1 : pick(random, 2, 3);
        if (fits(c) && pick(random, 0, 2) == 0) c.padding = model::Padding::valid;
    } else if (pick(random, 0, 4) == 0) {
        c.depth = pick(random, 500, 1500);
        c.images = pick(random, 1, 9);
    }
    c.multiplier = c.depthwise() && pick(random, 0, 2) == 0 ? pick(random, 2, 3) : 1;
    c.outputs = c.depthwise() ? c.depth * c.multiplier : pick(random, 1, 70);
}

/// Of a case whose shape is set.
void random_values(std::mt19937& random, HybridCase& c) {
    const bool per_channel = c.depthwise() || (c.op == Op::conv_2d && pick(random, 0, 1) == 1);
    // A convolution's only scale is one of all channels, even where there is only one.
    const bool several = c.depthwise() || (per_channel && c.outputs > 1);
    c.asymmetric = c.op == Op::fully_connected ? pick(random, 0, 1) == 1 : several;
    if (pick(random, 0, 2) == 0) c.activation = model::Activation::relu6;
    // Of one sign, of both, and around a point far from 0.
    const float low =
        std::array{-1.0F, 0.0F, -9.0F, 3.0F}[static_cast<std::size_t>(pick(random, 0, 3))];
    std::uniform_real_distribution<float> number(low, low + static_cast<float>(pick(random, 1, 9)));
    const auto all = [](auto... n) { return (static_cast<std::size_t>(n) * ...); };
    c.input.resize(all(c.images, c.h, c.w, c.depth));
    for (float& x : c.input) x = number(random);
    const std::size_t image = c.input.size() / static_cast<std::size_t>(c.images);
    if (pick(random, 0, 5) == 0) std::fill_n(c.input.begin(), image, 0.0F);
    c.weights.resize(all(c.taps_h, c.taps_w, c.outputs, c.depthwise() ? 1 : c.depth));
    for (auto& w : c.weights) w = static_cast<std::int8_t>(pick(random, -128, 127));
    std::uniform_real_distribution<float> scale(1e-4F, 1e-2F);
    c.scales.resize(per_channel ? static_cast<std::size_t>(c.outputs) : 1);
    for (float& s : c.scales) s = scale(random);
    c.bias.resize(static_cast<std::size_t>(c.outputs));
    for (float& b : c.bias) b = scale(random) * 100 - 0.5F;
}

HybridCase random_case(std::mt19937& random) {
    HybridCase c;
    random_shape(random, c);
    random_values(random, c);
    return c;
}

model::Options options_of(const HybridCase& c) {
    if (c.op == Op::fully_connected)
        return model::FullyConnectedOptions{.activation = c.activation,
                                            .asymmetric_quantize_inputs = c.asymmetric};
    if (c.depthwise())
        return model::DepthwiseConv2dOptions{.padding = c.padding,
                                             .stride_h = c.stride,
                                             .stride_w = c.stride,
                                             .dilation_h = c.dilation,
                                             .dilation_w = c.dilation,
                                             .depth_multiplier = c.multiplier,
                                             .activation = c.activation};
    return model::Conv2dOptions{.padding = c.padding,
                                .stride_h = c.stride,
                                .stride_w = c.stride,
                                .dilation_h = c.dilation,
                                .dilation_w = c.dilation,
                                .activation = c.activation};
}

OneOperator operator_of(const HybridCase& c) {
    OneOperator op;
    const bool dense = c.op == Op::fully_connected;
    op.input(f32, dense ? Shape{c.images, c.depth} : Shape{c.images, c.h, c.w, c.depth}, c.input);
    const std::int32_t axis = c.depthwise() ? 3 : 0;
    const model::Quantization q = scales_of(c.scales, axis);
    if (dense)
        op.constant(i8, {c.outputs, c.depth}, c.weights, q);
    else if (c.depthwise())
        op.constant(i8, {1, c.taps_h, c.taps_w, c.outputs}, c.weights, q);
    else
        op.constant(i8, {c.outputs, c.taps_h, c.taps_w, c.depth}, c.weights, q);
    op.constant(f32, {c.outputs}, c.bias);
    op.output(
        f32, dense ? Shape{c.images, c.outputs} : Shape{c.images, c.out_h(), c.out_w(), c.outputs});
    return op;
}

TEST(Hybrid, FollowsTheRule) {
    std::mt19937 random(17);
    for (int i = 0; i < 300; ++i) {
        const HybridCase c = random_case(random);
        SCOPED_TRACE(testing::Message() << "case " << i << ", " << model::builtin_name(c.op));
        const auto results = operator_of(c).run<float>(c.op, options_of(c));
        const auto should = wanted(c);
        ASSERT_EQ(results.size(), should.size());
        // Three roundings: of the scales' product, the product with the sum, and the bias added.
        for (std::size_t k = 0; k < results.size(); ++k)
            ASSERT_NEAR(results[k], should[k].value, should[k].magnitude * 0x3p-24)
                << "value " << k;
    }
}

std::vector<std::byte> run_on(const HybridCase& c, cpu::KernelSet kernels, WorkerPool& pool) {
    const model::Model model = operator_of(c).model(c.op, options_of(c));
    const cpu::OperatorView op(model, model.subgraphs[0], 0);
    auto kernel = cpu::find_kernel(op.op().code)
                      ->prepare(op, {.kernels = kernels, .threads = pool.threads()});
    EXPECT_TRUE(kernel) << kernel.error().message();
    return kernel ? run_kernel(**kernel, model, std::as_bytes(std::span(c.input)), pool)
                  : std::vector<std::byte>{};
}

/// With one thread, two and three, on every target.
void expect_fast_equals_plain(const HybridCase& c) {
    WorkerPool one(1);
    static WorkerPool two(2), three(3);
    const auto plain = run_on(c, cpu::KernelSet::reference, one);
    on_every_target([&] {
        for (WorkerPool* pool : {&one, &two, &three})
            EXPECT_EQ(run_on(c, cpu::KernelSet::fast, *pool), plain)
                << pool->threads() << " threads";
    });
}

TEST(Hybrid, VectorsGiveTheSameBytes) {
    std::mt19937 random(18);
    for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
        HybridCase c = random_case(random);
        SCOPED_TRACE(testing::Message() << "case " << i << ", " << model::builtin_name(c.op));
        // Bytes are multiplied where few weights are large.
        if (i % 3 == 0)
            for (std::int8_t& weight : c.weights)
                if (pick(random, 0, 199) != 0) weight = static_cast<std::int8_t>(weight / 3);
        expect_fast_equals_plain(c);
    }
}

/// So large that threads get parts of an image's quantisation, of its pixels, or of the channels.
TEST(Hybrid, VectorsGiveTheSameBytesInLargeOnes) {
    std::mt19937 random(19);
    std::vector<HybridCase> cases(6);
    cases[0] = {
        .images = 2, .h = 40, .w = 41, .depth = 33, .outputs = 40, .taps_h = 3, .taps_w = 3};
    cases[1] = {.op = Op::depthwise_conv_2d,
                .images = 2,
                .h = 50,
                .w = 51,
                .depth = 36,
                .outputs = 36,
                .taps_h = 3,
                .taps_w = 3};
    cases[2] = {.op = Op::fully_connected, .images = 5, .depth = 2001, .outputs = 300};
    cases[3] = {.op = Op::fully_connected, .images = 3000, .depth = 65, .outputs = 19};
    cases[4] = {.op = Op::fully_connected, .images = 1, .depth = 60003, .outputs = 37};
    cases[5] = {.images = 2, .h = 7, .w = 7, .depth = 64, .outputs = 130, .taps_h = 3, .taps_w = 3};
    for (HybridCase& c : cases) {
        random_values(random, c);
        SCOPED_TRACE(model::builtin_name(c.op));
        expect_fast_equals_plain(c);
    }
}

/// Steps that lie in the middle, weights and inputs at their ends, results beyond all floats and
/// those that are no numbers.
TEST(Hybrid, VectorsGiveTheSameBytesAtTheEnds) {
    std::mt19937 random(20);
    const auto set = [](auto& values, auto value) { std::ranges::fill(values, value); };
    for (int i = 0; i < 120 && !testing::Test::HasFailure(); ++i) {
        HybridCase c = random_case(random);
        SCOPED_TRACE(testing::Message() << "case " << i << ", " << model::builtin_name(c.op));
        const float top = i % 4 == 0 ? std::numeric_limits<float>::max() : 127.0F;
        for (float& x : c.input)
            x = i % 2 == 0 ? (pick(random, 0, 1) == 0 ? -top : top)
                           : static_cast<float>(pick(random, -254, 254)) / 2;
        c.input.back() = top;
        if (c.input.size() > 1) c.input.front() = i % 3 == 0 ? -top : -0.0F;
        if (i % 2 == 0) set(c.weights, static_cast<std::int8_t>(i % 4 == 0 ? -128 : 127));
        if (i % 5 == 0) set(c.scales, std::numeric_limits<float>::max());
        if (i % 7 == 0) set(c.weights, std::int8_t{0});
        if (i % 3 == 0) set(c.bias, -0.0F);
        expect_fast_equals_plain(c);
    }
    HybridCase longest{.op = Op::fully_connected, .depth = 65000, .outputs = 2};
    random_values(random, longest);
    for (const float low : {127.0F, -128.0F}) {
        set(longest.input, low);
        set(longest.weights, std::int8_t{-128});
        expect_fast_equals_plain(longest);
    }
}

TEST(Hybrid, LargeOnesArePackedInHardlyMoreThanTheirBytes) {
    std::mt19937 random(21);
    for (const std::int32_t outputs : {1, 7, 64, 103}) {
        HybridCase c{.op = Op::fully_connected, .depth = 2000, .outputs = outputs};
        random_values(random, c);
        const model::Model model = operator_of(c).model(c.op, options_of(c));
        const cpu::OperatorView op(model, model.subgraphs[0], 0);
        on_every_target([&] {
            const auto kernel = cpu::find_kernel(op.op().code)->prepare(op, {});
            ASSERT_TRUE(kernel) << kernel.error().message();
            EXPECT_LE((*kernel)->packed_bytes(), c.weights.size() * 11 / 10) << outputs;
        });
    }
}

/// Worked out by hand: 127 steps to the largest magnitude, ties away from zero.
TEST(Hybrid, RoundsStepsAwayFromZero) {
    const auto dense = [](bool asymmetric) {
        return OneOperator()
            .input(f32, {1, 4}, std::vector{127.0F, 0.5F, -0.5F, -1.5F})
            .constant(i8, {4, 4},
                      std::vector<std::int8_t>{1, 0, 0, 0, 0, 1, 0, 0,  //
                                               0, 0, 1, 0, 0, 0, 0, 1},
                      scales_of({1}))
            .output(f32, {1, 4})
            .run<float>(Op::fully_connected,
                        model::FullyConnectedOptions{.asymmetric_quantize_inputs = asymmetric});
    };
    EXPECT_EQ(dense(false), (std::vector{127.0F, 1.0F, -1.0F, -2.0F}));
    // 128.5 over 255 steps: half a unit is about one step, one and a half are three.
    const float step = static_cast<float>(128.5 / 255);
    EXPECT_EQ(dense(true), (std::vector{252 * step, 1 * step, -1 * step, -3 * step}));
}

OneOperator dense_of(const std::vector<float>& values, model::Quantization weights) {
    OneOperator op;
    op.input(f32, {1, 2}, values)
        .constant(i8, {2, 2}, std::vector<std::int8_t>{1, 2, 3, 4}, std::move(weights))
        .output(f32, {1, 2});
    return op;
}

TEST(Hybrid, RefusesWhatTfliteDoesNotSay) {
    EXPECT_THAT(dense_of({1, 2}, scales_of({1, 2})).refused(Op::fully_connected),
                testing::HasSubstr("a scale per channel"));
    EXPECT_THAT(dense_of({1, 2}, scales_of({1}, 0, 3)).refused(Op::fully_connected),
                testing::HasSubstr("zero point 3"));
    OneOperator depthwise;
    depthwise.input(f32, {1, 1, 1, 2}, std::vector{1.0F, 2.0F})
        .constant(i8, {1, 1, 1, 2}, std::vector<std::int8_t>{1, 2}, scales_of({1}))
        .output(f32, {1, 1, 1, 2});
    EXPECT_THAT(depthwise.refused(Op::depthwise_conv_2d,
                                  model::DepthwiseConv2dOptions{.stride_h = 1, .stride_w = 1}),
                testing::HasSubstr("needs one per channel"));
    OneOperator grouped;
    grouped.input(f32, {1, 1, 1, 2}, std::vector{1.0F, 2.0F})
        .constant(i8, {2, 1, 1, 1}, std::vector<std::int8_t>{1, 2}, scales_of({1, 1}))
        .output(f32, {1, 1, 1, 2});
    EXPECT_THAT(grouped.refused(Op::conv_2d, model::Conv2dOptions{.stride_h = 1, .stride_w = 1}),
                testing::HasSubstr("in groups"));
}

TEST(Hybrid, RefusesToQuantiseWhatIsNoNumber) {
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 1e-42F}) {
        const auto model = dense_of({bad, 0}, scales_of({1})).model(Op::fully_connected);
        auto executor = on_cpu(model, {});
        ASSERT_TRUE(executor) << executor.error().message();
        const auto bytes = bytes_of(std::vector{bad, 0.0F});
        std::ranges::copy(bytes, executor->input(0).begin());
        EXPECT_FALSE(executor->run()) << bad;
    }
}

}  // namespace
}  // namespace reef::test

// Float32 activations on int8 weights, against the rule written down again: the input's values are
// taken apart one by one, sums are kept in 64 bits and results in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

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
    std::int32_t taps_h = 1, taps_w = 1, stride = 1, multiplier = 1;
    std::vector<float> input, bias, scales;
    std::vector<std::int8_t> weights;
    bool relu6 = false;

    [[nodiscard]] bool depthwise() const { return op == Op::depthwise_conv_2d; }
    [[nodiscard]] std::int32_t out_h() const { return (h + stride - 1) / stride; }
    [[nodiscard]] std::int32_t out_w() const { return (w + stride - 1) / stride; }
};

std::int32_t padding(std::int32_t in, std::int32_t out, std::int32_t stride, std::int32_t taps) {
    return std::max(0, ((out - 1) * stride + taps - in) / 2);
}

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
                                y * c.stride + ky - padding(c.h, c.out_h(), c.stride, c.taps_h);
                            const std::int32_t ix =
                                x * c.stride + kx - padding(c.w, c.out_w(), c.stride, c.taps_w);
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
                    if (c.relu6) value = std::clamp(value, 0.0, 6.0);
                    out.push_back({value, std::abs(product) + std::abs(bias)});
                }
    }
    return out;
}

HybridCase random_case(std::mt19937& random) {
    HybridCase c;
    const int kind = pick(random, 0, 2);
    c.op = std::array{Op::conv_2d, Op::depthwise_conv_2d,
                      Op::fully_connected}[static_cast<std::size_t>(kind)];
    c.images = pick(random, 1, 3);
    c.depth = pick(random, 1, 40);
    if (c.op != Op::fully_connected) {
        c.h = pick(random, 1, 7);
        c.w = pick(random, 1, 7);
        c.taps_h = pick(random, 1, 3);
        c.taps_w = pick(random, 1, 3);
        c.stride = pick(random, 1, 2);
    }
    c.multiplier = c.depthwise() ? pick(random, 1, 3) : 1;
    c.outputs = c.depthwise() ? c.depth * c.multiplier : pick(random, 2, 70);
    const bool per_channel = c.depthwise() || (c.op == Op::conv_2d && pick(random, 0, 1) == 1);
    c.asymmetric = c.op == Op::fully_connected ? pick(random, 0, 1) == 1 : per_channel;
    c.relu6 = pick(random, 0, 2) == 0;
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
    return c;
}

std::vector<float> run(const HybridCase& c) {
    const auto activation = c.relu6 ? model::Activation::relu6 : model::Activation::none;
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
    if (dense)
        return op.run<float>(
            c.op, model::FullyConnectedOptions{.activation = activation,
                                               .asymmetric_quantize_inputs = c.asymmetric});
    if (c.depthwise())
        return op.run<float>(c.op, model::DepthwiseConv2dOptions{.padding = model::Padding::same,
                                                                 .stride_h = c.stride,
                                                                 .stride_w = c.stride,
                                                                 .depth_multiplier = c.multiplier,
                                                                 .activation = activation});
    return op.run<float>(c.op, model::Conv2dOptions{.padding = model::Padding::same,
                                                    .stride_h = c.stride,
                                                    .stride_w = c.stride,
                                                    .activation = activation});
}

TEST(Hybrid, FollowsTheRule) {
    std::mt19937 random(17);
    for (int i = 0; i < 300; ++i) {
        const HybridCase c = random_case(random);
        SCOPED_TRACE(testing::Message() << "case " << i << ", " << model::builtin_name(c.op));
        const auto results = run(c);
        const auto should = wanted(c);
        ASSERT_EQ(results.size(), should.size());
        // Three roundings: of the scales' product, the product with the sum, and the bias added.
        for (std::size_t k = 0; k < results.size(); ++k)
            ASSERT_NEAR(results[k], should[k].value, should[k].magnitude * 0x3p-24)
                << "value " << k;
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

// The vectorised float32 kernels of every instruction set against the plain ones. Operators of one
// rounding, pools and maxima give the same bits; sums lie within the bound of their terms, and are
// the same for every number of threads.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "cpu/run_model.h"
#include "cpu/simd_targets.h"

namespace reef::test {
namespace {

using model::Builder;
using model::Op;

constexpr auto float32 = ElementType::float32;

std::vector<float> random_floats(std::mt19937& random, std::size_t count, float low, float high) {
    std::uniform_real_distribution<float> number(low, high);
    std::vector<float> values(count);
    for (float& value : values) value = number(random);
    return values;
}

using Runs = std::vector<std::vector<std::byte>>;

/// Calls compare(fast, plain) with the first output on every target.
template <typename Compare>
void on_every_target_like_plain(const model::Model& model, const Runs& inputs,
                                const Compare& compare) {
    const auto plain = run_model(model, inputs);
    ASSERT_FALSE(plain.empty());
    on_every_target([&] {
        const auto fast = run_model(model, inputs, cpu::KernelSet::fast);
        ASSERT_EQ(run_model(model, inputs, cpu::KernelSet::fast, 2), fast);
        compare(values_of<float>(fast[0]), values_of<float>(plain[0]));
    });
}

void expect_same_bits(const std::vector<float>& fast, const std::vector<float>& plain) {
    ASSERT_EQ(fast.size(), plain.size());
    for (std::size_t i = 0; i < fast.size(); ++i) {
        if (std::isnan(plain[i])) {
            ASSERT_TRUE(std::isnan(fast[i])) << i;
        } else {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(fast[i]), std::bit_cast<std::uint32_t>(plain[i]))
                << i << ": " << fast[i] << " for " << plain[i];
        }
    }
}

/// One convolution; inputs are from 0 to 1 and weights from -1 to 1.
struct FloatCase {
    Op op = Op::conv_2d;
    std::vector<std::int32_t> in, filter, out;
    model::Options options;
    std::size_t terms = 1;
};

std::int32_t windows(std::int32_t in, std::int32_t stride) {
    return (in + stride - 1) / stride;
}

FloatCase random_convolution(std::mt19937& random) {
    const std::int32_t kind = pick(random, 0, 3);
    const std::int32_t stride = pick(random, 1, 2), taps = pick(random, 1, 4);
    FloatCase one;
    one.in = {pick(random, 1, 2), pick(random, 1, 9), pick(random, 1, 12), pick(random, 1, 40)};
    const std::int32_t depth = one.in[3], channels = pick(random, 1, 70);
    const std::int32_t h = windows(one.in[1], stride), w = windows(one.in[2], stride);
    if (kind == 0) {
        one.filter = {channels, taps, taps, depth};
        one.out = {one.in[0], h, w, channels};
        one.options = model::Conv2dOptions{.stride_h = stride, .stride_w = stride};
        one.terms = count_of(one.filter) / static_cast<std::size_t>(channels);
    } else if (kind == 1) {
        const std::int32_t multiplier = pick(random, 1, 3);
        one.op = Op::depthwise_conv_2d;
        one.filter = {1, taps, taps, depth * multiplier};
        one.out = {one.in[0], h, w, depth * multiplier};
        one.options = model::DepthwiseConv2dOptions{
            .stride_h = stride, .stride_w = stride, .depth_multiplier = multiplier};
        one.terms = static_cast<std::size_t>(taps * taps);
    } else if (kind == 2) {
        // Some have few outputs of long rows, alone or behind full blocks.
        const bool is_long = pick(random, 0, 1) == 1;
        const std::int32_t length = is_long ? pick(random, 500, 1500) : depth;
        const std::int32_t outputs =
            is_long ? pick(random, 1, 8) + 32 * pick(random, 0, 1) : channels;
        one.op = Op::fully_connected;
        one.in = {pick(random, 1, 9), length};
        one.filter = {outputs, length};
        one.out = {one.in[0], outputs};
        one.options = model::FullyConnectedOptions{};
        one.terms = static_cast<std::size_t>(length);
    } else {
        one.op = Op::transpose_conv;
        one.filter = {channels, taps, taps, depth};
        one.out = {one.in[0], one.in[1] * stride, one.in[2] * stride, channels};
        one.options = model::TransposeConvOptions{.stride_h = stride, .stride_w = stride};
        one.terms = count_of(one.filter) / static_cast<std::size_t>(channels);
    }
    return one;
}

Result<model::Model> model_of_case(const FloatCase& one, std::mt19937& random) {
    Builder builder("floats");
    const auto input = builder.input("in", float32, one.in);
    const auto weights = builder.constant<float>(
        "weights", float32, one.filter, random_floats(random, count_of(one.filter), -1, 1));
    const std::int32_t channels = one.out.back();
    const auto bias =
        builder.constant<float>("bias", float32, {channels},
                                random_floats(random, static_cast<std::size_t>(channels), -1, 1));
    const auto output = builder.tensor("out", float32, one.out);
    if (one.op == Op::transpose_conv)
        builder.add(one.op,
                    {builder.constant<std::int32_t>("shape", ElementType::int32, {4}, one.out),
                     weights, input, bias},
                    {output}, one.options);
    else
        builder.add(one.op, {input, weights, bias}, {output}, one.options);
    builder.output(output);
    return builder.finish();
}

TEST(FloatKernels, SumsKeepTheirBoundAndAreTheSameOnAnyNumberOfThreads) {
    std::mt19937 random(31);
    for (int round = 0; round < 200; ++round) {
        const FloatCase one = random_convolution(random);
        const auto model = model_of_case(one, random);
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(fmt::format("round {}: {} from {}", round, model::builtin_name(one.op),
                                 model::shape_text(one.in)));
        const auto terms = static_cast<float>(one.terms + 1);
        // Both are off by as much as n terms of at most 1 each allow.
        const float bound = 2 * terms * 0x1p-24F * terms;
        ASSERT_NO_FATAL_FAILURE(on_every_target_like_plain(
            *model, {bytes_of(random_floats(random, count_of(one.in), 0, 1))},
            [&](const auto& fast, const auto& plain) {
                for (std::size_t i = 0; i < plain.size(); ++i)
                    ASSERT_NEAR(fast[i], plain[i], bound) << i;
            }));
    }
}

/// Ordinary numbers, and some of any bits: infinities and what is no number.
std::vector<float> mixed_floats(std::mt19937& random, std::size_t count) {
    auto values = random_floats(random, count, -3, 3);
    for (float& value : values)
        if (pick(random, 0, 9) == 0)
            value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    return values;
}

TEST(FloatKernels, FewOutputsOfLongRowsArePackedInHardlyMoreThanTheirBytes) {
    std::mt19937 random(37);
    for (const std::int32_t outputs : {1, 3, 7, 39}) {
        const auto model = model_of_case({.op = Op::fully_connected,
                                          .in = {1, 9440},
                                          .filter = {outputs, 9440},
                                          .out = {1, outputs},
                                          .options = model::FullyConnectedOptions{}},
                                         random);
        ASSERT_TRUE(model) << model.error().message();
        on_every_target([&] {
            const auto executor = on_cpu(*model, {});
            ASSERT_TRUE(executor) << executor.error().message();
            EXPECT_LE(executor->memory().packed_bytes,
                      9440 * sizeof(float) * static_cast<std::size_t>(outputs) * 11 / 10)
                << outputs;
        });
    }
}

TEST(FloatKernels, PoolsEqualThePlainOnes) {
    std::mt19937 random(32);
    for (int round = 0; round < 150; ++round) {
        const bool average = round % 2 == 0;
        const std::vector<std::int32_t> in{pick(random, 1, 2), pick(random, 1, 12),
                                           pick(random, 1, 12), pick(random, 1, 40)};
        const model::Pool2dOptions options{
            .stride_h = pick(random, 1, 3),
            .stride_w = pick(random, 1, 3),
            .filter_h = pick(random, 1, in[1]),
            .filter_w = pick(random, 1, in[2]),
            .activation = round % 5 == 0 ? model::Activation::relu6 : model::Activation::none};
        Builder builder("pool");
        const auto input = builder.input("in", float32, in);
        const auto output = builder.tensor(
            "out", float32,
            {in[0], windows(in[1], options.stride_h), windows(in[2], options.stride_w), in[3]});
        builder.add(average ? Op::average_pool_2d : Op::max_pool_2d, {input}, {output}, options);
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::shape_text(in));
        ASSERT_NO_FATAL_FAILURE(on_every_target_like_plain(
            *model, {bytes_of(mixed_floats(random, count_of(in)))}, expect_same_bits));
    }
}

/// Axes that lie side by side, in front of others or not.
TEST(FloatKernels, MeansEqualThePlainOnes) {
    std::mt19937 random(35);
    for (int round = 0; round < 150; ++round) {
        const std::int32_t channels = round % 3 == 0 ? 400 : 40;
        const std::vector<std::int32_t> in{pick(random, 1, 4), pick(random, 1, 12),
                                           pick(random, 1, 12), pick(random, 1, channels)};
        const std::int32_t first = pick(random, 0, 3), last = pick(random, first, 3);
        std::vector<std::int32_t> axes, out = in;
        for (std::int32_t axis = first; axis <= last; ++axis) {
            axes.push_back(round % 2 == 0 ? axis : axis - 4);
            out[static_cast<std::size_t>(axis)] = 1;
        }
        Builder builder("mean");
        const auto input = builder.input("in", float32, in);
        const auto axis = builder.constant<std::int32_t>(
            "axes", ElementType::int32, {static_cast<std::int32_t>(axes.size())}, axes);
        const auto output = builder.tensor("out", float32, out);
        builder.add(Op::mean, {input, axis}, {output}, model::ReducerOptions{.keep_dims = true});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::shape_text(in) + " to " + model::shape_text(out));
        ASSERT_NO_FATAL_FAILURE(on_every_target_like_plain(
            *model, {bytes_of(mixed_floats(random, count_of(in)))}, expect_same_bits));
    }
}

TEST(FloatKernels, SumsProductsAndQuotientsOfTwoEqualThePlainOnes) {
    std::mt19937 random(33);
    for (int round = 0; round < 150; ++round) {
        const auto [a, b] = random_operand_shapes(random);
        Builder builder("binary");
        auto left = builder.input("a", float32, a);
        auto right = builder.input("b", float32, b);
        if (round % 3 == 0) std::swap(left, right);
        const auto output = builder.tensor("out", float32, a);
        const auto activation = round % 4 == 0 ? model::Activation::relu6 : model::Activation::none;
        if (const std::int32_t op = pick(random, 0, 6); op == 0)
            builder.add(Op::mul, {left, right}, {output}, model::MulOptions{activation});
        else if (op == 1)
            builder.add(Op::add, {left, right}, {output}, model::AddOptions{activation});
        else if (op == 2)
            builder.add(Op::sub, {left, right}, {output}, model::SubOptions{activation});
        else if (op == 3)
            builder.add(Op::div, {left, right}, {output}, model::DivOptions{activation});
        else
            builder.add(op == 4   ? Op::maximum
                        : op == 5 ? Op::minimum
                                  : Op::squared_difference,
                        {left, right}, {output});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::shape_text(a) + " and " + model::shape_text(b));
        ASSERT_NO_FATAL_FAILURE(
            on_every_target_like_plain(*model,
                                       {bytes_of(mixed_floats(random, count_of(a))),
                                        bytes_of(mixed_floats(random, count_of(b)))},
                                       expect_same_bits));
    }
}

/// Few different numbers, so that many are equal, among them 0 and -0, infinities, denormal ones
/// and what is no number.
std::vector<float> repeated_floats(std::mt19937& random, std::size_t count) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float none = std::numeric_limits<float>::quiet_NaN();
    const float usual[] = {0.0F, -0.0F, 1, -1, 1e-42F, -1e-42F, 2, -3};
    const float rare[] = {infinity, -infinity, none, -none};
    const bool with_rare = pick(random, 0, 2) == 0;
    std::vector<float> values(count);
    for (float& value : values)
        value = with_rare && pick(random, 0, 4) == 0 ? rare[pick(random, 0, 3)]
                                                     : usual[pick(random, 0, 7)];
    return values;
}

// Along the last axis and across rows, in rows of fewer, as many and more elements than a vector
// has.
TEST(FloatKernels, FirstLargestAndSmallestAreThePlainOnes) {
    std::mt19937 random(35);
    for (int round = 0; round < 300; ++round) {
        const ElementType index = round % 3 == 0 ? ElementType::int64 : ElementType::int32;
        const bool along_last = round % 4 < 2;
        std::vector<std::int32_t> in{pick(random, 1, 70),
                                     pick(random, 1, pick(random, 0, 1) == 0 ? 6 : 200)};
        if (!along_last) in = {pick(random, 1, 4), pick(random, 1, 30), pick(random, 1, 600)};
        // So many rows that threads share them.
        if (round % 100 == 0) in = {20000, 3};
        if (round % 100 == 1) in = {300, 200};
        auto reduced = in;
        reduced.erase(reduced.begin() + 1);
        Builder builder("extremes");
        const auto input = builder.input("in", float32, in);
        const auto axis = builder.constant<std::int32_t>("axis", ElementType::int32, {},
                                                         std::vector<std::int32_t>{1});
        const auto output = builder.tensor("out", index, reduced);
        if (round % 2 == 0)
            builder.add(Op::arg_max, {input, axis}, {output},
                        model::ArgMaxOptions{.output_type = index});
        else
            builder.add(Op::arg_min, {input, axis}, {output},
                        model::ArgMinOptions{.output_type = index});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::shape_text(in));
        const auto values = round % 5 == 0 ? random_floats(random, count_of(in), -3, 3)
                                           : repeated_floats(random, count_of(in));
        ASSERT_NO_FATAL_FAILURE(
            on_every_target_like_plain(*model, {bytes_of(values)}, expect_same_bits));
    }
}

TEST(FloatKernels, ResizedImagesEqualThePlainOnes) {
    std::mt19937 random(36);
    for (int round = 0; round < 150; ++round) {
        const std::vector<std::int32_t> in{pick(random, 1, 2), pick(random, 1, 12),
                                           pick(random, 1, round % 3 == 0 ? 70 : 12),
                                           pick(random, 0, round % 2 == 0 ? 9 : 70)};
        const std::vector<std::int32_t> size{pick(random, 1, 40), pick(random, 1, 80)};
        const std::int32_t form = pick(random, 0, 2);
        Builder builder("resize");
        const auto input = builder.input("in", float32, in);
        const auto sizes = builder.constant<std::int32_t>("size", ElementType::int32, {2}, size);
        const auto output = builder.tensor("out", float32, {in[0], size[0], size[1], in[3]});
        builder.add(Op::resize_bilinear, {input, sizes}, {output},
                    model::ResizeBilinearOptions{.align_corners = form == 1,
                                                 .half_pixel_centers = form == 2});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(
            fmt::format("{} to {}x{} form {}", model::shape_text(in), size[0], size[1], form));
        const auto values = round % 3 == 0 ? repeated_floats(random, count_of(in))
                                           : mixed_floats(random, count_of(in));
        ASSERT_NO_FATAL_FAILURE(
            on_every_target_like_plain(*model, {bytes_of(values)}, expect_same_bits));
    }
}

double ulps_apart(double got, double real) {
    const float nearest = std::abs(static_cast<float>(real));
    const float next = std::nextafter(nearest, std::numeric_limits<float>::infinity());
    return std::abs(got - real) / (static_cast<double>(next) - static_cast<double>(nearest));
}

Result<model::Model> model_of_function(Op op, std::size_t length, model::Options options) {
    Builder builder("function");
    const std::vector<std::int32_t> shape{static_cast<std::int32_t>(length)};
    const auto input = builder.input("in", float32, shape);
    const auto output = builder.tensor("out", float32, shape);
    builder.add(op, {input}, {output}, std::move(options));
    builder.output(output);
    return builder.finish();
}

// Of any bits, and halves.
TEST(FloatKernels, FunctionsOfOneRoundingEqualThePlainOnes) {
    std::mt19937 random(38);
    for (int round = 0; round < 150; ++round) {
        constexpr Op ops[] = {Op::abs,  Op::neg,          Op::square, Op::floor,
                              Op::ceil, Op::round,        Op::sqrt,   Op::rsqrt,
                              Op::relu, Op::relu_n1_to_1, Op::relu6,  Op::leaky_relu};
        const Op op = ops[static_cast<std::size_t>(round) % std::size(ops)];
        auto values = mixed_floats(random, static_cast<std::size_t>(pick(random, 0, 100)));
        for (float& value : values)
            if (pick(random, 0, 3) == 0)
                value = std::ldexp(std::round(value * 16), pick(random, -2, 22));
        const auto model =
            model_of_function(op, values.size(),
                              op == Op::leaky_relu ? model::Options(model::LeakyReluOptions{0.3F})
                                                   : model::Options());
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::builtin_name(op));
        ASSERT_NO_FATAL_FAILURE(
            on_every_target_like_plain(*model, {bytes_of(values)}, expect_same_bits));
    }
}

/// Of every exponent, denormal numbers, infinities and what is no number.
std::vector<float> floats_of_any_size() {
    std::vector<float> values;
    for (std::uint64_t bits = 0; bits <= 0xFFFFFFFF; bits += 99991)
        values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    values.insert(values.end(), {0.0F, -0.0F, 1.0F, std::numeric_limits<float>::quiet_NaN(),
                                 std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity()});
    return values;
}

void expect_near_real(double ulps, float got, double real) {
    const auto nearest = static_cast<float>(real);
    if (std::isnan(real))
        ASSERT_TRUE(std::isnan(got)) << got;
    else if (std::isinf(nearest))
        ASSERT_EQ(got, nearest);
    else
        ASSERT_LE(ulps_apart(static_cast<double>(got), real), ulps) << got << " for " << real;
}

struct BoundedFunction {
    Op op;
    double ulps;
    double (*real)(double);
    model::Options options;
};

TEST(FloatKernels, FunctionsKeepTheirBounds) {
    const BoundedFunction functions[] = {
        {Op::exp, 1, [](double x) { return std::exp(x); }, {}},
        {Op::log, 1, [](double x) { return std::log(x); }, {}},
        {Op::logistic, 3, [](double x) { return 1 / (1 + std::exp(-x)); }, {}},
        {Op::tanh, 3, [](double x) { return std::tanh(x); }, {}},
        {Op::elu, 2, [](double x) { return x < 0 ? std::expm1(x) : x; }, {}},
        {Op::gelu, 1, [](double x) { return x / 2 * std::erfc(-x * std::sqrt(0.5)); },
         model::GeluOptions{}},
        {Op::gelu, 1,
         [](double x) {
             const double y = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
             return x / (1 + std::exp(-2 * y));
         },
         model::GeluOptions{true}}};
    const auto values = floats_of_any_size();
    for (const BoundedFunction& one : functions) {
        const auto model = model_of_function(one.op, values.size(), one.options);
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::builtin_name(one.op));
        ASSERT_NO_FATAL_FAILURE(on_every_target_like_plain(
            *model, {bytes_of(values)}, [&](const auto& fast, const auto&) {
                for (std::size_t i = 0; i < values.size(); ++i)
                    ASSERT_NO_FATAL_FAILURE(expect_near_real(
                        one.ulps, fast[i], one.real(static_cast<double>(values[i]))))
                        << "of " << values[i];
            }));
    }
}

TEST(FloatKernels, SoftmaxAndItsLogarithmOfRowsOfAnyLength) {
    std::mt19937 random(34);
    for (int round = 0; round < 120; ++round) {
        const std::vector<std::int32_t> shape{pick(random, 1, 5), pick(random, 1, 90)};
        const float width = round % 3 == 0 ? 100.0F : 5.0F;
        Builder builder("softmax");
        const auto input = builder.input("in", float32, shape);
        const auto output = builder.tensor("out", float32, shape);
        const bool logarithm = round % 2 == 0;
        if (logarithm)
            builder.add(Op::log_softmax, {input}, {output});
        else
            builder.add(Op::softmax, {input}, {output}, model::SoftmaxOptions{.beta = 0.7F});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        const float largest = logarithm ? 2 * width + 6 : 1;
        const float bound = 2 * 0x1p-24F * static_cast<float>(shape[1] + 2) * largest;
        ASSERT_NO_FATAL_FAILURE(on_every_target_like_plain(
            *model, {bytes_of(random_floats(random, count_of(shape), -width, width))},
            [&](const auto& fast, const auto& plain) {
                for (std::size_t i = 0; i < plain.size(); ++i)
                    ASSERT_NEAR(fast[i], plain[i], bound) << i;
            }));
    }
}

}  // namespace
}  // namespace reef::test

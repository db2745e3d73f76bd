// Element-wise operators, pools and images that are cut into columns, against the CPU's kernels.
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

struct ElementComparison {
    std::size_t equal = 0, all = 0;
    int most = 0;
};

/// Every operator of the model runs on the chip.
void compare_with_cpu(const model::Model& plain, const rk3588::Options& numbers, unsigned seed,
                      ElementComparison& c) {
    const auto compiled = rk3588::compile(plain, numbers, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    for (const auto& op : compiled->operators) ASSERT_TRUE(op.on_chip) << op.name << op.reason;
    const auto got = test::run_on(compiled->model, "rk3588:sim", seed);
    const auto want = test::run_on(plain, "cpu", seed);
    ASSERT_EQ(got.size(), want.size());
    const bool is_signed =
        plain.subgraphs[0].tensors[static_cast<std::size_t>(plain.subgraphs[0].outputs[0])].type ==
        ElementType::int8;
    const int flip = is_signed ? 128 : 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const auto number = [&](std::byte b) { return (std::to_integer<int>(b) + flip) % 256; };
        c.equal += got[i] == want[i] ? 1 : 0;
        c.most = std::max(c.most, std::abs(number(got[i]) - number(want[i])));
        ++c.all;
    }
}

struct Drawn {
    std::mt19937 random;
    explicit Drawn(unsigned seed) : random(seed) {}
    float scale(float low, float high) {
        return low + (high - low) * static_cast<float>(random() % 10000) / 10000;
    }
    model::Quantization numbers(ElementType type, float low, float high) {
        const auto zero = static_cast<std::int64_t>(random() % 256);
        return model::per_tensor(scale(low, high), type == ElementType::uint8 ? zero : zero - 128);
    }
};

model::Model pair_of(model::Op op, unsigned seed) {
    Drawn draw(seed);
    const auto type = seed % 2 == 0 ? ElementType::uint8 : ElementType::int8;
    const std::vector<std::int32_t> shape{1, 24, 31, 20};
    model::Builder b("a pair");
    const auto one = b.input("one", type, shape, draw.numbers(type, 0.01F, 0.06F));
    const auto other = b.input("other", type, shape, draw.numbers(type, 0.01F, 0.06F));
    const bool product = op == model::Op::mul;
    const auto out =
        b.tensor("out", type, shape,
                 product ? draw.numbers(type, 0.02F, 0.2F) : draw.numbers(type, 0.02F, 0.1F));
    const auto activation = seed % 3 == 0 ? model::Activation::relu : model::Activation::none;
    if (op == model::Op::add)
        b.add(op, {one, other}, {out}, model::AddOptions{.activation = activation});
    else if (op == model::Op::sub)
        b.add(op, {one, other}, {out}, model::SubOptions{.activation = activation});
    else
        b.add(op, {one, other}, {out}, model::MulOptions{.activation = activation});
    b.output(out);
    return b.finish().value();
}

double share(const ElementComparison& c) {
    return static_cast<double>(c.equal) / static_cast<double>(c.all);
}

TEST(NpuElements, SumsAndDifferencesAreTflites) {
    for (const auto op : {model::Op::add, model::Op::sub}) {
        ElementComparison c;
        for (unsigned seed = 0; seed < 20; ++seed) compare_with_cpu(pair_of(op, seed), {}, seed, c);
        fmt::print("{} of {} bytes equal\n", c.equal, c.all);
        EXPECT_EQ(c.equal, c.all);
    }
}

TEST(NpuElements, ProductsAreTflitesButForFewBytes) {
    ElementComparison c;
    for (unsigned seed = 0; seed < 20; ++seed)
        compare_with_cpu(pair_of(model::Op::mul, seed), {}, seed, c);
    fmt::print("{} of {} bytes equal\n", c.equal, c.all);
    EXPECT_LE(c.most, 1);
    EXPECT_GE(share(c), 0.99);
}

model::Options options_with_constant(model::Op op) {
    if (op == model::Op::mul) return model::MulOptions{};
    if (op == model::Op::add) return model::AddOptions{};
    return model::SubOptions{};
}

/// One value for all, or one for each channel: constants with a scale of their own, which are no
/// whole steps of the input. Factors take products to multipliers on both sides of 1.
TEST(NpuElements, ConstantsAreTakenOffAndMultipliedAsTflitesKernelsDo) {
    for (const auto op : {model::Op::sub, model::Op::add, model::Op::mul}) {
        ElementComparison c;
        for (unsigned seed = 0; seed < 24; ++seed) {
            Drawn draw(seed);
            const auto type = seed % 2 == 0 ? ElementType::uint8 : ElementType::int8;
            const std::int32_t channels = 20, values = seed % 4 < 2 ? 1 : channels;
            model::Builder b("a constant");
            const auto numbers = draw.numbers(type, 0.01F, 0.06F);
            const auto in = b.input("in", type, {1, 9, 7, channels}, numbers);
            std::vector<std::byte> bytes(static_cast<std::size_t>(values));
            for (std::byte& each : bytes) each = static_cast<std::byte>(70 + draw.random() % 50);
            const auto constant = b.constant_bytes(
                "constant", type,
                values == 1 ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{channels},
                bytes, model::per_tensor(draw.scale(0.001F, 0.03F), seed % 3 == 0 ? 3 : 0));
            auto of_out = numbers;
            if (op == model::Op::mul) of_out.scale[0] *= draw.scale(0.2F, 3);
            const auto out = b.tensor("out", type, {1, 9, 7, channels}, of_out);
            const bool in_front = op != model::Op::sub && seed % 8 >= 4;
            b.add(op, in_front ? std::vector{constant, in} : std::vector{in, constant}, {out},
                  options_with_constant(op));
            b.output(out);
            SCOPED_TRACE(fmt::format("seed {}", seed));
            compare_with_cpu(b.finish().value(), {}, seed, c);
            if (testing::Test::HasFatalFailure()) return;
        }
        fmt::print("{} by a constant: {} of {} bytes equal\n", model::builtin_name(op), c.equal,
                   c.all);
        EXPECT_LE(c.most, 1);
        EXPECT_GE(share(c), 0.97);
    }
}

TEST(NpuElements, OtherScalesAreTflitesButForFewBytes) {
    for (const auto op : {model::Op::quantize, model::Op::relu}) {
        ElementComparison c;
        for (unsigned seed = 0; seed < 20; ++seed) {
            Drawn draw(seed);
            const auto type = seed % 2 == 0 ? ElementType::uint8 : ElementType::int8;
            model::Builder b("a scale");
            const auto in = b.input("in", type, {1, 16, 9, 40}, draw.numbers(type, 0.01F, 0.06F));
            const auto out =
                b.tensor("out", type, {1, 16, 9, 40}, draw.numbers(type, 0.02F, 0.05F));
            b.add(op, {in}, {out});
            b.output(out);
            compare_with_cpu(b.finish().value(), {}, seed, c);
        }
        fmt::print("{} of {} bytes equal\n", c.equal, c.all);
        EXPECT_LE(c.most, 1);
        EXPECT_GE(share(c), 0.99);
    }
}

/// So many channels from `first` on, of 80.
model::Model slice_of(std::int32_t first, std::int32_t count, std::int32_t rows = 16) {
    model::Builder b("a slice");
    const auto numbers = model::per_tensor(0.05F, 3);
    const auto in = b.input("in", ElementType::int8, {1, 16, 9, 80}, numbers);
    const auto out = b.tensor("out", ElementType::int8, {1, rows, 9, count}, numbers);
    const auto from = b.constant<std::int32_t>("from", ElementType::int32, {4},
                                               std::vector<std::int32_t>{0, 0, 0, first});
    const auto size = b.constant<std::int32_t>("size", ElementType::int32, {4},
                                               std::vector<std::int32_t>{1, rows, 9, count});
    b.add(model::Op::slice, {in, from, size}, {out});
    b.output(out);
    return b.finish().value();
}

TEST(NpuElements, SlicesOfChannelsAreCopied) {
    for (const std::int32_t cores : {1, 3})
        for (const auto& [first, count] :
             {std::pair{0, 32}, {16, 48}, {64, 16}, {32, 5}, {48, 32}, {0, 79}}) {
            ElementComparison c;
            compare_with_cpu(slice_of(first, count), {.cores = cores}, 1, c);
            EXPECT_EQ(c.equal, c.all) << first << " " << count;
        }
    const auto reason_of = [](const model::Model& model) {
        return rk3588::mapping(model, {}, {}).value().at(0).reason;
    };
    EXPECT_THAT(reason_of(slice_of(8, 32)), testing::HasSubstr("begins at channel 8"));
    EXPECT_THAT(reason_of(slice_of(16, 32, 7)), testing::HasSubstr("rows or columns"));
}

/// Rows of several numbers of inputs and outputs, with and without biases, in both types.
TEST(NpuElements, FullyConnectedLayersAreTflitesButForFewBytes) {
    ElementComparison c;
    for (unsigned seed = 0; seed < 24; ++seed) {
        Drawn draw(seed);
        const auto type = seed % 2 == 0 ? ElementType::uint8 : ElementType::int8;
        const std::int32_t ins = 1 + static_cast<std::int32_t>(draw.random() % 700),
                           outs = 1 + static_cast<std::int32_t>(draw.random() % 150),
                           rows = 1 + static_cast<std::int32_t>(seed % 3);
        model::Builder b("a fully connected layer");
        const auto in = b.input("in", type, {rows, ins}, draw.numbers(type, 0.01F, 0.05F));
        std::vector<std::byte> weights(static_cast<std::size_t>(ins * outs));
        for (std::byte& w : weights) w = static_cast<std::byte>(draw.random());
        if (type == ElementType::int8) std::ranges::replace(weights, std::byte{0x80}, std::byte{1});
        const auto w =
            b.constant_bytes("weights", type, {outs, ins}, weights,
                             type == ElementType::int8 ? model::per_tensor(0.01F, 0)
                                                       : draw.numbers(type, 0.01F, 0.02F));
        auto bias = model::absent_tensor;
        if (seed % 4 < 2) {
            std::vector<std::int32_t> biases(static_cast<std::size_t>(outs));
            for (auto& each : biases)
                each = static_cast<std::int32_t>(draw.random() % 20000) - 10000;
            bias = b.constant<std::int32_t>("biases", ElementType::int32, {outs}, biases);
        }
        const auto out = b.tensor("out", type, {rows, outs}, draw.numbers(type, 0.3F, 0.6F));
        b.add(model::Op::fully_connected, {in, w, bias}, {out},
              model::FullyConnectedOptions{.activation = seed % 5 == 0 ? model::Activation::relu
                                                                       : model::Activation::none});
        b.output(out);
        SCOPED_TRACE(fmt::format("seed {}: {} inputs, {} outputs", seed, ins, outs));
        compare_with_cpu(b.finish().value(), {}, seed, c);
        if (testing::Test::HasFatalFailure()) return;
    }
    fmt::print("{} of {} bytes equal\n", c.equal, c.all);
    EXPECT_LE(c.most, 1);
    EXPECT_GE(share(c), 0.996);
}

/// A mean or a sum over height and width.
model::Model reduction(model::Op op, ElementType type, bool keeps, bool other_scale,
                       unsigned seed) {
    Drawn draw(seed);
    const auto side = static_cast<std::int32_t>(3 + seed % 5),
               channels = static_cast<std::int32_t>(5 + draw.random() % 90);
    const auto of_in = draw.numbers(type, 0.02F, 0.03F);
    auto of_out = other_scale ? draw.numbers(type, 0.015F, 0.03F) : of_in;
    if (op == model::Op::sum) {
        // TFLite's results wrap around: here none is beyond its type.
        of_out.scale[0] = of_in.scale[0] * static_cast<float>(side * side) *
                          (other_scale ? draw.scale(2.1F, 3) : 2);
        of_out.zero_point[0] = type == ElementType::uint8 ? 128 : 0;
    }
    model::Builder b("a reduction");
    const auto in = b.input("in", type, {1, side, side, channels}, of_in);
    const std::vector<std::int32_t> over{1, 2};
    const auto axes = b.constant<std::int32_t>("axes", ElementType::int32, {2}, over);
    const auto out = b.tensor("out", type,
                              keeps ? std::vector<std::int32_t>{1, 1, 1, channels}
                                    : std::vector<std::int32_t>{1, channels},
                              of_out);
    b.add(op, {in, axes}, {out}, model::ReducerOptions{.keep_dims = keeps});
    b.output(out);
    return b.finish().value();
}

/// TFLite drops the fraction of int8 means without kept dimensions, on both sides of zero: no
/// constants of the chip do.
TEST(NpuElements, MeansAndSumsOverSpaceAreTflitesButForFewBytes) {
    for (const auto op : {model::Op::mean, model::Op::sum})
        for (const auto type : {ElementType::uint8, ElementType::int8})
            for (const bool keeps : {false, true})
                for (const bool other_scale : {false, true}) {
                    ElementComparison c;
                    for (unsigned seed = 0; seed < 12; ++seed) {
                        SCOPED_TRACE(seed);
                        compare_with_cpu(reduction(op, type, keeps, other_scale, seed), {}, seed,
                                         c);
                        if (testing::Test::HasFatalFailure()) return;
                    }
                    const auto what = fmt::format("{} of {}, dimensions {}, {}",
                                                  op == model::Op::sum ? "SUM" : "MEAN",
                                                  name_of(type), keeps ? "kept" : "dropped",
                                                  other_scale ? "another scale" : "one scale");
                    fmt::print("{}: {} of {} bytes equal\n", what, c.equal, c.all);
                    EXPECT_LE(c.most, 1) << what;
                    const bool truncated = op == model::Op::mean && type == ElementType::int8 &&
                                           !keeps && !other_scale;
                    EXPECT_GE(share(c), truncated ? 0.4 : 0.97) << what;
                }
}

/// What averages drop of their fractions tables drop on both sides of zero.
TEST(NpuElements, MeansWithoutTheirFractionsAreTflitesByTable) {
    ElementComparison c;
    for (unsigned seed = 0; seed < 100; ++seed)
        compare_with_cpu(reduction(model::Op::mean, ElementType::int8, false, false, seed),
                         {.assume_sumlut = true}, seed, c);
    fmt::print("{} of {} bytes equal\n", c.equal, c.all);
    EXPECT_EQ(c.equal, c.all);
}

/// Parts that are placed take no task: a program of them alone would be none.
TEST(NpuElements, ConcatenationsAloneStayWithTheCpu) {
    model::Builder b("parts");
    const auto numbers = model::per_tensor(0.1F, 3);
    const auto a = b.input("a", ElementType::int8, {1, 4, 4, 16}, numbers);
    const auto c = b.input("c", ElementType::int8, {1, 4, 4, 16}, numbers);
    const auto out = b.tensor("out", ElementType::int8, {1, 4, 4, 32}, numbers);
    b.add(model::Op::concatenation, {a, c}, {out}, model::ConcatenationOptions{.axis = 3});
    b.output(out);
    const auto model = b.finish();
    ASSERT_TRUE(model) << model.error().message();
    const auto compiled = rk3588::compile(*model, {}, {.keep_islands = true});
    ASSERT_FALSE(compiled);
    EXPECT_EQ(compiled.error().cause, Cause::unsupported);
    EXPECT_THAT(compiled.error().message(), testing::HasSubstr("nothing that the chip computes"));
}

TEST(NpuElements, GreatestOfWindowsTakeAnAssumption) {
    ElementComparison c;
    for (unsigned seed = 0; seed < 12; ++seed) {
        const auto type = seed % 2 == 0 ? ElementType::uint8 : ElementType::int8;
        const auto kernel = static_cast<std::int32_t>(2 + seed % 3);
        const auto stride = static_cast<std::int32_t>(1 + seed % 2);
        const bool same = seed % 4 < 2;
        const auto out_side = [&](std::int32_t side) {
            return same ? (side + stride - 1) / stride : (side - kernel) / stride + 1;
        };
        model::Builder b("a pool");
        const auto numbers = model::per_tensor(0.1F, 3);
        const auto in = b.input("in", type, {1, 17, 12, 40}, numbers);
        const auto out = b.tensor("out", type, {1, out_side(17), out_side(12), 40}, numbers);
        b.add(model::Op::max_pool_2d, {in}, {out},
              model::Pool2dOptions{.padding = same ? model::Padding::same : model::Padding::valid,
                                   .stride_h = stride,
                                   .stride_w = stride,
                                   .filter_h = kernel,
                                   .filter_w = kernel});
        b.output(out);
        const auto plain = b.finish().value();
        const auto refused = rk3588::mapping(plain, {}, {});
        ASSERT_TRUE(refused);
        EXPECT_FALSE(refused->at(0).on_chip);
        EXPECT_THAT(refused->at(0).reason, testing::HasSubstr("`assume` ppu"));
        for (const std::int32_t cores : {1, 3}) {
            rk3588::Options numbers_of_ppu;
            numbers_of_ppu.assume_ppu = true;
            numbers_of_ppu.cores = cores;
            compare_with_cpu(plain, numbers_of_ppu, seed, c);
        }
    }
    EXPECT_EQ(c.equal, c.all);
}

// Three rows of so many pixels and channels are more than the CBUF holds.
TEST(NpuElements, ImagesAreCutIntoColumnsWhereNoRowFits) {
    for (const bool depthwise : {true, false}) {
        const std::int32_t channels = depthwise ? 192 : 160, outs = depthwise ? channels : 8;
        const std::int32_t width = 900, height = 4, stride = depthwise ? 1 : 2;
        std::vector<std::uint8_t> weights(
            static_cast<std::size_t>(9 * channels * (depthwise ? 1 : outs)));
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = static_cast<std::uint8_t>(120 + i * 7 % 17);
        model::Builder b("a wide image");
        const auto in = b.input("in", ElementType::uint8, {1, height, width, channels},
                                model::per_tensor(0.05F, 131));
        const auto w =
            b.constant<std::uint8_t>("w", ElementType::uint8,
                                     depthwise ? std::vector<std::int32_t>{1, 3, 3, channels}
                                               : std::vector<std::int32_t>{outs, 3, 3, channels},
                                     weights, model::per_tensor(0.01F, 128));
        const auto out =
            b.tensor("out", ElementType::uint8,
                     {1, (height + stride - 1) / stride, (width + stride - 1) / stride, outs},
                     model::per_tensor(depthwise ? 0.05F : 0.4F, 128));
        if (depthwise)
            b.add(model::Op::depthwise_conv_2d, {in, w, model::absent_tensor}, {out},
                  model::DepthwiseConv2dOptions{.padding = model::Padding::same,
                                                .stride_h = stride,
                                                .stride_w = stride,
                                                .depth_multiplier = 1});
        else
            b.add(model::Op::conv_2d, {in, w, model::absent_tensor}, {out},
                  model::Conv2dOptions{
                      .padding = model::Padding::same, .stride_h = stride, .stride_w = stride});
        b.output(out);
        ElementComparison c;
        rk3588::Options numbers;
        const auto plain = b.finish().value();
        const auto compiled = rk3588::compile(plain, numbers, {});
        ASSERT_TRUE(compiled) << compiled.error().message();
        const auto cut = std::ranges::find(
            compiled->unproven,
            "tasks for a part of the columns, with gaps between the rows of results",
            &rk3588::UnprovenForm::what);
        EXPECT_NE(cut, compiled->unproven.end());
        compare_with_cpu(plain, numbers, 5, c);
        EXPECT_LE(c.most, 1);
        EXPECT_GE(share(c), 0.99);
    }
}

}  // namespace
}  // namespace reef

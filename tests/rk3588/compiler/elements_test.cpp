// Element-wise operators, pools and images that are cut into columns, against the CPU's kernels.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "reef/model/builder.h"
#include "reef/runtime/session.h"
#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"

namespace reef {
namespace {

struct ElementComparison {
    std::size_t equal = 0, all = 0;
    int most = 0;
};

std::vector<std::byte> run_on(const model::Model& model, const char* device, unsigned seed,
                              bool is_npu) {
    runtime::SessionOptions options;
    options.devices = {{device}};
    options.require_npu = is_npu;
    auto session = runtime::Session::open(model, options);
    EXPECT_TRUE(session) << session.error().message();
    if (!session) return {};
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < session->input_count(); ++i)
        for (std::byte& b : session->input(i)) b = static_cast<std::byte>(random());
    const auto done = session->run();
    EXPECT_TRUE(done) << done.error().message();
    return {session->output(0).begin(), session->output(0).end()};
}

/// Every operator of the model runs on the chip.
void compare_with_cpu(const model::Model& plain, const rk3588::Options& numbers, unsigned seed,
                      ElementComparison& c) {
    const auto compiled = rk3588::compile(plain, numbers, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    for (const auto& op : compiled->operators) ASSERT_TRUE(op.on_chip) << op.name << op.reason;
    const auto got = run_on(compiled->model, "rk3588:sim", seed, true);
    const auto want = run_on(plain, "cpu", seed, false);
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
        EXPECT_LE(c.most, 1);
        EXPECT_GE(share(c), 0.9999);
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

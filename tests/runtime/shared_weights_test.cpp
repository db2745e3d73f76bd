// Sessions of one process and the packed weights that they share.
#include <gtest/gtest.h>

#include <array>
#include <latch>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "cpu/fast/shared_packing.h"
#include "reef/model/builder.h"
#include "reef/runtime/session.h"

namespace reef::runtime {
namespace {

using model::Op;

/// One operator, each network of which has weights of its own.
struct Network {
    Op op = Op::conv_2d;
    ElementType values = ElementType::uint8;
    ElementType weights = ElementType::uint8;

    [[nodiscard]] model::Model model() const;
};

struct Shapes {
    std::vector<std::int32_t> in, filter, out;
    model::Options options;
};

Shapes shapes_of(Op op) {
    switch (op) {
        case Op::depthwise_conv_2d:
            return {{1, 6, 6, 48},
                    {1, 5, 5, 48},
                    {1, 6, 6, 48},
                    model::DepthwiseConv2dOptions{.stride_h = 1, .stride_w = 1}};
        case Op::fully_connected:
            return {{1, 64}, {20, 64}, {1, 20}, model::FullyConnectedOptions{}};
        case Op::transpose_conv:
            return {{1, 6, 6, 16},
                    {8, 4, 4, 16},
                    {1, 12, 12, 8},
                    model::TransposeConvOptions{.stride_h = 2, .stride_w = 2}};
        default:
            return {{1, 6, 6, 16},
                    {40, 3, 3, 16},
                    {1, 6, 6, 40},
                    model::Conv2dOptions{.stride_h = 1, .stride_w = 1}};
    }
}

model::Model Network::model() const {
    const Shapes shapes = shapes_of(op);
    const std::int32_t channels = shapes.out.back();
    const bool is_float = values == ElementType::float32;
    const auto quantised = [](ElementType type, float scale) {
        return type == ElementType::float32 ? model::Quantization{} : model::per_tensor(scale, 0);
    };
    std::size_t bytes = weights == ElementType::float32 ? sizeof(float) : 1;
    for (const std::int32_t size : shapes.filter) bytes *= static_cast<std::size_t>(size);
    // As float32 they are small numbers.
    std::vector<std::byte> filter(bytes);
    for (std::size_t i = 0; i < bytes; ++i) filter[i] = static_cast<std::byte>(i * i % 31 + 1);
    auto filter_scale = quantised(weights, 0.5F);
    if (op == Op::depthwise_conv_2d && weights == ElementType::int8)
        filter_scale =
            model::per_channel(std::vector<float>(static_cast<std::size_t>(channels), 0.5F), 3);

    model::Builder builder("shared");
    const auto in = builder.input("in", values, shapes.in, quantised(values, 1));
    const auto constant =
        builder.constant_bytes("weights", weights, shapes.filter, filter, std::move(filter_scale));
    const auto bias = builder.constant_bytes(
        "bias", is_float ? ElementType::float32 : ElementType::int32, {channels},
        std::vector<std::byte>(static_cast<std::size_t>(channels) * 4), {});
    const auto out = builder.tensor("out", values, shapes.out, quantised(values, 64));
    if (op == Op::transpose_conv) {
        const auto shape =
            builder.constant<std::int32_t>("shape", ElementType::int32, {4}, shapes.out);
        builder.add(op, {shape, constant, in, bias}, {out}, shapes.options);
    } else {
        builder.add(op, {in, constant, bias}, {out}, shapes.options);
    }
    builder.output(out);
    return builder.finish().value();
}

std::vector<Network> networks() {
    constexpr auto u8 = ElementType::uint8, i8 = ElementType::int8, f32 = ElementType::float32;
    std::vector<Network> all;
    for (const Op op :
         {Op::conv_2d, Op::depthwise_conv_2d, Op::fully_connected, Op::transpose_conv}) {
        for (const ElementType type : {u8, i8, f32}) all.push_back({op, type, type});
        if (op != Op::transpose_conv) all.push_back({op, f32, i8});
    }
    return all;
}

Result<Session> open(const Network& network) {
    return Session::open(network.model(), {});
}

TEST(SharedWeights, ArePackedOnceAndGoWithTheLastSession) {
    if (cpu::simd_target() == "SCALAR") GTEST_SKIP() << "a target without vectors packs nothing";
    const cpu::SharedPackings before = cpu::shared_packings();
    for (const Network& network : networks()) {
        SCOPED_TRACE(model::builtin_name(network.op));
        auto first = open(network);
        ASSERT_TRUE(first) << first.error().message();
        const cpu::SharedPackings one = cpu::shared_packings();
        EXPECT_GT(one.bytes, before.bytes);
        auto second = std::make_optional(open(network));
        ASSERT_TRUE(*second) << second->error().message();
        EXPECT_EQ(cpu::shared_packings(), one);
        first = std::unexpected(Error{});
        EXPECT_EQ(cpu::shared_packings(), one);
        const auto third = open(network);
        EXPECT_EQ(cpu::shared_packings(), one);
        second.reset();
        EXPECT_EQ(cpu::shared_packings(), one);
    }
    EXPECT_EQ(cpu::shared_packings(), before);
}

TEST(SharedWeights, OfSessionsThatAreOpenedAtOnceArePackedOnce) {
    if (cpu::simd_target() == "SCALAR") GTEST_SKIP() << "a target without vectors packs nothing";
    constexpr std::size_t threads = 2;
    const cpu::SharedPackings before = cpu::shared_packings();
    for (const Network& network : networks()) {
        SCOPED_TRACE(model::builtin_name(network.op));
        const auto alone = [&] {
            const auto session = open(network);
            return cpu::shared_packings();
        }();
        for (int round = 0; round < 10; ++round) {
            std::latch start(threads);
            std::array<std::optional<Result<Session>>, threads> sessions;
            {
                std::vector<std::jthread> openers;
                for (auto& session : sessions)
                    openers.emplace_back([&] {
                        start.arrive_and_wait();
                        session = open(network);
                    });
            }
            for (const auto& session : sessions) ASSERT_TRUE(session && *session);
            EXPECT_EQ(cpu::shared_packings(), alone);
        }
        EXPECT_EQ(cpu::shared_packings(), before);
    }
}

}  // namespace
}  // namespace reef::runtime

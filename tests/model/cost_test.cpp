#include "reef/model/cost.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "model/small_models.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::model {
namespace {

/// MobileNet v1 from its paper's table: a 3x3 convolution of stride 2, thirteen depthwise separable
/// blocks, a classifier over 1001 classes. `quarters` is the width multiplier times 4.
std::int64_t mobilenet_v1_macs(std::int64_t size, std::int64_t quarters) {
    const auto width = [&](std::int64_t channels) { return channels * quarters / 4; };
    struct Block {
        std::int64_t channels, stride;
    };
    constexpr std::array<Block, 13> blocks{{{64, 1},
                                            {128, 2},
                                            {128, 1},
                                            {256, 2},
                                            {256, 1},
                                            {512, 2},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {512, 1},
                                            {1024, 2},
                                            {1024, 1}}};
    size /= 2;
    std::int64_t channels = width(32);
    std::int64_t macs = size * size * channels * 27;
    for (const Block& block : blocks) {
        size /= block.stride;
        macs += size * size * channels * 9;
        macs += size * size * channels * width(block.channels);
        channels = width(block.channels);
    }
    return macs + channels * 1001;
}

/// MobileNet v2, width 1: inverted residual blocks (expansion, channels, repeats, stride).
std::int64_t mobilenet_v2_macs(std::int64_t size, std::int64_t classes) {
    struct Stage {
        std::int64_t expansion, channels, repeats, stride;
    };
    constexpr std::array<Stage, 7> stages{{{1, 16, 1, 1},
                                           {6, 24, 2, 2},
                                           {6, 32, 3, 2},
                                           {6, 64, 4, 2},
                                           {6, 96, 3, 1},
                                           {6, 160, 3, 2},
                                           {6, 320, 1, 1}}};
    size /= 2;
    std::int64_t channels = 32;
    std::int64_t macs = size * size * channels * 27;
    for (const Stage& stage : stages) {
        for (std::int64_t i = 0; i < stage.repeats; ++i) {
            const std::int64_t wide = channels * stage.expansion;
            if (stage.expansion > 1) macs += size * size * channels * wide;
            if (i == 0) size /= stage.stride;
            macs += size * size * wide * 9;
            macs += size * size * wide * stage.channels;
            channels = stage.channels;
        }
    }
    return macs + size * size * channels * 1280 + 1280 * classes;
}

Cost cost_of_file(const std::filesystem::path& path) {
    const Model model = load_tflite(path.string()).value();
    return cost_of(model, model.subgraphs[0]);
}

TEST(Cost, MobileNetV1) {
    REEF_SHARED_OR_SKIP(shared);
    EXPECT_EQ(cost_of_file(shared / "data/models/mobilenet_v1_0.25_128_quant.tflite").macs,
              mobilenet_v1_macs(128, 1));
    EXPECT_EQ(cost_of_file(shared / "data/models/mobilenet_v1_0.5_160_quant.tflite").macs,
              mobilenet_v1_macs(160, 2));
}

TEST(Cost, MobileNetV2) {
    REEF_SHARED_OR_SKIP(shared);
    const Model model =
        load_tflite((shared / "data/models/tf2_mobilenet_v2_1.0_224_ptq.tflite").string()).value();
    const Subgraph& graph = model.subgraphs[0];
    const Tensor& output = graph.tensors[static_cast<std::size_t>(graph.outputs[0])];
    EXPECT_EQ(cost_of(model, graph).macs, mobilenet_v2_macs(224, output.shape.back()));
}

// 28 steps of the four gates' input and recurrent weights.
TEST(Cost, Lstm) {
    REEF_SHARED_OR_SKIP(shared);
    const Model model =
        load_tflite((shared / "data/models/keras_lstm_mnist_ptq.tflite").string()).value();
    const Subgraph& graph = model.subgraphs[0];
    for (const Operator& op : graph.operators) {
        if (op.code.builtin != Op::unidirectional_sequence_lstm) continue;
        const auto& input = graph.tensors[static_cast<std::size_t>(op.inputs[0])];
        const std::int64_t units =
            graph.tensors[static_cast<std::size_t>(op.outputs[0])].shape.back();
        const std::int64_t features = input.shape[2];
        EXPECT_EQ(input.shape[1], 28);
        EXPECT_EQ(cost_of(model, graph, op).macs, 28 * 4 * units * (features + units));
        return;
    }
    FAIL() << "no LSTM in the model";
}

TEST(Cost, PlainModel) {
    const Model model = test::plain_model();
    const Subgraph& graph = model.subgraphs[0];
    EXPECT_EQ(cost_of(model, graph, graph.operators[0]),
              (Cost{.macs = 16 * 3 * 9 * 2, .weight_bytes = 54, .activation_bytes = 32 + 48}));
    EXPECT_EQ(cost_of(model, graph, graph.operators[1]),
              (Cost{.macs = 0, .weight_bytes = 8, .activation_bytes = 96}));
    EXPECT_EQ(cost_of(model, graph, graph.operators[2]),
              (Cost{.macs = 240, .weight_bytes = 240, .activation_bytes = 53}));
    EXPECT_EQ(cost_of(model, graph).macs, 864 + 240);
}

TEST(Cost, WhatIsKnownBeforeTheRunIsNoActivation) {
    const Model model = test::plain_model();
    const Subgraph& graph = model.subgraphs[0];
    const std::vector<TensorIndex> known{graph.operators[0].outputs[0]};
    EXPECT_EQ(cost_of(model, graph, graph.operators[0], known),
              (Cost{.macs = 16 * 3 * 9 * 2, .weight_bytes = 54, .activation_bytes = 32}));
    EXPECT_EQ(cost_of(model, graph, graph.operators[1], known),
              (Cost{.macs = 0, .weight_bytes = 8, .activation_bytes = 48}));
    EXPECT_EQ(cost_of(model, graph, known).activation_bytes,
              cost_of(model, graph).activation_bytes - 2 * 48);
}

TEST(Cost, TransposeConvAndDepthwise) {
    Builder b("cost");
    const std::vector<std::int32_t> shape{1, 8, 8, 3};
    const std::vector<std::int8_t> filter(3UL * 2 * 2 * 5, 1);
    const std::vector<std::int8_t> taps(2UL * 3 * 6, 1);
    const auto s = b.constant<std::int32_t>("shape", ElementType::int32, {4}, shape);
    const auto f = b.constant<std::int8_t>("f", ElementType::int8, {3, 2, 2, 5}, filter);
    const auto t = b.constant<std::int8_t>("t", ElementType::int8, {1, 2, 3, 6}, taps);
    const auto in = b.input("in", ElementType::int8, {1, 4, 4, 5});
    const auto out = b.tensor("out", ElementType::int8, {1, 8, 8, 3});
    const auto deep = b.tensor("deep", ElementType::int8, {1, 8, 8, 6});
    b.add(Op::transpose_conv, {s, f, in}, {out}, TransposeConvOptions{});
    b.add(Op::depthwise_conv_2d, {out, t}, {deep}, DepthwiseConv2dOptions{.depth_multiplier = 2});
    const Model model = b.finish().value();
    const Subgraph& graph = model.subgraphs[0];
    EXPECT_EQ(cost_of(model, graph, graph.operators[0]).macs, 4 * 4 * 5 * 2 * 2 * 3);
    EXPECT_EQ(cost_of(model, graph, graph.operators[1]).macs, 8 * 8 * 6 * 2 * 3);
}

TEST(Cost, MatrixProductsAndFiltersOverTime) {
    Builder b("cost");
    const auto x = b.input("x", ElementType::float32, {2, 7, 3});
    const auto y = b.input("y", ElementType::float32, {2, 7, 5});
    const auto product = b.tensor("product", ElementType::float32, {2, 3, 5});
    b.add(Op::batch_matmul, {x, y}, {product}, BatchMatMulOptions{.adj_x = true});
    const auto in = b.input("in", ElementType::float32, {4, 9});
    const auto features = b.input("features", ElementType::float32, {6, 9});
    const auto time = b.input("time", ElementType::float32, {6, 10});
    const auto state = b.variable("state", ElementType::float32, {4, 60});
    const auto out = b.tensor("out", ElementType::float32, {4, 3});
    b.add(Op::svdf, {in, features, time, absent_tensor, state}, {out}, SvdfOptions{.rank = 2});
    const Model model = b.finish().value();
    const Subgraph& graph = model.subgraphs[0];
    EXPECT_EQ(cost_of(model, graph, graph.operators[0]).macs, 2 * 3 * 5 * 7);
    EXPECT_EQ(cost_of(model, graph, graph.operators[1]).macs, 4 * (6 * 9 + 6 * 10));
}

// Shapes of a model that reads may multiply beyond 64 bits, and ranks may be anything.
TEST(Cost, HostileShapes) {
    Builder b("huge");
    const auto in = b.input("in", ElementType::int8, {1, 1 << 19, 1 << 20, 2});
    const auto filter = b.input("filter", ElementType::int8, {1, 1 << 13, 1 << 13, 1 << 14});
    const auto flat = b.input("flat", ElementType::int8, {});
    const auto out = b.tensor("out", ElementType::int8, {1, 1 << 19, 1 << 20, 2});
    b.add(Op::conv_2d, {in, filter}, {out});
    b.add(Op::conv_2d, {in, flat}, {out});
    b.add(Op::fully_connected, {}, {});
    b.add(Op::unidirectional_sequence_lstm, {flat}, {});
    const Model model = b.finish().value();
    const Subgraph& graph = model.subgraphs[0];
    EXPECT_EQ(cost_of(model, graph).macs, std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(cost_of(model, graph, graph.operators[1]).macs, 0);
    EXPECT_EQ(cost_of(model, graph, graph.operators[3]).macs, 0);
}

}  // namespace
}  // namespace reef::model

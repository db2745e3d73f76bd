#include "reef/model/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "model/small_models.h"
#include "reef/model/tflite.h"

namespace reef::model {
namespace {

using testing::HasSubstr;

TEST(Builder, GivesWhatWasAskedFor) {
    const Model m = test::plain_model();
    const Subgraph& graph = m.subgraphs[0];
    EXPECT_EQ(m.description, "plain");
    EXPECT_EQ(graph.inputs, std::vector<TensorIndex>{0});
    EXPECT_EQ(graph.outputs, std::vector<TensorIndex>{7});
    EXPECT_EQ(place_of(graph, 2), "operator 2 FULLY_CONNECTED");
    EXPECT_EQ(place_of_tensor(graph, 1), "tensor 1 'filter'");
    EXPECT_EQ(graph.operators[0].code.version, 3);
    EXPECT_TRUE(m.buffers[0].empty());
    EXPECT_EQ(m.constant(graph.tensors[1]).size(), 54U);
    EXPECT_TRUE(graph.tensors[1].quantization->per_channel());
    EXPECT_FALSE(graph.tensors[3].quantization.has_value());
    EXPECT_EQ(shape_text(graph.tensors[0].shape), "1x4x4x2");
    EXPECT_EQ(shape_text({}), "scalar");
}

TEST(Builder, CopiesConstants) {
    Builder b("copy");
    std::vector<float> values{1, 2};
    const auto c = b.constant<float>("c", ElementType::float32, {2}, values);
    const auto out = b.tensor("out", ElementType::float32, {2});
    b.add(Op::relu, {c}, {out});
    values[0] = 9;
    const Model m = b.finish().value();
    float first = 0;
    std::memcpy(&first, m.constant(m.subgraphs[0].tensors[0]).data(), sizeof(first));
    EXPECT_EQ(first, 1);
}

TEST(Builder, IsEmptyAfterFinish) {
    Builder b("first");
    b.output(b.input("in", ElementType::uint8, {1}));
    ASSERT_TRUE(b.finish());
    const Model second = b.finish().value();
    EXPECT_TRUE(second.subgraphs[0].tensors.empty());
    EXPECT_EQ(second.description, "");
}

struct Wrong {
    std::function<void(Builder&)> build;
    std::string message;
};

TEST(Builder, RefusesWhatBreaksTheRules) {
    const std::vector<std::int8_t> three{1, 2, 3};
    const auto i8 = ElementType::int8;
    const std::vector<Wrong> cases{
        {[&](Builder& b) {
             b.constant<std::int8_t>("c", i8, {2, 2}, three);
         },
         "subgraph 0: tensor 0 'c': buffer 1 holds 3 bytes, but 2x2 int8 needs 4"},
        {[&](Builder& b) { b.constant_bytes("c", i8, {2}, {}, {}); },
         "tensor 0 'c': a constant without data"},
        {[&](Builder& b) {
             b.input("in", i8, {2, -1});
         },
         "subgraph 0: tensor 0 'in': negative size -1 in its shape"},
        {[&](Builder& b) {
             b.input("in", i8, {1 << 30, 1 << 30});
         },
         "subgraph 0: tensor 0 'in': the shape 1073741824x1073741824 has more than 2^40 bytes"},
        {[&](Builder& b) {
             b.input("in", i8, {2, 3}, per_channel({1, 2}, 1));
         },
         "subgraph 0: tensor 0 'in': 2 scales for the 3 indices of axis 1"},
        {[&](Builder& b) {
             b.input("in", i8, {2, 3}, per_channel({1, 2}, 2));
         },
         "subgraph 0: tensor 0 'in': quantised axis 2 of a tensor with 2 axes"},
        {[&](Builder& b) { b.input("in", i8, {2}, per_tensor(1, 128)); },
         "subgraph 0: tensor 0 'in': zero point 128 of type int8"},
        {[&](Builder& b) { b.input("in", i8, {2}, per_tensor(-1, 0)); },
         "subgraph 0: tensor 0 'in': scale -1"},
        {[&](Builder& b) { b.output(3); }, "subgraph 0: graph output 0 is tensor 3 of 0"},
        {[&](Builder& b) {
             const auto in = b.input("in", i8, {2});
             b.add(Op::relu, {in}, {in});
         },
         "subgraph 0: operator 0 RELU: tensor 0 'in' is both input and output"},
        {[&](Builder& b) {
             const auto c = b.constant<std::int8_t>("c", i8, {3}, three);
             b.add(Op::relu, {b.input("in", i8, {3})}, {c});
         },
         "subgraph 0: operator 0 RELU: output tensor 0 'c' has constant data"},
        {[&](Builder& b) { b.add(Op::relu, {b.input("in", i8, {3})}, {absent_tensor}); },
         "subgraph 0: operator 0 RELU: output 0 is tensor -1 of 1"},
        {[&](Builder& b) {
             b.add(Op::conv_2d, {}, {}, Conv2dOptions{.padding = static_cast<Padding>(2)});
         },
         "subgraph 0: operator 0 CONV_2D: padding number 2"},
    };
    for (const Wrong& wrong : cases) {
        Builder b("wrong");
        wrong.build(b);
        const auto model = b.finish();
        ASSERT_FALSE(model) << wrong.message;
        EXPECT_EQ(model.error().cause, Cause::bad_argument);
        EXPECT_EQ(model.error().message(), wrong.message);
    }
}

TEST(Places, HostileNamesDoNotReachTheTerminal) {
    Subgraph graph;
    Tensor tensor;
    tensor.name = "a\x1b[2J\n" + std::string(500, 'x');
    graph.tensors.push_back(tensor);
    const std::string place = place_of_tensor(graph, 0);
    EXPECT_EQ(place.find('\x1b'), std::string::npos);
    EXPECT_LT(place.size(), 200U);
}

TEST(OperatorNames, KnownAndUnknown) {
    EXPECT_EQ(builtin_name(Op::transpose_conv), "TRANSPOSE_CONV");
    EXPECT_EQ(builtin_name(static_cast<Op>(209)), "STABLEHLO_CASE");
    EXPECT_EQ(builtin_name(static_cast<Op>(210)), "BUILTIN_210");
    EXPECT_EQ(builtin_name(static_cast<Op>(-1)), "BUILTIN_-1");
}

}  // namespace
}  // namespace reef::model

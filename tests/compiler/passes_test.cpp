// The passes that hold for every chip, each alone on graphs of a few operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "compiler/legalise.h"
#include "compiler/partition.h"
#include "reef/model/builder.h"

namespace reef::compiler {
namespace {

using model::Op;
using model::TensorIndex;
using testing::ElementsAre;

const model::Quantization numbers = model::per_tensor(0.05F, 3);

TensorIndex tensor(model::Builder& builder, const char* name, std::vector<std::int32_t> shape) {
    return builder.tensor(name, ElementType::uint8, std::move(shape), numbers);
}

TensorIndex convolution(model::Builder& builder, TensorIndex from, TensorIndex to,
                        std::vector<std::int32_t> weights) {
    std::size_t size = 1;
    for (const auto n : weights) size *= static_cast<std::size_t>(n);
    const std::vector<std::uint8_t> data(size, 9);
    const auto constant = builder.constant<std::uint8_t>("weights", ElementType::uint8,
                                                         std::move(weights), data, numbers);
    builder.add(Op::conv_2d, {from, constant}, {to},
                model::Conv2dOptions{model::Padding::valid, 1, 1, 1, 1, Activation::none, {}});
    return to;
}

/// What a byte cannot hold would be cut off in every pass behind this one.
TEST(PassRead, NumbersThatNoByteHasAreTheValuesProblem) {
    for (const auto& [type, zero, scale] :
         {std::tuple(ElementType::uint8, std::int64_t{300}, 0.05F),
          std::tuple(ElementType::uint8, std::int64_t{-1}, 0.05F),
          std::tuple(ElementType::int8, std::int64_t{128}, 0.05F),
          std::tuple(ElementType::int8, std::int64_t{1} << 40, 0.05F),
          std::tuple(ElementType::int8, std::int64_t{0}, std::numeric_limits<float>::infinity())}) {
        model::Builder builder("odd");
        model::Quantization odd = numbers;
        odd.scale = {scale};
        odd.zero_point = {zero};
        const auto in = builder.input("in", type, {1, 2, 2, 4}, odd);
        const auto out = builder.tensor("out", type, {1, 2, 2, 4}, numbers);
        builder.add(Op::quantize, {in}, {out});
        builder.output(out);
        const auto model = builder.finish();
        if (!model) continue;  // refused before
        EXPECT_NE(read_graph(*model).values[0].problem, "") << zero;
    }
}

TEST(PassLegalise, PadsAndReshapesBecomeWindows) {
    model::Builder builder("pad");
    const auto in = builder.input("in", ElementType::uint8, {1, 6, 6, 4}, numbers);
    const std::vector<std::int32_t> widths{0, 0, 1, 1, 2, 0, 0, 0};
    const auto list = builder.constant<std::int32_t>("widths", ElementType::int32, {4, 2}, widths);
    const auto padded = tensor(builder, "padded", {1, 8, 8, 4});
    builder.add(Op::pad, {in, list}, {padded});
    const auto image =
        convolution(builder, padded, tensor(builder, "image", {1, 6, 6, 8}), {8, 3, 3, 4});
    const std::vector<std::int32_t> shape{1, 288};
    const auto to = builder.constant<std::int32_t>("shape", ElementType::int32, {2}, shape);
    const auto flat = tensor(builder, "flat", {1, 288});
    builder.add(Op::reshape, {image, to}, {flat}, model::ReshapeOptions{});
    const std::vector<std::uint8_t> data(5 * 288, 9);
    const auto weights =
        builder.constant<std::uint8_t>("dense", ElementType::uint8, {5, 288}, data, numbers);
    const auto out = tensor(builder, "out", {1, 5});
    builder.add(Op::fully_connected, {flat, weights}, {out}, model::FullyConnectedOptions{});
    builder.output(out);
    const auto model = builder.finish().value();

    Graph graph = read_graph(model);
    legalise(graph, {}, 240);
    EXPECT_TRUE(std::holds_alternative<Folded>(graph.nodes[0].operation));
    const auto& conv = std::get<Convolution>(graph.nodes[1].operation);
    EXPECT_EQ(conv.window.top, 1);
    EXPECT_EQ(conv.window.left, 2);
    EXPECT_EQ(graph.nodes[1].inputs.front(), static_cast<ValueId>(in));
    const auto& dense = std::get<Convolution>(graph.nodes[3].operation);
    EXPECT_EQ(dense.window.kernel_h, 6);
    EXPECT_EQ(dense.in_channels, 8);

    // Fewer taps than the image has pixels: the RESHAPE stays.
    Graph few = read_graph(model);
    legalise(few, {{1, "it is excluded"}}, 9);
    EXPECT_TRUE(std::holds_alternative<Reshape>(few.nodes[2].operation));
    EXPECT_EQ(std::get<Unknown>(few.nodes[1].operation).why, "it is excluded");
}

/// Takes all but LOGISTIC.
class NoLogistic final : public Target {
  public:
    [[nodiscard]] std::string refusal(const Graph&, const Node& node) const override {
        return std::holds_alternative<Logistic>(node.operation) ? "it is logistic" : "";
    }
};

/// Two branches of one input, one of which the CPU interrupts, and a sum of both.
model::Model interrupted() {
    model::Builder builder("interrupted");
    const std::vector<std::int32_t> shape{1, 4, 4, 8};
    const auto in = builder.input("in", ElementType::uint8, shape, numbers);
    const auto a = tensor(builder, "a", shape), b = tensor(builder, "b", shape),
               c = tensor(builder, "c", shape), d = tensor(builder, "d", shape);
    builder.add(Op::add, {in, in}, {a}, model::AddOptions{});
    builder.add(Op::logistic, {a}, {b});
    builder.add(Op::add, {in, a}, {c}, model::AddOptions{});
    builder.add(Op::add, {b, c}, {d}, model::AddOptions{});
    builder.output(d);
    return builder.finish().value();
}

TEST(PassPartition, ProgramsAreAsFewAsTheOrderAllows) {
    const auto model = interrupted();
    Graph graph = read_graph(model);
    const Partition parts = partition(graph, NoLogistic{}, 9);
    ASSERT_EQ(parts.programs.size(), 2U);
    EXPECT_THAT(parts.programs[0].nodes, ElementsAre(0, 2));
    EXPECT_THAT(parts.programs[1].nodes, ElementsAre(3));
    EXPECT_EQ(parts.programs[0].outputs.size(), 2U) << "for the CPU, and for the second";
    EXPECT_EQ(parts.programs[1].inputs.size(), 2U);
    EXPECT_THAT(parts.reasons, ElementsAre("", "it is logistic", "", ""));
    std::vector<bool> programs;
    for (const auto& item : parts.order) programs.push_back(item.program);
    EXPECT_THAT(programs, ElementsAre(true, false, true));
}

TEST(PassPartition, TheLargestStaysWhereOneIsAskedFor) {
    const auto model = interrupted();
    Graph graph = read_graph(model);
    const Partition parts = partition(graph, NoLogistic{}, 1);
    ASSERT_EQ(parts.programs.size(), 1U);
    EXPECT_THAT(parts.programs[0].nodes, ElementsAre(0, 2));
    EXPECT_NE(parts.reasons[3], "");
}

}  // namespace
}  // namespace reef::compiler

// The Edge TPU's containers and parameters, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "reef/chip/compiler.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/numerics.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/params.h"
#include "reef/edgetpu/retarget.h"
#include "reef/model/builder.h"
#include "reef/runtime/session.h"

namespace {

using testing::HasSubstr;
namespace edgetpu = reef::edgetpu;
namespace model = reef::model;

TEST(Promised, WeightsGoIntoTheChipsLayoutAndBack) {
    const edgetpu::LayerShape shape{
        .kind = edgetpu::LayerKind::fully_connected, .in_channels = 4, .out_channels = 4};
    const auto layout = edgetpu::layout_of(shape, {.biases = true});
    ASSERT_TRUE(layout) << layout.error().message();
    std::array<std::byte, 16> weights{};
    weights[5] = std::byte{77};
    const std::array<std::int32_t, 4> biases = {1, -2, 3, -4};
    std::vector<std::byte> blob(layout->size_bytes);
    ASSERT_TRUE(edgetpu::encode_layer(
        *layout, {.type = edgetpu::WeightType::uint8, .weights = weights, .biases = biases}, blob));
    std::array<std::byte, 16> back{};
    std::array<std::int32_t, 4> biases_back{};
    ASSERT_TRUE(edgetpu::decode_layer(*layout, blob,
                                      {.type = edgetpu::WeightType::uint8,
                                       .weights = back,
                                       .biases = biases_back,
                                       .multipliers = {},
                                       .zero_points = {}}));
    EXPECT_EQ(back, weights);
    EXPECT_EQ(biases_back, biases);
}

TEST(Promised, PackagesAreReadAndWritten) {
    EXPECT_EQ(edgetpu::to_string(edgetpu::ExecutableType::execution_only), "EXECUTION_ONLY");
    EXPECT_FALSE(edgetpu::read_package(reef::SharedBytes::copy_of(reef::as_bytes("no package"))));
    EXPECT_FALSE(edgetpu::computing_executable(edgetpu::Package{}));
}

TEST(Promised, PlainModelsAreCompiledForTheChip) {
    model::Builder builder("a relu");
    const auto quantization = model::per_tensor(0.05F, 128);
    const std::vector<std::int32_t> shape = {1, 8, 8, 4};
    const auto in = builder.input("in", reef::ElementType::uint8, shape, quantization);
    const auto out = builder.tensor("out", reef::ElementType::uint8, shape, quantization);
    builder.add(model::Op::relu, {in}, {out});
    builder.output(out);
    const auto compiled = edgetpu::compile(builder.finish().value(), reef::chip::CompileOptions{});
    ASSERT_TRUE(compiled) << compiled.error().message();
    ASSERT_EQ(compiled->programs.size(), 1U);
    EXPECT_EQ(compiled->programs[0].operators, 1U);
    EXPECT_TRUE(edgetpu::is_compiled(compiled->model.subgraphs[0].operators[0]));
    EXPECT_FALSE(edgetpu::compiler_passes().empty());
}

TEST(Promised, PlainModelsAreComputedInTheChipsArithmetic) {
    model::Builder builder("twice");
    const auto quantization = model::per_tensor(0.05F, 128);
    const auto in = builder.input("in", reef::ElementType::uint8, {1, 4}, quantization);
    const auto out = builder.tensor("out", reef::ElementType::uint8, {1, 4}, quantization);
    builder.add(model::Op::add, {in, in}, {out}, model::AddOptions{});
    builder.output(out);
    auto session = reef::runtime::Session::open(builder.finish().value(),
                                                {.arithmetic = &edgetpu::arithmetic()});
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_THAT(session->placements().front().reason, HasSubstr("as the Edge TPU computes it"));
    ASSERT_TRUE(session->run());
}

TEST(Promised, OnlyCompiledModelsAreRetargeted) {
    model::Builder builder("plain");
    const auto in = builder.input("in", reef::ElementType::uint8, {1, 2});
    builder.output(in);
    const auto plain = builder.finish().value();
    const auto result = edgetpu::retarget(plain, plain, {});
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message(), HasSubstr("compiled"));
}

}  // namespace

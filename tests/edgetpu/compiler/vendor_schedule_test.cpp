// The vendor's schedule: byte for byte the programs of the vendor's compiler, where they are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "compile/verification.h"
#include "compiler/random_network.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/model/builder.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using testing::HasSubstr;

const CompileOptions vendor_schedule{.schedule = chip::Schedule::vendor};

Package package_of(const model::Model& model) {
    return std::move(packages_of(model).value().front().package);
}

void expect_same_program(const Executable& mine, const Executable& theirs) {
    ASSERT_EQ(mine.type, theirs.type);
    ASSERT_EQ(mine.bitstreams.size(), theirs.bitstreams.size());
    for (std::size_t i = 0; i < mine.bitstreams.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(mine.bitstreams[i].instructions.view(),
                                       theirs.bitstreams[i].instructions.view()));
        EXPECT_EQ(mine.bitstreams[i].field_offsets, theirs.bitstreams[i].field_offsets);
    }
    EXPECT_TRUE(std::ranges::equal(mine.parameters.view(), theirs.parameters.view()));
    EXPECT_EQ(mine.used_narrow_memory_bytes_per_tile, theirs.used_narrow_memory_bytes_per_tile);
    EXPECT_EQ(mine.dma_hints, theirs.dma_hints);
    ASSERT_EQ(mine.outputs.size(), theirs.outputs.size());
    for (std::size_t i = 0; i < mine.outputs.size(); ++i) {
        EXPECT_EQ(mine.outputs[i].size_bytes, theirs.outputs[i].size_bytes);
        EXPECT_EQ(std::get<OutputLayer>(mine.outputs[i].kind).layout,
                  std::get<OutputLayer>(theirs.outputs[i].kind).layout);
    }
}

class VendorSchedule : public testing::TestWithParam<const char*> {};

/// Real sticks have run the three convolutions' programs with the simulator's bytes.
TEST_P(VendorSchedule, GivesTheVendorsProgram) {
    REEF_SHARED_OR_SKIP(shared);
    const std::string path = (shared / "data/edgetpu" / GetParam()).string();
    const auto compiled = compile(test::load_model(path + ".tflite"), vendor_schedule);
    ASSERT_TRUE(compiled) << compiled.error().message();
    const Package mine = package_of(compiled->model);
    const Package theirs = package_of(test::load_model(path + "_edgetpu.tflite"));
    ASSERT_EQ(mine.executables.size(), theirs.executables.size());
    for (const ExecutableType type :
         {ExecutableType::execution_only, ExecutableType::parameter_caching}) {
        ASSERT_NE(mine.find(type), nullptr);
        ASSERT_NE(theirs.find(type), nullptr);
        expect_same_program(*mine.find(type), *theirs.find(type));
    }
}

INSTANTIATE_TEST_SUITE_P(Layers, VendorSchedule,
                         testing::Values("templates/dense_256", "templates/dense_1024",
                                         "silicon/conv2d_12x176x32_to_32_k3_s1_same_quant",
                                         "silicon/conv2d_12x184x32_to_32_k3_s1_same_quant",
                                         "silicon/conv2d_12x192x32_to_32_k3_s1_same_quant"),
                         [](const auto& layer) {
                             std::string name = layer.param;
                             std::ranges::replace_if(
                                 name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                             return name;
                         });

struct Shape {
    std::int32_t height, width, channels;
};

/// One layer: a convolution of 3x3, or FULLY_CONNECTED where there is no image.
model::Model one_layer(const Shape& shape, std::int32_t bias = 0) {
    const bool dense = shape.height == 0;
    const std::int32_t c = shape.channels, taps = dense ? 1 : 9;
    model::Builder builder("layer");
    std::vector<std::int32_t> image{1, shape.height, shape.width, c};
    if (dense) image = {1, c};
    const auto in = builder.input("in", ElementType::int8, image, model::per_tensor(0.02F, -3));
    const auto out = builder.tensor("out", ElementType::int8, image, model::per_tensor(0.5F, 4));
    std::mt19937 random(7);
    std::vector<std::int8_t> weights(static_cast<std::size_t>(c * taps * c));
    for (auto& w : weights) w = static_cast<std::int8_t>(random());
    std::vector<float> scales(static_cast<std::size_t>(c));
    for (auto& s : scales) s = 0.001F * static_cast<float>(1 + random() % 9);
    std::vector<float> bias_scales(scales);
    for (auto& s : bias_scales) s *= 0.02F;
    const auto kernel =
        dense ? std::vector<std::int32_t>{c, c} : std::vector<std::int32_t>{c, 3, 3, c};
    const auto w =
        builder.constant("w", ElementType::int8, kernel, std::as_bytes(std::span(weights)),
                         model::per_channel(scales, 0));
    const std::vector<std::int32_t> biases(static_cast<std::size_t>(c), bias);
    const auto b = builder.constant("b", ElementType::int32, {c}, std::as_bytes(std::span(biases)),
                                    model::per_channel(bias_scales, 0));
    if (dense)
        builder.add(model::Op::fully_connected, {in, w, b}, {out}, model::FullyConnectedOptions{});
    else
        builder.add(model::Op::conv_2d, {in, w, b}, {out},
                    model::Conv2dOptions{.stride_h = 1, .stride_w = 1});
    builder.output(out);
    return builder.finish().value();
}

/// Both orders of a convolution's loops, one and two groups of channels.
TEST(VendorScheduleOf, GivesTheBytesOfTheChipsArithmeticOnOtherShapes) {
    for (const Shape& shape : {Shape{8, 64, 64}, Shape{12, 96, 32}, Shape{8, 128, 32},
                               Shape{8, 64, 128}, Shape{0, 0, 512}, Shape{0, 0, 768}}) {
        SCOPED_TRACE(testing::Message()
                     << shape.height << "x" << shape.width << "x" << shape.channels);
        const auto plain = one_layer(shape);
        const auto compiled = compile(plain, vendor_schedule);
        ASSERT_TRUE(compiled) << compiled.error().message();
        const auto verified = tool::verify_compiled(plain, compiled->model, "edgetpu");
        ASSERT_TRUE(verified) << verified.error().message();
        EXPECT_TRUE(verified->passed()) << verified->first_difference;
        EXPECT_THAT(verified->findings, testing::IsEmpty());
    }
}

TEST(VendorScheduleOf, IsRefusedWhereItIsNotKnown) {
    const auto refusal = [](const model::Model& model, CompileOptions options = vendor_schedule) {
        const auto compiled = compile(model, options);
        return compiled ? std::string() : compiled.error().message();
    };
    EXPECT_THAT(refusal(one_layer({8, 64, 32}, 5)), HasSubstr("no bias but 0"));
    EXPECT_THAT(refusal(one_layer({16, 64, 32})), HasSubstr("8 or 12 rows"));
    EXPECT_THAT(refusal(one_layer({8, 64, 48})), HasSubstr("32, 64 or 128 channels"));
    EXPECT_THAT(refusal(test::random_network(1)), HasSubstr("vendor's schedule"));
    CompileOptions streamed = vendor_schedule;
    streamed.stream_parameters = true;
    EXPECT_THAT(refusal(one_layer({8, 64, 32}), streamed), HasSubstr("streamed parameters"));
    const std::vector<model::Model> two{one_layer({8, 64, 32}), one_layer({8, 64, 32})};
    const auto together = compile_together(two, vendor_schedule);
    ASSERT_FALSE(together);
    EXPECT_THAT(together.error().message(), HasSubstr("compiled together"));
}

}  // namespace
}  // namespace reef::edgetpu

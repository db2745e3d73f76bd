// Which operators have the chip's arithmetic, and why the others have TFLite's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpu/run_model.h"
#include "edgetpu/numerics/forms.h"
#include "reef/model/builder.h"

namespace reef::edgetpu::numerics {
namespace {

using namespace cpu;

using model::Builder;
using model::Op;
using model::per_tensor;
using test::refusal;
using testing::HasSubstr;

/// float -> QUANTIZE -> RELU -> [between] -> RELU
model::Model network(const auto& between) {
    Builder builder("network");
    const auto x = builder.input("x", ElementType::float32, {1, 4});
    const auto q = per_tensor(0.5F, 0);
    const auto y = builder.tensor("y", ElementType::int8, {1, 4}, q);
    const auto z = builder.tensor("z", ElementType::int8, {1, 4}, q);
    builder.add(Op::quantize, {x}, {y});
    builder.add(Op::relu, {y}, {z});
    const auto last = between(builder, z);
    const auto out = builder.tensor("out", ElementType::int8, {1, 4}, q);
    builder.add(Op::relu, {last}, {out});
    builder.output(out);
    auto model = builder.finish();
    EXPECT_TRUE(model) << model.error().message();
    return std::move(*model);
}

model::Model network_through_floats() {
    return network([](Builder& builder, model::TensorIndex z) {
        const auto real = builder.tensor("real", ElementType::float32, {1, 4});
        const auto back = builder.tensor("back", ElementType::int8, {1, 4}, per_tensor(0.5F, 0));
        builder.add(Op::dequantize, {z}, {real});
        builder.add(Op::quantize, {real}, {back});
        return back;
    });
}

TEST(EdgetpuPartition, FloatsInFrontStayOnTheCpuAndWhatFollowsThemDoesNot) {
    const model::Model model = network([](Builder&, model::TensorIndex z) { return z; });
    const auto reasons = reasons_for_cpu(model, model.subgraphs[0]);
    ASSERT_EQ(reasons.size(), 3U);
    EXPECT_THAT(reasons[0], HasSubstr("'x' is float32"));
    EXPECT_EQ(reasons[1], "");
    EXPECT_EQ(reasons[2], "");
}

TEST(EdgetpuPartition, WhatFollowsTheChipAndTheCpuStaysOnTheCpu) {
    const model::Model model = network_through_floats();
    const auto reasons = reasons_for_cpu(model, model.subgraphs[0]);
    ASSERT_EQ(reasons.size(), 5U);
    EXPECT_EQ(reasons[1], "");
    EXPECT_THAT(reasons[2], HasSubstr("'real' is float32"));
    EXPECT_THAT(reasons[3], HasSubstr("follows the chip"));
    EXPECT_THAT(reasons[4], HasSubstr("follows the chip"));
}

/// Of a compiled model with two programs it is known where operators are.
TEST(EdgetpuPartition, WhatIsOnTheChipHasItsArithmeticWhateverIsInFront) {
    const model::Model model = network_through_floats();
    const auto reasons =
        reasons_for_cpu(model, model.subgraphs[0], {false, true, false, false, true});
    ASSERT_EQ(reasons.size(), 5U);
    EXPECT_EQ(reasons[1], "");
    EXPECT_NE(reasons[2], "");
    EXPECT_EQ(reasons[4], "");
}

/// Where operators are known to be, the vendor's habits say nothing.
TEST(EdgetpuPartition, WhatAnotherCompilerPlacesHasTheChipsArithmetic) {
    Builder builder("one pixel");
    const auto q = per_tensor(0.5F, 0);
    const auto pixel = builder.input("pixel", ElementType::int8, {1, 1, 1, 4}, q);
    const auto size = builder.constant<std::int32_t>("size", ElementType::int32, {2},
                                                     std::vector<std::int32_t>{2, 2});
    const auto image = builder.tensor("image", ElementType::int8, {1, 2, 2, 4}, q);
    builder.add(Op::resize_bilinear, {pixel, size}, {image},
                model::ResizeBilinearOptions{.half_pixel_centers = true});
    builder.output(image);
    const model::Model model = builder.finish().value();
    EXPECT_THAT(reasons_for_cpu(model, model.subgraphs[0])[0], HasSubstr("a resize of one pixel"));
    EXPECT_EQ(reasons_for_cpu(model, model.subgraphs[0], {true})[0], "");
    const auto chip =
        test::on_cpu(model, {.arithmetic = &numerics::arithmetic(), .in_arithmetic = {true}});
    ASSERT_TRUE(chip) << chip.error().message();
    EXPECT_THAT(chip->placements()[0].kernel, HasSubstr("edgetpu"));
}

TEST(EdgetpuPartition, PlacementsSayWhichArithmeticAndWhy) {
    const model::Model model = network_through_floats();
    const auto chip = test::on_cpu(model, {.arithmetic = &numerics::arithmetic()});
    ASSERT_TRUE(chip) << chip.error().message();
    EXPECT_EQ(chip->placements()[1].kernel, "relu fast table edgetpu");
    EXPECT_THAT(chip->placements()[1].reason, HasSubstr("as the Edge TPU computes it"));
    EXPECT_EQ(chip->placements()[4].kernel, "relu fast table");
    EXPECT_THAT(chip->placements()[4].reason, HasSubstr("TFLite's arithmetic: "));
    const auto tflite = test::on_cpu(model, {});
    ASSERT_TRUE(tflite);
    EXPECT_EQ(tflite->placements()[1].kernel, "relu fast table");
    EXPECT_EQ(tflite->placements()[1].reason, "");
}

TEST(EdgetpuPartition, SoftmaxOfSeveralRowsIsTFLites) {
    for (const std::int32_t rows : {1, 3}) {
        Builder builder("softmax");
        const auto logits =
            builder.input("logits", ElementType::int8, {1, rows, 8}, per_tensor(0.1F, 3));
        const auto shares =
            builder.tensor("shares", ElementType::int8, {1, rows, 8}, per_tensor(1.0F / 256, -128));
        builder.add(Op::softmax, {logits}, {shares}, model::SoftmaxOptions{.beta = 1});
        builder.output(shares);
        const model::Model model = builder.finish().value();
        const auto reasons = numerics::reasons_for_cpu(model, model.subgraphs[0]);
        ASSERT_EQ(reasons.size(), 1U);
        if (rows == 1)
            EXPECT_EQ(reasons[0], "");
        else
            EXPECT_THAT(reasons[0], HasSubstr("SOFTMAX of one row"));
        EXPECT_EQ(refusal(model, &numerics::arithmetic()), "");
    }
}

TEST(EdgetpuPartition, UnknownArithmeticIsRefusedByName) {
    const model::Model packs = network([](Builder& builder, model::TensorIndex z) {
        const auto q = per_tensor(0.5F, 0);
        const auto both = builder.tensor("both", ElementType::int8, {2, 1, 4}, q);
        const auto one = builder.tensor("one", ElementType::int8, {1, 4}, q);
        const auto other = builder.tensor("other", ElementType::int8, {1, 4}, q);
        builder.add(Op::pack, {z, z}, {both}, model::PackOptions{.values_count = 2, .axis = 0});
        builder.add(Op::unpack, {both}, {one, other}, model::UnpackOptions{.num = 2, .axis = 0});
        return one;
    });
    EXPECT_EQ(refusal(packs), "");
    EXPECT_THAT(refusal(packs, &numerics::arithmetic()),
                testing::AllOf(HasSubstr("PACK is not known"), HasSubstr("operator 2")));
    const model::Model adds = network([](Builder& builder, model::TensorIndex z) {
        const auto q = per_tensor(0.5F, 0);
        const auto k = builder.constant<std::int8_t>("k", ElementType::int8, {1},
                                                     std::vector<std::int8_t>{3}, q);
        const auto sum = builder.tensor("sum", ElementType::int8, {1, 4}, per_tensor(0.7F, 0));
        builder.add(Op::add, {z, k}, {sum}, model::AddOptions{});
        return sum;
    });
    Builder steep("steep");
    const auto logits = steep.input("logits", ElementType::uint8, {1, 4}, per_tensor(0x1p100F, 0));
    const auto shares =
        steep.tensor("shares", ElementType::uint8, {1, 4}, per_tensor(1.0F / 256, 0));
    steep.add(Op::softmax, {logits}, {shares}, model::SoftmaxOptions{.beta = 0x1p100F});
    steep.output(shares);
    EXPECT_THAT(refusal(steep.finish().value(), &numerics::arithmetic()), HasSubstr("not finite"));
    EXPECT_EQ(refusal(adds), "");
    EXPECT_THAT(refusal(adds, &numerics::arithmetic()), HasSubstr("ADD to another scale"));
}

}  // namespace
}  // namespace reef::edgetpu::numerics

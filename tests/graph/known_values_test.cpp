// Shapes that the graph computes itself: kernels that need them are prepared with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cpu/simd_targets.h"
#include "reef/graph/executor.h"
#include "reef/model/builder.h"
#include "support/cpu_executor.h"

namespace reef::graph {
namespace {

using model::Builder;
using model::Op;
using model::TensorIndex;
using testing::HasSubstr;

constexpr ElementType real = ElementType::float32;
constexpr ElementType whole = ElementType::int32;

TensorIndex numbers(Builder& builder, const std::vector<std::int32_t>& values) {
    return builder.constant<std::int32_t>("numbers", whole,
                                          {static_cast<std::int32_t>(values.size())}, values);
}

TensorIndex number(Builder& builder, std::int32_t value) {
    return builder.constant<std::int32_t>("number", whole, {}, std::vector<std::int32_t>{value});
}

/// The first number of x's shape, as exporters of networks with an open batch read it.
TensorIndex batch_of(Builder& builder, TensorIndex x, std::int32_t rank) {
    const auto shape = builder.tensor("shape", whole, {rank});
    builder.add(Op::shape, {x}, {shape}, model::ShapeOptions{.out_type = whole});
    const auto batch = builder.tensor("batch", whole, {});
    builder.add(Op::strided_slice,
                {shape, numbers(builder, {0}), numbers(builder, {1}), numbers(builder, {1})},
                {batch}, model::StridedSliceOptions{.shrink_axis_mask = 1});
    return batch;
}

std::vector<float> run(Executor& executor) {
    const auto ran = executor.run();
    EXPECT_TRUE(ran) << ran.error().message();
    std::vector<float> values(executor.output(0).size() / sizeof(float));
    std::memcpy(values.data(), executor.output(0).data(), executor.output(0).size());
    return values;
}

std::vector<float> run(Executor& executor, const std::vector<float>& x) {
    EXPECT_EQ(executor.input(0).size(), x.size() * sizeof(float));
    std::memcpy(executor.input(0).data(), x.data(), x.size() * sizeof(float));
    return run(executor);
}

// What Keras' Conv2DTranspose becomes.
TEST(KnownValues, ATransposedConvolutionOfAComputedShape) {
    Builder builder("twice as large");
    const auto x = builder.input("x", real, {1, 2, 2, 1});
    const auto batch = batch_of(builder, x, 4);
    const auto shape = builder.tensor("output shape", whole, {4});
    builder.add(Op::pack, {batch, number(builder, 4), number(builder, 4), number(builder, 1)},
                {shape}, model::PackOptions{.values_count = 4, .axis = 0});
    const auto filter =
        builder.constant<float>("filter", real, {1, 2, 2, 1}, std::vector<float>{1, 2, 3, 4});
    const auto y = builder.tensor("y", real, {1, 4, 4, 1});
    builder.add(Op::transpose_conv, {shape, filter, x}, {y},
                model::TransposeConvOptions{.stride_h = 2, .stride_w = 2});
    builder.output(y);
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    const std::vector<float> want{1, 2, 10, 20, 3, 4, 30, 40, 100, 200, 0, 0, 300, 400, 0, 0};
    for (int again = 0; again < 2; ++again) EXPECT_EQ(run(*executor, {1, 10, 100, 0}), want);
}

TEST(KnownValues, SizesAreComputedFromSizes) {
    Builder builder("resized to its own double");
    const auto x = builder.input("x", real, {1, 1, 2, 1});
    const auto shape = builder.tensor("shape", whole, {4});
    builder.add(Op::shape, {x}, {shape}, model::ShapeOptions{.out_type = whole});
    const auto size = builder.tensor("size", whole, {2});
    builder.add(Op::slice, {shape, numbers(builder, {1}), numbers(builder, {2})}, {size});
    const auto twice = builder.tensor("twice", whole, {2});
    builder.add(Op::mul, {size, number(builder, 2)}, {twice}, model::MulOptions{});
    const auto y = builder.tensor("y", real, {1, 2, 4, 1});
    builder.add(Op::resize_nearest_neighbor, {x, twice}, {y},
                model::ResizeNearestNeighborOptions{});
    builder.output(y);
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_EQ(run(*executor, {1, 2}), (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2}));
}

/// Why the operator of that name is where it is.
std::string reason_of(const Executor& executor, const std::string& name) {
    for (const Placement& placement : executor.placements())
        if (placement.operator_name == name) return placement.reason;
    ADD_FAILURE() << "no " << name;
    return {};
}

TEST(KnownValues, ConstantsAreConvertedOnce) {
    constexpr std::int32_t count = 1000;
    Builder builder("with bytes");
    std::vector<std::int8_t> bytes(count);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::int8_t>(i % 100);
    const auto x = builder.input("x", real, {count});
    const auto stored = builder.constant<std::int8_t>("stored", ElementType::int8, {count},
                                                      std::span<const std::int8_t>(bytes),
                                                      model::per_tensor(0.5F, 0));
    const auto numbers_of_bytes = builder.tensor("numbers", real, {count});
    builder.add(Op::dequantize, {stored}, {numbers_of_bytes});
    const auto y = builder.tensor("y", real, {count});
    builder.add(Op::add, {x, numbers_of_bytes}, {y}, model::AddOptions{});
    builder.output(y);
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_THAT(reason_of(*executor, "DEQUANTIZE"), HasSubstr("computed once"));
    // Input and output alone.
    EXPECT_LE(executor->memory().arena_bytes, 2 * (count * sizeof(float) + 64));
    for (int again = 0; again < 2; ++again) {
        const auto sums = run(*executor, std::vector<float>(count, 1));
        for (std::size_t i = 0; i < sums.size(); ++i)
            ASSERT_EQ(sums[i], 1 + 0.5F * static_cast<float>(bytes[i]));
    }
}

TEST(KnownValues, OfATensorWhoseShapeAloneIsReadNothingIsComputed) {
    Builder builder("as large as a square");
    const auto x = builder.input("x", real, {2, 3});
    const auto square = builder.tensor("square", real, {2, 3});
    builder.add(Op::square, {x}, {square});
    const auto shape = builder.tensor("shape", whole, {2});
    builder.add(Op::shape, {square}, {shape}, model::ShapeOptions{.out_type = whole});
    builder.output(shape);
    const auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_EQ(reason_of(*executor, "SQUARE"), "left out: of its result only the shape is read");
    EXPECT_EQ(reason_of(*executor, "SHAPE"),
              "computed once, before the first run: shapes are known");
}

TEST(KnownValues, ConstantsThatWouldGrowStayWithTheRuns) {
    Builder builder("repeated");
    const auto one = builder.constant<float>("one", real, {20}, std::vector<float>(20, 3));
    const auto many = builder.tensor("many", real, {2000});
    builder.add(Op::tile, {one, numbers(builder, {100})}, {many});
    const auto x = builder.input("x", real, {2000});
    const auto y = builder.tensor("y", real, {2000});
    builder.add(Op::add, {x, many}, {y}, model::AddOptions{});
    builder.output(y);
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_EQ(reason_of(*executor, "TILE"), "");
    EXPECT_EQ(run(*executor, std::vector<float>(2000, 1)), std::vector<float>(2000, 4));
}

// A file of a kilobyte would take gigabytes when it is opened.
TEST(KnownValues, AChainGrowsNoFurtherThanFourTimesTheConstants) {
    Builder builder("four times as much again and again");
    auto last = builder.constant<float>("one", real, {100}, std::vector<float>(100, 3));
    std::int32_t count = 100;
    for (int i = 0; i < 5; ++i) {
        count *= 4;
        const auto next = builder.tensor("next", real, {count});
        builder.add(Op::tile, {last, numbers(builder, {4})}, {next});
        last = next;
    }
    builder.output(last);
    const auto model = builder.finish().value();
    auto executor = test::on_cpu(model, {});
    ASSERT_TRUE(executor) << executor.error().message();
    ASSERT_EQ(executor->placements().size(), 5);
    EXPECT_THAT(executor->placements()[0].reason, HasSubstr("computed once"));
    for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(executor->placements()[i].reason, "") << i;
    EXPECT_THAT(executor->memory().known_tensors, testing::SizeIs(1));
    EXPECT_EQ(*Executor::plan(model, test::executor_options({})), executor->memory());
    EXPECT_EQ(run(*executor), std::vector<float>(102400, 3));
}

TEST(KnownValues, AConstantThatManyReadGrowsTwice) {
    Builder builder("four times as much, in many places");
    const auto one = builder.constant<float>("one", real, {100}, std::vector<float>(100, 3));
    const auto four = numbers(builder, {4});
    for (int i = 0; i < 8; ++i) {
        const auto many = builder.tensor("many", real, {400});
        builder.add(Op::tile, {one, four}, {many});
        builder.output(many);
    }
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_THAT(executor->memory().known_tensors, testing::SizeIs(2));
}

TEST(KnownValues, APlanDoesNotComputeLargeOnes) {
    Builder builder("by nothing, often");
    const std::vector<std::int32_t> sevens(1000, 7);
    const auto quotients = builder.tensor("quotients", whole, {1000});
    builder.add(Op::floor_div, {numbers(builder, sevens), numbers(builder, {0})}, {quotients});
    builder.output(quotients);
    const auto model = builder.finish().value();
    const auto plan = Executor::plan(model, test::executor_options({}));
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_THAT(plan->known_tensors, testing::ElementsAre(quotients));
    const auto executor = test::on_cpu(model, {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_THAT(executor->memory().known_tensors, testing::IsEmpty());
}

/// y of FULLY_CONNECTED, whose weights are `weights`.
model::Model dense(Builder& builder, TensorIndex weights, std::int32_t depth,
                   std::int32_t channels) {
    const auto q = model::per_tensor(0.05F, 0);
    const auto x = builder.input("x", ElementType::int8, {1, depth}, q);
    const auto y = builder.tensor("y", ElementType::int8, {1, channels}, q);
    builder.add(Op::fully_connected, {x, weights}, {y}, model::FullyConnectedOptions{});
    builder.output(y);
    return builder.finish().value();
}

// Weights decide how they are multiplied (cpu/fast/packed_matrix.h), and what that takes.
TEST(KnownValues, APlanComputesLargeBytes) {
    constexpr std::int32_t depth = 254, channels = 64;
    const auto q = model::per_tensor(0.01F, 0);
    Builder turned("weights in another order");
    const std::vector<std::int8_t> large(depth * channels, 100);
    const auto before =
        turned.constant<std::int8_t>("before", ElementType::int8, {depth, channels}, large, q);
    const auto after = turned.tensor("after", ElementType::int8, {channels, depth}, q);
    turned.add(Op::transpose, {before, numbers(turned, {1, 0})}, {after});
    Builder quantised("weights from numbers that are computed, too");
    const auto ones = quantised.constant<float>("ones", real, {channels, depth},
                                                std::vector<float>(depth * channels, 1));
    const auto others = quantised.tensor("others", real, {channels, depth});
    quantised.add(Op::neg, {ones}, {others});
    const auto steps = quantised.tensor("steps", ElementType::int8, {channels, depth}, q);
    quantised.add(Op::quantize, {others}, {steps});
    const std::vector<model::Model> models = {dense(turned, after, depth, channels),
                                              dense(quantised, steps, depth, channels)};
    test::on_every_target([&] {
        for (const model::Model& model : models) {
            const auto executor = test::on_cpu(model, {});
            ASSERT_TRUE(executor) << executor.error().message();
            EXPECT_EQ(executor->placements().back().reason, "");
            EXPECT_THAT(executor->memory().known_tensors, testing::Not(testing::IsEmpty()));
            EXPECT_EQ(*Executor::plan(model, test::executor_options({})), executor->memory());
        }
    });
}

// What is known has room for so many bytes, of which none go to what a failed value would become.
TEST(KnownValues, APlanLeavesAsMuchRoomAsIsLeft) {
    constexpr std::int32_t count = 300;
    Builder builder("by nothing, then bytes, then more");
    const auto sevens = numbers(builder, std::vector<std::int32_t>(count, 7));
    const auto quotients = builder.tensor("quotients", whole, {count});
    builder.add(Op::floor_div, {sevens, numbers(builder, {0})}, {quotients});
    const auto narrow = builder.tensor("narrow", ElementType::int8, {count});
    builder.add(Op::cast, {quotients}, {narrow});
    builder.output(narrow);
    // Eight times the constants' bytes: the quotients, these, and 256 bytes, less than `narrow`
    // has.
    for (int i = 0; i < 7; ++i) {
        const auto sums = builder.tensor("sums", whole, {count});
        builder.add(Op::add, {sevens, numbers(builder, {i})}, {sums}, model::AddOptions{});
        builder.output(sums);
    }
    const auto model = builder.finish().value();
    const auto plan = Executor::plan(model, test::executor_options({}));
    const auto executor = test::on_cpu(model, {});
    ASSERT_TRUE(plan) << plan.error().message();
    ASSERT_TRUE(executor) << executor.error().message();
    // The plan counts the quotients as computed.
    auto planned = plan->known_tensors;
    std::erase(planned, quotients);
    EXPECT_EQ(planned, executor->memory().known_tensors);
}

TEST(KnownValues, APlanComputesLargeOnesForSmallOnes) {
    Builder builder("a shape among many numbers");
    const auto x = builder.input("x", real, {6});
    const auto many = numbers(builder, std::vector<std::int32_t>(1000, 1));
    const auto sums = builder.tensor("sums", whole, {1000});
    builder.add(Op::add, {many, numbers(builder, {1})}, {sums}, model::AddOptions{});
    const auto products = builder.tensor("products", whole, {1000});
    builder.add(Op::mul, {sums, numbers(builder, {3})}, {products}, model::MulOptions{});
    const auto multiples = builder.tensor("multiples", whole, {1});
    builder.add(Op::slice, {products, numbers(builder, {500}), numbers(builder, {1})}, {multiples});
    const auto y = builder.tensor("y", real, {36});
    builder.add(Op::tile, {x, multiples}, {y});
    builder.output(y);
    const auto model = builder.finish().value();
    const auto plan = Executor::plan(model, test::executor_options({}));
    ASSERT_TRUE(plan) << plan.error().message();
    const auto executor = test::on_cpu(model, {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_EQ(*plan, executor->memory());
    EXPECT_THAT(plan->known_tensors, testing::ElementsAre(sums, products, multiples));
}

TEST(KnownValues, WhatARunDecidesIsNotKnown) {
    Builder builder("as often as the input says");
    const auto x = builder.input("x", whole, {1});
    const auto twice = builder.tensor("twice", whole, {1});
    builder.add(Op::add, {x, x}, {twice}, model::AddOptions{});
    const auto y = builder.tensor("y", whole, {4});
    builder.add(Op::tile, {x, twice}, {y});
    builder.output(y);
    const auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_FALSE(executor);
    EXPECT_THAT(executor.error().message(), HasSubstr("the multiples is not constant"));
}

TEST(KnownValues, WhatFailsBeforeTheRunFailsInIt) {
    Builder builder("by nothing");
    const auto x = builder.input("x", real, {1});
    const auto y = builder.tensor("y", whole, {1});
    builder.add(Op::floor_div, {numbers(builder, {7}), numbers(builder, {0})}, {y});
    builder.output(y);
    const auto z = builder.tensor("z", real, {1});
    builder.add(Op::add, {x, x}, {z}, model::AddOptions{});
    builder.output(z);
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_FALSE(executor->run());
}

}  // namespace
}  // namespace reef::graph

// Shapes that the graph computes itself: kernels that need them are prepared with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

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

std::vector<float> run(Executor& executor, const std::vector<float>& x) {
    EXPECT_EQ(executor.input(0).size(), x.size() * sizeof(float));
    std::memcpy(executor.input(0).data(), x.data(), x.size() * sizeof(float));
    const auto ran = executor.run();
    EXPECT_TRUE(ran) << ran.error().message();
    std::vector<float> values(executor.output(0).size() / sizeof(float));
    std::memcpy(values.data(), executor.output(0).data(), executor.output(0).size());
    return values;
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

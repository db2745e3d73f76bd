// A tensor combined with a function of its own bytes is one table, and what nothing else reads is
// not computed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "reef/model/builder.h"
#include "support/cpu_executor.h"

namespace reef::test {
namespace {

using model::Op;
using model::TensorIndex;

struct Silu {
    ElementType type = ElementType::int8;
    Op function = Op::logistic;
    Op combination = Op::mul;
    bool function_first = false;
    bool function_is_output = false;
    unsigned seed = 1;
};

model::Options options_of(Op op) {
    switch (op) {
        case Op::mul:
            return model::MulOptions{};
        case Op::add:
            return model::AddOptions{};
        case Op::sub:
            return model::SubOptions{};
        default:
            return {};
    }
}

/// An image of 16 x 16 pixels and 16 channels, of drawn numbers.
model::Model network(const Silu& how) {
    std::mt19937 random(how.seed);
    const bool is_signed = how.type == ElementType::int8;
    const auto numbers = [&] {
        return model::per_tensor(static_cast<float>(1 + random() % 999) / 9000,
                                 static_cast<int>(random() % 256) - (is_signed ? 128 : 0));
    };
    model::Builder builder("silu");
    const std::vector<std::int32_t> shape = {1, 16, 16, 16};
    const auto in_numbers = numbers();
    const auto x = builder.input("x", how.type, shape, in_numbers);
    model::Quantization of_function = numbers();
    if (how.function == Op::logistic)
        of_function = model::per_tensor(1.0F / 256, is_signed ? -128 : 0);
    if (how.function == Op::tanh) of_function = model::per_tensor(1.0F / 128, is_signed ? 0 : 128);
    // TFLite wants one scale of these.
    if (how.function == Op::relu || how.combination == Op::maximum) of_function = in_numbers;
    const auto f = builder.tensor("f", how.type, shape, of_function);
    builder.add(how.function, {x}, {f}, options_of(how.function));
    const auto y = builder.tensor("y", how.type, shape,
                                  how.combination == Op::maximum ? in_numbers : numbers());
    builder.add(
        how.combination,
        how.function_first ? std::vector<TensorIndex>{f, x} : std::vector<TensorIndex>{x, f}, {y},
        options_of(how.combination));
    builder.output(y);
    if (how.function_is_output) builder.output(f);
    return builder.finish().value();
}

/// Every byte, many times over.
void feed_every_byte(graph::Executor& executor) {
    const auto in = executor.input(0);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 7 % 256);
}

std::vector<std::byte> copied(Bytes bytes) {
    return {bytes.begin(), bytes.end()};
}

bool is_left_out(const graph::Placement& placement) {
    return placement.reason.find("left out") != std::string::npos;
}

TEST(ByteFunction, GivesTheBytesOfBothOperators) {
    std::size_t tables = 0;
    Silu how;
    for (how.seed = 1; how.seed <= 40; ++how.seed)
        for (const ElementType type : {ElementType::int8, ElementType::uint8})
            for (const Op function : {Op::logistic, Op::tanh, Op::relu, Op::hard_swish})
                for (const Op combination : {Op::mul, Op::add, Op::sub, Op::maximum}) {
                    how.type = type;
                    how.function = function;
                    how.combination = combination;
                    how.function_first = how.seed % 2 == 0;
                    if (combination == Op::maximum && function != Op::relu) continue;
                    SCOPED_TRACE(fmt::format("{} {} {} {}", name_of(type),
                                             static_cast<int>(function),
                                             static_cast<int>(combination), how.seed));
                    const auto model = network(how);
                    auto plain = on_cpu(model, {.kernels = cpu::KernelSet::reference});
                    auto fast = on_cpu(model, {.threads = 1 + static_cast<int>(how.seed % 2)});
                    ASSERT_EQ(plain.has_value(), fast.has_value());
                    if (!plain) continue;
                    feed_every_byte(*plain);
                    feed_every_byte(*fast);
                    ASSERT_TRUE(plain->run());
                    ASSERT_TRUE(fast->run());
                    ASSERT_EQ(copied(plain->output(0)), copied(fast->output(0)));
                    EXPECT_FALSE(is_left_out(plain->placements()[0]));
                    EXPECT_TRUE(is_left_out(fast->placements()[0]));
                    EXPECT_THAT(fast->placements()[1].kernel, testing::EndsWith("table"));
                    ++tables;
                }
    EXPECT_GE(tables, 500U);
}

TEST(ByteFunction, WhatIsReadElsewhereIsComputed) {
    for (const bool keeps : {false, true}) {
        const auto model = network({.function_is_output = !keeps});
        auto fast = on_cpu(model, {.keep_all_tensors = keeps});
        auto plain =
            on_cpu(model, {.kernels = cpu::KernelSet::reference, .keep_all_tensors = true});
        ASSERT_TRUE(fast) << fast.error().message();
        ASSERT_TRUE(plain) << plain.error().message();
        feed_every_byte(*fast);
        feed_every_byte(*plain);
        ASSERT_TRUE(fast->run());
        ASSERT_TRUE(plain->run());
        EXPECT_FALSE(is_left_out(fast->placements()[0]));
        EXPECT_THAT(fast->placements()[1].kernel, testing::EndsWith("table"));
        EXPECT_EQ(copied(fast->tensor(1)), copied(plain->tensor(1)));
        EXPECT_EQ(copied(fast->output(0)), copied(plain->output(0)));
    }
}

TEST(ByteFunction, IsNoFunctionOfOtherBytes) {
    model::Builder builder("other");
    const auto numbers = model::per_tensor(0.05F, 3);
    const auto x = builder.input("x", ElementType::int8, {1, 4, 4, 8}, numbers);
    const auto other = builder.input("other", ElementType::int8, {1, 4, 4, 8}, numbers);
    const auto f =
        builder.tensor("f", ElementType::int8, {1, 4, 4, 8}, model::per_tensor(1.0F / 256, -128));
    const auto y = builder.tensor("y", ElementType::int8, {1, 4, 4, 8}, numbers);
    builder.add(Op::logistic, {x}, {f});
    builder.add(Op::mul, {other, f}, {y}, model::MulOptions{});
    builder.output(y);
    const auto executor = on_cpu(builder.finish().value());
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_FALSE(is_left_out(executor->placements()[0]));
    EXPECT_THAT(executor->placements()[1].kernel, testing::Not(testing::HasSubstr("table")));
}

TEST(ByteFunction, TakesNoMemoryForWhatIsLeftOut) {
    const auto model = network({});
    const auto with = on_cpu(model, {.kernels = cpu::KernelSet::reference});
    const auto without = on_cpu(model);
    ASSERT_TRUE(with && without);
    EXPECT_EQ(with->memory().arena_bytes, 3 * 4096U);
    EXPECT_EQ(without->memory().arena_bytes, 2 * 4096U);
    EXPECT_EQ(without->memory().arena_bytes, without->memory().lower_bound_bytes);
}

/// A RELU's result, and a SiLU of it that nothing, or its own input's other reader, comes behind.
model::Model silu_of_relu(bool read_again) {
    model::Builder builder("silu_of_relu");
    const std::vector<std::int32_t> shape = {1, 16, 16, 16};
    const auto numbers = model::per_tensor(0.05F, 3);
    const auto tensor = [&](const char* name, const model::Quantization& q) {
        return builder.tensor(name, ElementType::int8, shape, q);
    };
    const auto in = builder.input("in", ElementType::int8, shape, numbers);
    const auto x = tensor("x", numbers);
    const auto f = tensor("f", model::per_tensor(1.0F / 256, -128));
    const auto y = tensor("y", numbers);
    builder.add(Op::relu, {in}, {x});
    builder.add(Op::logistic, {x}, {f});
    builder.add(Op::mul, {x, f}, {y}, model::MulOptions{});
    if (read_again) {
        const auto z = tensor("z", numbers);
        builder.add(Op::add, {x, y}, {z}, model::AddOptions{});
        builder.output(z);
    } else {
        builder.output(y);
    }
    return builder.finish().value();
}

TEST(ByteFunction, LeavesInputsAndOutputsWhereTheyAre) {
    // The tensor is an input, and then an output, too: three runs on what was written once.
    for (const bool is_output : {false, true}) {
        auto model = network({});
        if (is_output) model.subgraphs[0].outputs.insert(model.subgraphs[0].outputs.begin(), 0);
        auto fast = on_cpu(model);
        ASSERT_TRUE(fast) << fast.error().message();
        feed_every_byte(*fast);
        const auto given = copied(fast->input(0));
        ASSERT_TRUE(fast->run());
        const auto first = copied(fast->output(fast->output_count() - 1));
        ASSERT_TRUE(fast->run());
        EXPECT_EQ(copied(fast->output(fast->output_count() - 1)), first);
        EXPECT_EQ(copied(fast->input(0)), given);
    }
}

TEST(ByteFunction, TakesThePlaceOfWhatNothingReadsBehindIt) {
    for (const bool read_again : {false, true})
        for (const bool keeps : {false, true}) {
            const auto model = silu_of_relu(read_again);
            auto fast = on_cpu(model, {.threads = 2, .keep_all_tensors = keeps});
            auto plain = on_cpu(model, {.kernels = cpu::KernelSet::reference});
            ASSERT_TRUE(fast && plain);
            for (int run = 0; run < 2; ++run) {
                feed_every_byte(*fast);
                feed_every_byte(*plain);
                ASSERT_TRUE(fast->run());
                ASSERT_TRUE(plain->run());
                EXPECT_EQ(copied(fast->output(0)), copied(plain->output(0)));
            }
            const std::size_t whole = keeps ? 4 : 2;
            EXPECT_EQ(fast->memory().arena_bytes,
                      (whole + (read_again ? (keeps ? 1 : 2) : 0)) * 4096U);
        }
}

}  // namespace
}  // namespace reef::test

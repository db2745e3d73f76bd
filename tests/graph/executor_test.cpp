#include "reef/graph/executor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "reef/model/builder.h"
#include "support/cpu_executor.h"

namespace reef::graph {
namespace {

using model::Builder;
using model::Model;
using model::Op;
using testing::HasSubstr;

constexpr ElementType f32 = ElementType::float32;
constexpr ElementType i32 = ElementType::int32;

/// x -> a = x + x -> b = a + x -> c = b + a, all of `shape`, output c.
Model three_sums(std::vector<std::int32_t> shape) {
    Builder builder("three sums");
    const auto x = builder.input("x", f32, shape);
    const auto a = builder.tensor("a", f32, shape);
    const auto b = builder.tensor("b", f32, shape);
    const auto c = builder.tensor("c", f32, shape);
    builder.add(Op::add, {x, x}, {a}, model::AddOptions{});
    builder.add(Op::add, {a, x}, {b}, model::AddOptions{});
    builder.add(Op::add, {b, a}, {c}, model::AddOptions{});
    builder.output(c);
    return builder.finish().value();
}

template <typename T>
std::vector<T> values_of(Bytes bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}

template <typename T>
void feed(Executor& executor, std::size_t i, const std::vector<T>& values) {
    ASSERT_EQ(executor.input(i).size(), values.size() * sizeof(T));
    std::memcpy(executor.input(i).data(), values.data(), values.size() * sizeof(T));
}

Error refusal(const Model& model, const test::CpuOptions& options = {}) {
    auto executor = test::on_cpu(model, options);
    if (executor) {
        ADD_FAILURE() << "was not refused";
        return {};
    }
    return executor.error();
}

TEST(Executor, RefusesSparseConstantsWhichAreShorterThanTheirShape) {
    Builder builder("sparse");
    const auto x = builder.input("x", f32, {4});
    const auto c = builder.constant<float>("c", f32, {4}, std::vector<float>{1, 2, 3, 4});
    const auto y = builder.tensor("y", f32, {4});
    builder.add(Op::add, {x, c}, {y}, model::AddOptions{});
    builder.output(y);
    Model model = builder.finish().value();
    // A table without fields: offset of the root, vtable, offset of the vtable.
    std::vector<std::byte> table;
    for (const int byte : {8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0})
        table.push_back(static_cast<std::byte>(byte));
    model.subgraphs[0].tensors[1].sparsity = {"SparsityParameters", table};
    EXPECT_THAT(refusal(model).message(), HasSubstr("tensor 1 'c': constant data in sparse form"));
}

TEST(Executor, RunsAndReusesMemory) {
    auto executor = test::on_cpu(three_sums({1, 256}), {});
    ASSERT_TRUE(executor) << executor.error().message();
    feed(*executor, 0, std::vector<float>(256, 1.5F));
    ASSERT_TRUE(executor->run());
    EXPECT_EQ(values_of<float>(executor->output(0)), std::vector<float>(256, 7.5F));
    // a, b and c are alive together, and x, an input, always is.
    EXPECT_EQ(executor->memory().arena_bytes, 4 * 1024U);
    EXPECT_EQ(executor->memory().lower_bound_bytes, 4 * 1024U);
}

TEST(Executor, RunsKeepInputsAndInputsKeepOutputs) {
    Builder builder("long chain");
    const auto x = builder.input("x", f32, {256});
    const auto early = builder.input("early", f32, {256});
    const auto unused = builder.input("unused", f32, {256});
    auto last = builder.tensor("sum", f32, {256});
    builder.add(Op::add, {x, early}, {last}, model::AddOptions{});
    for (int i = 0; i < 4; ++i) {
        const auto next = builder.tensor(fmt::format("t{}", i), f32, {256});
        builder.add(Op::add, {last, last}, {next}, model::AddOptions{});
        last = next;
    }
    builder.output(last);
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    feed(*executor, 0, std::vector<float>(256, 1));
    feed(*executor, 1, std::vector<float>(256, 2));
    feed(*executor, 2, std::vector<float>(256, 3));
    for (int run = 0; run < 3; ++run) {
        ASSERT_TRUE(executor->run());
        EXPECT_EQ(values_of<float>(executor->output(0)), std::vector<float>(256, 48)) << run;
        executor->reset_state();
        for (std::size_t i = 0; i < 3; ++i)
            EXPECT_EQ(values_of<float>(executor->input(i)),
                      std::vector<float>(256, static_cast<float>(i + 1)))
                << run;
    }
    EXPECT_EQ(executor->tensor(unused).size(), 1024U);
    for (std::size_t i = 0; i < 3; ++i) feed(*executor, i, std::vector<float>(256, -1));
    EXPECT_EQ(values_of<float>(executor->output(0)), std::vector<float>(256, 48));
    // Three inputs, and a step of the chain with what it reads.
    EXPECT_EQ(executor->memory().arena_bytes, 5 * 1024U);
}

TEST(Executor, KeepsAllTensorsWhenAsked) {
    auto executor = test::on_cpu(three_sums({1, 256}), {.keep_all_tensors = true});
    ASSERT_TRUE(executor);
    feed(*executor, 0, std::vector<float>(256, 1.0F));
    ASSERT_TRUE(executor->run());
    for (model::TensorIndex i = 0; i < 4; ++i) {
        const float expected[] = {1, 2, 3, 5};
        EXPECT_EQ(values_of<float>(executor->tensor(i)), std::vector<float>(256, expected[i])) << i;
    }
    EXPECT_EQ(executor->memory().arena_bytes, 4 * 1024U);
    EXPECT_EQ(executor->memory().lower_bound_bytes, 4 * 1024U);
}

TEST(Executor, OutlivesItsModel) {
    auto executor = [] {
        Builder builder("constant");
        const auto x = builder.input("x", f32, {4});
        const auto k = builder.constant<float>("k", f32, {4}, std::vector<float>{1, 2, 3, 4});
        const auto y = builder.tensor("y", f32, {4});
        builder.add(Op::mul, {x, k}, {y}, model::MulOptions{});
        builder.output(y);
        return test::on_cpu(builder.finish().value(), {});
    }();
    ASSERT_TRUE(executor);
    Executor moved = std::move(*executor);
    feed<float>(moved, 0, {1, 1, 2, 2});
    ASSERT_TRUE(moved.run());
    EXPECT_EQ(values_of<float>(moved.output(0)), (std::vector<float>{1, 2, 6, 8}));
}

TEST(Executor, AnInputMayBeAnOutputAndTensorsMayBeUnused) {
    Builder builder("pass");
    const auto x = builder.input("x", f32, {2});
    const auto unused_input = builder.input("unused", f32, {3});
    const auto unused = builder.tensor("nobody touches it", f32, {1000});
    const auto y = builder.tensor("y", f32, {2});
    const auto z = builder.tensor("z", f32, {2});
    builder.add(Op::add, {x, x}, {y}, model::AddOptions{});
    builder.add(Op::add, {y, y}, {z}, model::AddOptions{});
    builder.output(x);
    builder.output(z);
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    feed<float>(*executor, 0, {1, 2});
    ASSERT_TRUE(executor->run());
    EXPECT_EQ(values_of<float>(executor->output(0)), (std::vector<float>{1, 2}));
    EXPECT_EQ(values_of<float>(executor->output(1)), (std::vector<float>{4, 8}));
    EXPECT_EQ(executor->tensor(unused_input).size(), 12U);
    EXPECT_TRUE(executor->tensor(unused).empty());
}

TEST(Executor, AGraphWithoutOperatorsGivesItsInput) {
    Builder builder("nothing");
    builder.output(builder.input("x", f32, {2}));
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor) << executor.error().message();
    feed<float>(*executor, 0, {3, 4});
    ASSERT_TRUE(executor->run());
    EXPECT_EQ(values_of<float>(executor->output(0)), (std::vector<float>{3, 4}));
}

TEST(Executor, TellsTheObserverEveryOperatorInOrder) {
    struct Recorder : RunObserver {
        std::vector<std::size_t> seen;
        Clock::time_point last{};
        void on_operator(std::size_t index, Clock::time_point begin,
                         Clock::time_point end) override {
            EXPECT_LE(last, begin);
            EXPECT_LE(begin, end);
            last = end;
            seen.push_back(index);
        }
    } recorder;
    auto executor = test::on_cpu(three_sums({8}), {});
    ASSERT_TRUE(executor->run(&recorder));
    EXPECT_EQ(recorder.seen, (std::vector<std::size_t>{0, 1, 2}));
    ASSERT_EQ(executor->placements().size(), 3U);
    EXPECT_EQ(executor->placements()[1].operator_name, "ADD");
}

TEST(Executor, DataErrorsCarryTheOperator) {
    Builder builder("quotient");
    const auto a = builder.input("a", i32, {3});
    const auto b = builder.input("b", i32, {3});
    const auto q = builder.tensor("q", i32, {3});
    builder.add(Op::floor_div, {a, b}, {q});
    builder.output(q);
    auto executor = test::on_cpu(builder.finish().value(), {});
    ASSERT_TRUE(executor);
    feed<std::int32_t>(*executor, 0, {7, -7, -8});
    feed<std::int32_t>(*executor, 1, {2, 2, -2});
    ASSERT_TRUE(executor->run());
    EXPECT_EQ(values_of<std::int32_t>(executor->output(0)), (std::vector<std::int32_t>{3, -4, 4}));
    feed<std::int32_t>(*executor, 0, {7, -7, -8});
    feed<std::int32_t>(*executor, 1, {2, 0, -2});
    const Status status = executor->run();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message(), "operator 0 FLOOR_DIV: division by zero");
    feed<std::int32_t>(*executor, 0, {INT32_MIN, 1, 1});
    feed<std::int32_t>(*executor, 1, {-1, 1, 1});
    EXPECT_FALSE(executor->run());
}

TEST(Executor, GatherNdChecksItsIndices) {
    Builder builder("gather");
    const auto x = builder.input("x", ElementType::int8, {2, 3, 2});
    const auto at = builder.input("at", i32, {2, 2});
    const auto y = builder.tensor("y", ElementType::int8, {2, 2});
    builder.add(Op::gather_nd, {x, at}, {y});
    builder.output(y);
    auto executor = test::on_cpu(builder.finish().value(), {.keep_all_tensors = true});
    ASSERT_TRUE(executor) << executor.error().message();
    feed<std::int8_t>(*executor, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    feed<std::int32_t>(*executor, 1, {1, 2, 0, 1});
    ASSERT_TRUE(executor->run());
    EXPECT_EQ(values_of<std::int8_t>(executor->output(0)),
              (std::vector<std::int8_t>{10, 11, 2, 3}));
    for (const std::int32_t bad : {-1, 3, INT32_MAX, INT32_MIN}) {
        feed<std::int32_t>(*executor, 1, {0, 0, 1, bad});
        const Status status = executor->run();
        ASSERT_FALSE(status);
        EXPECT_THAT(status.error().message(), HasSubstr("GATHER_ND: index"));
    }
}

TEST(Executor, ReshapeAndSqueezeGiveTheSameBytesUnderAnotherShape) {
    for (const std::vector<std::int32_t>& wanted :
         {std::vector<std::int32_t>{3, 2}, {-1, 2}, {3, -1}}) {
        Builder builder("shapes");
        const auto x = builder.input("x", i32, {1, 2, 1, 3});
        const auto shape = builder.constant<std::int32_t>("shape", i32, {2}, wanted);
        const auto y = builder.tensor("y", i32, {3, 2});
        const auto z = builder.tensor("z", i32, {2, 1, 3});
        builder.add(Op::reshape, {x, shape}, {y});
        builder.add(Op::squeeze, {x}, {z}, model::SqueezeOptions{.squeeze_dims = {-4}});
        builder.output(y);
        builder.output(z);
        auto executor = test::on_cpu(builder.finish().value(), {});
        ASSERT_TRUE(executor) << executor.error().message();
        const std::vector<std::int32_t> values{1, 2, 3, 4, 5, 6};
        feed<std::int32_t>(*executor, 0, values);
        ASSERT_TRUE(executor->run());
        EXPECT_EQ(values_of<std::int32_t>(executor->output(0)), values);
        EXPECT_EQ(values_of<std::int32_t>(executor->output(1)), values);
    }
}

TEST(ExecutorRefusals, OptionsOutOfRange) {
    for (const int threads : {0, -1, 257}) {
        const Error error = refusal(three_sums({2}), {.threads = threads});
        EXPECT_EQ(error.cause, Cause::bad_argument);
        EXPECT_THAT(error.what, HasSubstr("threads"));
    }
    const Error error = refusal(three_sums({2}), {.subgraph = 1});
    EXPECT_EQ(error.cause, Cause::bad_argument);
    EXPECT_EQ(error.what, "there is no subgraph 1, the model has 1");
}

TEST(ExecutorRefusals, OperatorsWithoutKernel) {
    for (const bool compiled : {false, true}) {
        Builder builder("custom");
        const auto x = builder.input("x", f32, {2});
        const auto y = builder.tensor("y", f32, {2});
        builder.add_custom(compiled ? "edgetpu-custom-op" : "Mystery", {x}, {y}, {});
        builder.output(y);
        const Error error = refusal(builder.finish().value());
        EXPECT_EQ(error.cause, Cause::unsupported);
        EXPECT_EQ(error.place, compiled ? "operator 0 edgetpu-custom-op" : "operator 0 Mystery");
        EXPECT_THAT(error.what, HasSubstr(compiled ? "a program for the Edge TPU" : "Mystery"));
        EXPECT_FALSE(error.hint.empty());
    }
    Builder builder("builtin");
    const auto x = builder.input("x", f32, {2});
    const auto y = builder.tensor("y", f32, {2});
    builder.add(static_cast<Op>(109), {x}, {y});
    builder.output(y);
    const Error error = refusal(builder.finish().value());
    EXPECT_EQ(error.what, "no CPU kernel for WHERE");
    EXPECT_THAT(error.hint, HasSubstr("reef ops"));
}

/// A chain of operators of one input, by number.
model::Model chain_of(const std::vector<std::int32_t>& numbers, ElementType type = f32) {
    Builder builder("chain");
    auto x = builder.input("x", type, {2});
    for (const std::int32_t number : numbers) {
        const auto y = builder.tensor("y", type, {2});
        builder.add(static_cast<Op>(number), {x}, {y});
        x = y;
    }
    builder.output(x);
    return builder.finish().value();
}

TEST(Executor, AllOperatorsWithoutAKernelAreNamedAtOnce) {
    constexpr std::int32_t relu = 19, where = 109, unique = 103, log = 73;
    const Error error = refusal(chain_of({relu, where, log, unique, relu, where}));
    EXPECT_EQ(error.place, "operator 1 WHERE");
    EXPECT_EQ(error.what,
              "no CPU kernel for WHERE; nothing here runs WHERE (2, the first is operator 1), "
              "UNIQUE (operator 3)");
}

TEST(Executor, OperatorsBehindAnotherRefusalAreNamedToo) {
    constexpr std::int32_t log = 73, where = 109;
    const Error error = refusal(chain_of({log, log, where}, ElementType::int32));
    EXPECT_EQ(error.place, "operator 0 LOG");
    EXPECT_EQ(error.what,
              "input 0 is int32, supported: float32; nothing here runs WHERE (operator 2)");
    EXPECT_EQ(error.hint, "convert the model with this operator in float32");
}

/// A model of four tensors x (input), a, b, c whose operators `wire` adds.
Error refusal_of_graph(const std::function<void(Builder&, model::TensorIndex, model::TensorIndex,
                                                model::TensorIndex, model::TensorIndex)>& wire) {
    Builder builder("graph");
    const auto x = builder.input("x", f32, {2});
    const auto a = builder.tensor("a", f32, {2});
    const auto b = builder.tensor("b", f32, {2});
    const auto c = builder.tensor("c", f32, {2});
    wire(builder, x, a, b, c);
    builder.output(c);
    auto model = builder.finish();
    if (!model) return model.error();
    return refusal(*model);
}

TEST(ExecutorRefusals, TensorsThatAreNotWrittenOnceBeforeTheyAreRead) {
    const model::AddOptions add;
    Error error = refusal_of_graph([&](Builder& builder, auto x, auto a, auto, auto c) {
        builder.add(Op::add, {x, a}, {c}, add);
    });
    EXPECT_EQ(error.message(), "operator 0 ADD: tensor 1 'a': is read but nothing writes it");

    error = refusal_of_graph([&](Builder& builder, auto x, auto a, auto b, auto c) {
        builder.add(Op::add, {x, b}, {a}, add);
        builder.add(Op::add, {x, a}, {b}, add);
        builder.add(Op::add, {x, a}, {c}, add);
    });
    EXPECT_THAT(error.message(),
                HasSubstr("operator 0 ADD: tensor 2 'b': is read before operator 1 ADD writes it"));

    error = refusal_of_graph([&](Builder& builder, auto x, auto, auto, auto c) {
        builder.add(Op::add, {x, c}, {c}, add);
    });
    EXPECT_THAT(error.message(), HasSubstr("operator 0 ADD: tensor 3 'c'"));

    error = refusal_of_graph([&](Builder& builder, auto x, auto, auto, auto c) {
        builder.add(Op::add, {x, x}, {c}, add);
        builder.add(Op::mul, {x, x}, {c}, model::MulOptions{});
    });
    EXPECT_THAT(error.message(),
                HasSubstr("operator 1 MUL: tensor 3 'c': the output is written or fed before"));

    error = refusal_of_graph([&](Builder& builder, auto x, auto, auto, auto c) {
        builder.add(Op::add, {x, x}, {c}, add);
        builder.add(Op::add, {c, c}, {x}, add);
    });
    EXPECT_THAT(error.message(), HasSubstr("operator 1 ADD: tensor 0 'x': the output is written"));

    error = refusal_of_graph([&](Builder& builder, auto x, auto a, auto, auto) {
        builder.add(Op::add, {x, x}, {a}, add);
    });
    EXPECT_EQ(error.message(), "graph output: tensor 3 'c': is read but nothing writes it");

    error = refusal_of_graph([&](Builder& builder, auto x, auto, auto, auto c) {
        const auto k = builder.constant<float>("k", f32, {2}, std::vector<float>{1, 2});
        builder.add(Op::add, {x, x}, {c}, add);
        builder.add(Op::add, {x, x}, {k}, add);
    });
    EXPECT_THAT(error.message(), HasSubstr("tensor 4 'k' has constant data"));

    error = refusal_of_graph([&](Builder& builder, auto x, auto, auto, auto c) {
        builder.add(Op::add, {x, x}, {c}, add);
        builder.add(Op::add, {x, x}, {builder.variable("s", f32, {2})}, add);
    });
    EXPECT_THAT(error.message(), HasSubstr("an output is a state tensor"));
}

TEST(ExecutorRefusals, ShapesThatTheOperatorsDoNotCompute) {
    Builder builder("shapes");
    const auto x = builder.input("x", f32, {2, 3});
    const auto y = builder.tensor("y", f32, {3, 2});
    builder.add(Op::add, {x, x}, {y}, model::AddOptions{});
    builder.output(y);
    const Error error = refusal(builder.finish().value());
    EXPECT_EQ(error.cause, Cause::bad_input);
    EXPECT_EQ(error.message(),
              "operator 0 ADD: output 0 is declared as 3x2, the operator computes 2x3");
}

TEST(ExecutorRefusals, ShapesComputedAtRunTime) {
    Builder builder("dynamic");
    const auto x = builder.input("x", f32, {2, 3});
    const auto shape = builder.input("shape", i32, {2});  // of an output of one
    const auto y = builder.tensor("y", f32, {6});
    builder.add(Op::reshape, {x, shape}, {y});
    builder.output(y);
    const Error error = refusal(builder.finish().value());
    EXPECT_EQ(error.cause, Cause::unsupported);
    EXPECT_EQ(error.what, "the new shape (input 1) is not constant");
}

TEST(ExecutorRefusals, AbsurdSizesBeforeAnyMemoryIsTaken) {
    const Error error = refusal(three_sums({1 << 15, 1 << 15, 2}));
    EXPECT_EQ(error.cause, Cause::unsupported);
    EXPECT_THAT(error.what, HasSubstr("bytes at once"));
}

}  // namespace
}  // namespace reef::graph

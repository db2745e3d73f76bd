// Models of a part of another's operators.
#include "reef/model/part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "reef/model/builder.h"
#include "reef/model/operator_samples.h"
#include "reef/model/tflite.h"

namespace reef::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// in -> 0 -> a -> 1 -> b -> 2 (b + a) -> out
Model with_a_bridge() {
    Builder builder("bridge");
    const auto numbers = per_tensor(0.1F, 3);
    const std::vector<std::int32_t> shape{1, 2, 2, 4};
    const auto in = builder.input("in", ElementType::uint8, shape, numbers);
    const auto a = builder.tensor("a", ElementType::uint8, shape, numbers);
    const auto b = builder.tensor("b", ElementType::uint8, shape, numbers);
    const auto out = builder.tensor("out", ElementType::uint8, shape, numbers);
    const std::vector<std::uint8_t> ones(4, 1);
    const auto factor = builder.constant<std::uint8_t>("factor", ElementType::uint8, {4}, ones,
                                                       per_tensor(0.5F, 0));
    builder.add(Op::relu, {in}, {a});
    builder.add(Op::mul, {a, factor}, {b}, MulOptions{});
    builder.add(Op::add, {b, a}, {out}, AddOptions{});
    builder.output(out);
    return builder.finish().value();
}

std::vector<std::string> names_of(const Model& model, const std::vector<TensorIndex>& list) {
    std::vector<std::string> names;
    for (const TensorIndex i : list)
        names.push_back(model.subgraphs.front().tensors[static_cast<std::size_t>(i)].name);
    return names;
}

TEST(Part, TakesWhatItReadsAndGivesWhatOthersRead) {
    const Model whole = with_a_bridge();
    const auto first = part_of(whole, {0, 2});
    ASSERT_TRUE(first) << first.error().message();
    const Subgraph& front = first->model.subgraphs.front();
    EXPECT_THAT(names_of(first->model, front.inputs), ElementsAre("in"));
    EXPECT_THAT(names_of(first->model, front.outputs), ElementsAre("a", "b"));
    EXPECT_THAT(first->operators, ElementsAre(0, 1));
    const auto last = part_of(whole, {2, 1});
    ASSERT_TRUE(last) << last.error().message();
    const Subgraph& behind = last->model.subgraphs.front();
    EXPECT_THAT(names_of(last->model, behind.inputs), ElementsAre("a", "b"));
    EXPECT_THAT(names_of(last->model, behind.outputs), ElementsAre("out"));
    EXPECT_THAT(last->operators, ElementsAre(2));
    EXPECT_EQ(behind.tensors.size(), 3U);
    EXPECT_LT(last->model.buffers.size(), whole.buffers.size()) << "the factor is the other part's";
    EXPECT_TRUE(write_tflite(first->model));
    EXPECT_TRUE(write_tflite(last->model));
}

TEST(Part, OfEverythingIsTheModel) {
    const auto samples = operator_samples(ElementType::int8).value();
    for (const auto& sample : samples) {
        SCOPED_TRACE(sample.name);
        const auto& graph = sample.model.subgraphs.front();
        const auto part = part_of(sample.model, {0, graph.operators.size()});
        ASSERT_TRUE(part) << part.error().message();
        EXPECT_EQ(part->model.subgraphs, sample.model.subgraphs);
    }
}

TEST(Part, RefusesRangesOutsideTheModel) {
    const Model whole = with_a_bridge();
    for (const OperatorRange range : {OperatorRange{0, 0}, {0, 4}, {3, 1}, {2, std::size_t(-1)}}) {
        const auto part = part_of(whole, range);
        ASSERT_FALSE(part);
        EXPECT_EQ(part.error().cause, Cause::bad_argument);
    }
}

TEST(Part, RefusesStateOfTwoParts) {
    Model whole = with_a_bridge();
    auto& graph = whole.subgraphs.front();
    graph.tensors[1].is_variable = true;
    const auto part = part_of(whole, {0, 1});
    ASSERT_FALSE(part);
    EXPECT_THAT(part.error().message(), HasSubstr("use the same state"));
}

TEST(Part, LeavesOutWhatNobodyReads) {
    Model whole = with_a_bridge();
    auto& graph = whole.subgraphs.front();
    // b is read by nobody.
    graph.operators[2].inputs[0] = graph.operators[2].inputs[1];
    const auto [part, operators] = part_of(whole, {0, 2}).value();
    EXPECT_THAT(operators, ElementsAre(0));
    EXPECT_EQ(part.subgraphs.front().operators.size(), 1U);
    EXPECT_THAT(names_of(part, part.subgraphs.front().outputs), ElementsAre("a"));
    EXPECT_TRUE(part_of(whole, {1, 1}).value().model.subgraphs.front().operators.empty());
}

TEST(Part, IsFoundByTheNamesOfItsEnds) {
    const Model whole = with_a_bridge();
    for (const OperatorRange range : {OperatorRange{0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 1}}) {
        SCOPED_TRACE(range.first);
        const Model part = part_of(whole, range).value().model;
        const auto ends = ends_in(whole, part);
        ASSERT_TRUE(ends);
        std::vector<std::size_t> operators(range.count);
        std::iota(operators.begin(), operators.end(), range.first);
        EXPECT_EQ(operators_between(whole, *ends).value(), operators);
        Model again = part_between(whole, *ends).value();
        EXPECT_EQ(again.subgraphs[0].tensors, whole.subgraphs[0].tensors);
        prune(again);
        EXPECT_EQ(again, part);
    }
    EXPECT_FALSE(ends_in(whole, whole)) << "all of it is no part";
}

TEST(Part, IsNotFoundByNamesThatAreNotThereOrTwice) {
    const Model whole = with_a_bridge();
    Model part = part_of(whole, {0, 2}).value().model;
    part.subgraphs[0].tensors[static_cast<std::size_t>(part.subgraphs[0].outputs[0])].name = "c";
    EXPECT_FALSE(ends_in(whole, part));
    Model twice = with_a_bridge();
    for (auto& tensor : twice.subgraphs[0].tensors)
        if (tensor.name == "out") tensor.name = "in";
    EXPECT_FALSE(ends_in(twice, part_of(whole, {0, 2}).value().model));
}

/// Constants are no ends; what has no name, or another's, gets one of its own.
TEST(Part, IsFoundWhereNamesAreLackingOrShared) {
    for (const char* name : {"", "b", "factor"}) {
        Model whole = with_a_bridge();
        for (auto& tensor : whole.subgraphs[0].tensors)
            if (tensor.name == "a" || tensor.name == "b") tensor.name = name;
        const Model first = part_of(whole, {0, 2}).value().model,
                    last = part_of(whole, {2, 1}).value().model;
        EXPECT_EQ(names_of(first, first.subgraphs[0].outputs),
                  names_of(last, last.subgraphs[0].inputs));
        for (const Model& part : {first, last}) {
            const auto ends = ends_in(whole, part);
            ASSERT_TRUE(ends);
            EXPECT_EQ(part_between(whole, *ends)->subgraphs[0].operators.size(),
                      part.subgraphs[0].operators.size());
        }
    }
}

TEST(Part, BetweenEndsThatReadMoreIsRefusedByName) {
    const Model whole = with_a_bridge();
    PartEnds ends = ends_in(whole, part_of(whole, {2, 1}).value().model).value();
    std::erase(ends.inputs, ends.inputs[1]);
    ends.inputs[0] = ends_in(whole, part_of(whole, {2, 1}).value().model)->inputs[1];
    const auto part = part_between(whole, ends);
    ASSERT_FALSE(part);
    EXPECT_THAT(part.error().message(), HasSubstr("'in'"));
    EXPECT_FALSE(part_between(whole, {ends.outputs, ends.outputs})) << "nothing is computed";
}

}  // namespace
}  // namespace reef::model

// Names that tell tensors apart.
#include "reef/model/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reef/model/builder.h"

namespace reef::model {
namespace {

using testing::ElementsAre;

/// in -> a -> b -> out, and a constant of `in`, which is named as the input is.
Model chain(const std::vector<std::string>& names) {
    Builder builder("chain");
    const auto numbers = per_tensor(0.1F, 3);
    const std::vector<std::int32_t> shape{1, 2, 2, 4};
    const std::vector<std::uint8_t> ones(4, 1);
    const auto in = builder.input(names[0], ElementType::uint8, shape, numbers);
    const auto factor = builder.constant<std::uint8_t>(names[0], ElementType::uint8, {4}, ones,
                                                       per_tensor(0.5F, 0));
    const auto a = builder.tensor(names[1], ElementType::uint8, shape, numbers);
    const auto b = builder.tensor(names[2], ElementType::uint8, shape, numbers);
    const auto out = builder.tensor(names[3], ElementType::uint8, shape, numbers);
    builder.add(Op::mul, {in, factor}, {a}, MulOptions{});
    builder.add(Op::relu, {a}, {b});
    builder.add(Op::relu6, {b}, {out});
    builder.output(out);
    return builder.finish().value();
}

std::vector<std::string> distinct(const std::vector<std::string>& names) {
    return distinct_names(chain(names).subgraphs.front());
}

TEST(DistinctNames, StayWhereTheyTellTensorsApart) {
    EXPECT_FALSE(with_distinct_names(chain({"in", "a", "b", "out"})));
    EXPECT_FALSE(with_distinct_names(chain({"same", "a", "b", "same"})))
        << "an input and an output";
    EXPECT_FALSE(with_distinct_names(Model{}));
}

TEST(DistinctNames, AreGivenWhereTensorsShareThemOrHaveNone) {
    EXPECT_THAT(distinct({"x", "x", "x", "x"}), ElementsAre("x", "x", "x_2", "x_3", "x"));
    EXPECT_THAT(distinct({"", "", "", ""}),
                ElementsAre("tensor_0", "", "tensor_2", "tensor_3", "tensor_4"));
    EXPECT_THAT(distinct({"a", "b", "b", "b_3"}), ElementsAre("a", "a", "b", "b_3_", "b_3"));
}

TEST(DistinctNames, TellTwoInputsApart) {
    Builder builder("pair");
    const auto numbers = per_tensor(0.1F, 3);
    const std::vector<std::int32_t> shape{1, 2, 2, 4};
    const auto a = builder.input("in", ElementType::uint8, shape, numbers);
    const auto b = builder.input("in", ElementType::uint8, shape, numbers);
    const auto out = builder.tensor("out", ElementType::uint8, shape, numbers);
    builder.add(Op::add, {a, b}, {out}, AddOptions{});
    builder.output(out);
    builder.output(out);
    const auto named = with_distinct_names(builder.finish().value());
    ASSERT_TRUE(named);
    const auto& tensors = named->subgraphs.front().tensors;
    EXPECT_EQ(tensors[0].name, "in");
    EXPECT_EQ(tensors[1].name, "in_1");
    EXPECT_EQ(tensors[2].name, "out");
}

}  // namespace
}  // namespace reef::model

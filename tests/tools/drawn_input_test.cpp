// Verbs that draw inputs where none are given: values of indices, divisors and shapes are such that
// the model runs, and a segment of a pipeline is given what the whole network computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "command.h"
#include "reef/model/builder.h"
#include "reef/model/part.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using model::Op;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DrawnInputTest : public CommandTest {
  protected:
    [[nodiscard]] std::string write_model(const std::string& name, const model::Model& of) const {
        return write(name, model::write_tflite(of).value());
    }
    [[nodiscard]] std::string finish(model::Builder& builder, const std::string& name) const {
        return write_model(name, builder.finish().value());
    }
};

std::int32_t int_constant(model::Builder& builder, const std::string& name, std::int32_t value) {
    return builder.constant<std::int32_t>(name, ElementType::int32, {1}, std::array{value});
}

/// "values"[at] for indices that are computed from "index", of one place and one dimension.
model::TensorIndex gathered(model::Builder& builder, model::TensorIndex values,
                            model::TensorIndex index) {
    const auto out = builder.tensor("picked", ElementType::int32, {1});
    builder.add(Op::gather_nd, {values, index}, {out});
    return out;
}

TEST_F(DrawnInputTest, IndicesAreInsideWhateverTheyAreMadeOf) {
    model::Builder builder("indices");
    const auto values = builder.input("values", ElementType::int32, {1});
    const auto a = builder.input("a", ElementType::int32, {1, 1}),
               b = builder.input("b", ElementType::int32, {1, 1});
    const auto sum = builder.tensor("sum", ElementType::int32, {1, 1});
    builder.add(Op::add, {a, b}, {sum}, model::AddOptions{});
    builder.output(gathered(builder, values, sum));
    const auto net = finish(builder, "indices.tflite");
    for (const char* seed : {"1", "2", "3", "4"}) {
        expect_ok({"bench", net, "--runs", "1", "--seed", seed});
        expect_ok({"compare", net, "--on", "cpu", "--on", "cpu,kernels=reference", "--seed", seed});
        expect_ok({"compare", net, net, "--seed", seed});
    }
}

TEST_F(DrawnInputTest, DivisorsAndShapesAreLegal) {
    model::Builder builder("divisor");
    const auto a = builder.input("a", ElementType::int32, {4}),
               b = builder.input("b", ElementType::int32, {4}),
               shape = builder.input("shape", ElementType::int32, {2});
    const auto quotient = builder.tensor("quotient", ElementType::int32, {4}),
               square = builder.tensor("square", ElementType::int32, {2, 2});
    builder.add(Op::floor_div, {a, b}, {quotient});
    builder.add(Op::reshape, {quotient, shape}, {square}, model::ReshapeOptions{});
    builder.output(square);
    const auto net = finish(builder, "divisor.tflite");
    for (const char* seed : {"1", "2", "3"})
        expect_ok({"bench", net, "--runs", "1", "--seed", seed});
}

/// Which values a model can have may be in it alone.
TEST_F(DrawnInputTest, ARunThatNoneIsFoundForSaysWhatToGive) {
    model::Builder builder("negative");
    const auto values = builder.input("values", ElementType::int32, {1}),
               index = builder.input("index", ElementType::int32, {1, 1});
    const auto less = builder.tensor("less", ElementType::int32, {1, 1});
    builder.add(Op::sub, {index, int_constant(builder, "one", 1)}, {less}, model::SubOptions{});
    builder.output(gathered(builder, values, less));
    const auto net = finish(builder, "negative.tflite");
    const auto words = "inputs were drawn at random";
    expect_error({"bench", net, "--runs", "1"}, 1, words);
    expect_error({"compare", net, net}, 1, words);
    expect_error({"compare", net, "--on", "cpu", "--on", "cpu"}, 1, words);
    const auto given = write_array(
        "one.npy",
        {ElementType::int32, {1, 1}, {std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0}}});
    expect_ok(
        {"bench", net, "--runs", "1", "--input", "index=" + given, "--input", "values=" + given});
}

/// "place" is an index and one more; what follows takes the one off: only what the whole network
/// computes is legal.
class SegmentWithIndices : public DrawnInputTest {
  protected:
    SegmentWithIndices() {
        model::Builder builder("net");
        const std::vector<std::int32_t> shape{1, 4, 4, 8};
        const auto numbers = model::per_tensor(0.05F, 120);
        const auto in = builder.input("in", ElementType::uint8, shape, numbers),
                   at = builder.input("at", ElementType::int32, {1, 1}),
                   values = builder.input("values", ElementType::int32, {1});
        const auto a = builder.tensor("a", ElementType::uint8, shape, numbers),
                   b = builder.tensor("b", ElementType::uint8, shape, numbers);
        const auto place = builder.tensor("place", ElementType::int32, {1, 1}),
                   index = builder.tensor("index", ElementType::int32, {1, 1});
        const auto one = int_constant(builder, "one", 1);
        builder.add(Op::mul, {in, in}, {a}, model::MulOptions{});
        builder.add(Op::add, {at, one}, {place}, model::AddOptions{});
        builder.add(Op::add, {a, a}, {b}, model::AddOptions{});
        builder.add(Op::sub, {place, one}, {index}, model::SubOptions{});
        builder.output(b);
        builder.output(gathered(builder, values, index));
        const auto net = builder.finish().value();
        whole = write_model("net.tflite", net);
        const auto part = write_model("part.tflite", model::part_of(net, {2, 3}).value().model);
        expect_ok({"compile", part, "--target", "edgetpu", "-o", segment, "--no-verify"});
    }

    std::string whole, segment = file("segment_edgetpu.tflite");
};

TEST_F(SegmentWithIndices, IsGivenWhatTheWholeNetworkComputes) {
    for (const char* seed : {"1", "2"}) {
        EXPECT_THAT(expect_ok({"compare", segment, whole, "--layers", "--seed", seed}),
                    HasSubstr("operators 2 to 4 of " + whole));
        EXPECT_THAT(
            expect_ok({"compare", whole, segment, "--atol", "1", "--seed", seed}),
            AllOf(HasSubstr("operators 2 to 4 of " + whole), HasSubstr("2 of 2 tensors equal")));
    }
}

TEST_F(SegmentWithIndices, AloneSaysWhatToGive) {
    expect_error({"bench", segment, "--device", "edgetpu:sim", "--runs", "1"}, 1,
                 "inputs were drawn at random, input");
}

}  // namespace
}  // namespace reef::tool

// POOL, SOFTMAX, MEAN, RESIZE_BILINEAR, ARG_MAX and PAD on values worked out by hand, and their
// refusals.
#include <gmock/gmock.h>

#include <array>

#include "cpu/run_model.h"

namespace reef::test {
namespace {

using model::Builder;
using model::Op;
using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
struct Case {
    Op op;
    std::vector<std::int32_t> input_shape;
    std::vector<std::int32_t> output_shape;
    model::Options options = {};
    std::vector<std::int32_t> constant = {};  ///< input 1, when not empty
    std::vector<std::int32_t> constant_shape = {};
    model::Quantization input = model::per_tensor(1, 0);
    model::Quantization output = model::per_tensor(1, 0);
};

template <typename T>
constexpr ElementType type_of() {
    return std::is_same_v<T, std::uint8_t> ? ElementType::uint8 : ElementType::int8;
}

template <typename T>
model::Model build(const Case<T>& c, ElementType output_type = type_of<T>()) {
    Builder builder("one operator");
    std::vector<model::TensorIndex> inputs{
        builder.input("in", type_of<T>(), c.input_shape, c.input)};
    if (!c.constant.empty()) {
        const auto shape = c.constant_shape.empty()
                               ? std::vector{static_cast<std::int32_t>(c.constant.size())}
                               : c.constant_shape;
        inputs.push_back(
            builder.constant<std::int32_t>("constant", ElementType::int32, shape, c.constant));
    }
    const auto output = builder.tensor("out", output_type, c.output_shape, c.output);
    builder.add(c.op, inputs, {output}, c.options);
    builder.output(output);
    auto model = builder.finish();
    EXPECT_TRUE(model) << model.error().message();
    return model ? std::move(*model) : model::Model{};
}

template <typename T>
std::vector<T> run(const Case<T>& c, const std::vector<T>& input) {
    const auto outputs = run_model(build(c), {bytes_of(input)});
    return outputs.empty() ? std::vector<T>{} : values_of<T>(outputs[0]);
}

constexpr model::Pool2dOptions same_2x2{
    .padding = model::Padding::same, .stride_h = 2, .stride_w = 2, .filter_h = 2, .filter_w = 2};

TEST(Pooling, AverageRoundsHalvesAwayFromZeroOverWhatLiesInside) {
    const Case<std::int8_t> c{Op::average_pool_2d, {1, 3, 3, 1}, {1, 2, 2, 1}, same_2x2};
    // Windows {1 2 4 5}: 3; {3 6}: 4.5; {-7 -8}: -7.5; {-9}.
    EXPECT_THAT(run(c, {1, 2, 3, 4, 5, 6, -7, -8, -9}), ElementsAre(3, 5, -8, -9));
}

TEST(Pooling, MaximumIsClampedByTheActivation) {
    auto options = same_2x2;
    options.activation = model::Activation::relu6;
    const Case<std::int8_t> c{Op::max_pool_2d, {1, 3, 3, 1}, {1, 2, 2, 1}, options};
    EXPECT_THAT(run(c, {1, 2, 3, 4, 5, 60, -7, -8, -9}), ElementsAre(5, 6, 0, 0));
}

TEST(Pooling, RefusesToRescaleAndWrongShapes) {
    Case<std::int8_t> c{Op::max_pool_2d, {1, 3, 3, 1}, {1, 2, 2, 1}, same_2x2};
    c.output = model::per_tensor(2, 0);
    EXPECT_THAT(refusal(build(c)), HasSubstr("pooling does not rescale"));
    c.output = c.input;
    c.output_shape = {1, 1, 2, 1};
    EXPECT_THAT(refusal(build(c)), HasSubstr("declared as 1x1x2x1"));
}

/// Of one operator on an input of uint8; never run.
model::Model of_sizes(Op op, std::vector<std::int32_t> in, std::vector<std::int32_t> out,
                      model::Options options, bool has_weights) {
    model::Builder builder("overflow");
    std::vector<model::TensorIndex> inputs = {
        builder.input("in", ElementType::uint8, std::move(in), model::per_tensor(1, 0))};
    const std::array<std::uint8_t, 1> one = {1};
    if (has_weights)
        inputs.push_back(builder.constant<std::uint8_t>("weights", ElementType::uint8, {1, 1}, one,
                                                        model::per_tensor(1, 0)));
    const auto result =
        builder.tensor("out", ElementType::uint8, std::move(out), model::per_tensor(1, 0));
    builder.add(op, inputs, {result}, std::move(options));
    builder.output(result);
    return builder.finish().value();
}

// What 32 bits hold after a multiplication is another number, and could be the file's.
TEST(Sizes, ThatOverflowAreRefused) {
    EXPECT_THAT(refusal(of_sizes(Op::space_to_depth, {1, 4096, 4096, 256}, {1, 1, 1, 0},
                                 model::SpaceToDepthOptions{4096}, false)),
                HasSubstr("channels overflow 32 bits"));
    EXPECT_THAT(refusal(of_sizes(Op::fully_connected, {65536, 65536}, {0, 1},
                                 model::FullyConnectedOptions{}, true)),
                HasSubstr("overflow 32 bits"));
}

TEST(Softmax, SharesOutEqualInputsAndSaturates) {
    Case<std::uint8_t> c{Op::softmax, {2, 4}, {2, 4}, model::SoftmaxOptions{.beta = 1}};
    c.output = model::per_tensor(1.0F / 256, 0);
    EXPECT_THAT(run(c, {9, 9, 9, 9, 0, 0, 200, 0}), ElementsAre(64, 64, 64, 64, 0, 0, 255, 0));
    c.output = model::per_tensor(0.5F, 0);
    EXPECT_THAT(refusal(build(c)), HasSubstr("scale is not 1/256"));
}

TEST(Mean, ReducesAnyAxes) {
    Case<std::int8_t> c{Op::mean, {2, 3, 2}, {3}, model::ReducerOptions{}, {0, -1}};
    // With one quantisation for input and output the fractions of 4.5, 6.5 and 8.75 are dropped.
    EXPECT_THAT(run(c, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13}), ElementsAre(4, 6, 8));
    c.output_shape = {2, 2};
    c.constant = {1};
    EXPECT_THAT(run(c, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13}), ElementsAre(3, 4, 9, 10));
    c.constant = {3};
    EXPECT_THAT(refusal(build(c)), HasSubstr("axis 3"));
}

TEST(ResizeBilinear, InterpolatesBetweenCorners) {
    Case<std::uint8_t> c{Op::resize_bilinear,
                         {1, 2, 2, 1},
                         {1, 3, 3, 1},
                         model::ResizeBilinearOptions{.align_corners = true},
                         {3, 3}};
    EXPECT_THAT(run(c, {0, 10, 20, 31}), ElementsAre(0, 5, 10, 10, 15, 21, 20, 26, 31));
    const Case<std::int8_t> half{Op::resize_bilinear,
                                 {1, 1, 2, 1},
                                 {1, 1, 4, 1},
                                 model::ResizeBilinearOptions{.half_pixel_centers = true},
                                 {1, 4}};
    EXPECT_THAT(run(half, {-40, 40}), ElementsAre(-40, -20, 20, 40));
    c.options = model::ResizeBilinearOptions{.align_corners = true, .half_pixel_centers = true};
    EXPECT_THAT(refusal(build(c)), HasSubstr("align_corners and half_pixel_centers"));
}

TEST(ArgMax, GivesTheFirstOfEqualMaxima) {
    const Case<std::int8_t> c{Op::arg_max, {2, 3, 2}, {2, 2}, model::ArgMaxOptions{}, {1}};
    const std::vector<std::int8_t> input{-5, 7, -5, 9, -6, 9, 1, 0, 2, 0, 3, 0};
    const auto model = build(c, ElementType::int64);
    const auto outputs = run_model(model, {bytes_of(input)});
    ASSERT_EQ(outputs.size(), 1U);
    EXPECT_THAT(values_of<std::int64_t>(outputs[0]), ElementsAre(0, 1, 2, 0));
}

TEST(Pad, SurroundsWithTheZeroPoint) {
    Case<std::uint8_t> c{Op::pad, {1, 2, 2}, {1, 4, 3}, {}, {0, 0, 1, 1, 0, 1}, {3, 2}};
    c.input = c.output = model::per_tensor(1, 7);
    EXPECT_THAT(run(c, {1, 2, 3, 4}), ElementsAre(7, 7, 7, 1, 2, 7, 3, 4, 7, 7, 7, 7));
    c.constant = {0, 0, -1, 1, 0, 1};
    EXPECT_THAT(refusal(build(c)), HasSubstr("paddings -1 and 1 of axis 1"));
}

TEST(Logistic, IsHalfAtZero) {
    Case<std::int8_t> c{Op::logistic, {3}, {3}};
    c.input = model::per_tensor(0.1F, 4);
    c.output = model::per_tensor(1.0F / 256, -128);
    // logistic(0) = 128/256, logistic(12.3) rounds to 256, logistic(-13.2) to 0.
    EXPECT_THAT(run(c, {4, 127, -128}), ElementsAre(0, 127, -128));
}

}  // namespace
}  // namespace reef::test

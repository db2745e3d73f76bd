#include <functional>
#include <vector>

#include "model/small_models.h"
#include "reef/apps/robotics.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

using model::Builder;
using model::Op;
using model::Options;
using model::TensorIndex;
using Shape = std::vector<std::int32_t>;

const model::Quantization eighth = model::per_tensor(0.125F, 3);

/// One operator on an int8 input; `more` adds its other inputs.
struct OneOperator {
    const char* name;
    Op op;
    Shape in;
    Shape out;
    Options options;
    std::function<std::vector<TensorIndex>(Builder&)> more = [](Builder&) {
        return std::vector<TensorIndex>{};
    };
    ElementType out_type = ElementType::int8;
};

std::function<std::vector<TensorIndex>(Builder&)> integers(std::vector<std::int32_t> values,
                                                           Shape shape) {
    return [=](Builder& builder) {
        return std::vector{
            builder.constant<std::int32_t>("list", ElementType::int32, shape, values)};
    };
}

std::vector<TensorIndex> second_input(Builder& builder) {
    return {builder.input("b", ElementType::int8, {1, 4, 4, 2}, eighth)};
}

std::vector<TensorIndex> slope(Builder& builder) {
    const std::vector<std::int8_t> values{-100, 3, 90};
    return {builder.constant<std::int8_t>("slope", ElementType::int8, {3}, values, eighth)};
}

std::vector<TensorIndex> slice_numbers(Builder& builder) {
    const auto numbers = [&](const char* name, std::vector<std::int32_t> values) {
        return builder.constant<std::int32_t>(name, ElementType::int32, {3}, values);
    };
    return {numbers("begin", {0, 3, -1}), numbers("end", {1, 0, -9}),
            numbers("strides", {1, -2, -1})};
}

std::vector<TensorIndex> right_matrix(Builder& builder) {
    return {builder.input("b", ElementType::int8, {1, 6, 5}, eighth)};
}

/// Weights of one scale and a bias of one value per output channel.
std::function<std::vector<TensorIndex>(Builder&)> weights(Shape shape, std::int32_t channels) {
    return [=](Builder& builder) {
        std::size_t count = 1;
        for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
        std::vector<std::int8_t> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int8_t>(i * 29);
        const std::vector<std::int32_t> bias(static_cast<std::size_t>(channels), 17);
        return std::vector{
            builder.constant<std::int8_t>("weights", ElementType::int8, shape, values,
                                          model::per_tensor(0.01F, 0)),
            builder.constant<std::int32_t>("bias", ElementType::int32, {channels}, bias)};
    };
}

std::vector<OneOperator> products_and_windows() {
    return {
        {"conv",
         Op::conv_2d,
         {1, 5, 5, 3},
         {1, 3, 3, 6},
         model::Conv2dOptions{.stride_h = 2, .stride_w = 2},
         weights({6, 3, 3, 3}, 6)},
        {"depthwise",
         Op::depthwise_conv_2d,
         {1, 5, 5, 3},
         {1, 5, 5, 6},
         model::DepthwiseConv2dOptions{.stride_h = 1, .stride_w = 1, .depth_multiplier = 2},
         weights({1, 3, 3, 6}, 6)},
        {"fully_connected",
         Op::fully_connected,
         {2, 9},
         {2, 5},
         model::FullyConnectedOptions{},
         weights({5, 9}, 5)},
        {"batch_matmul",
         Op::batch_matmul,
         {2, 4, 6},
         {2, 4, 5},
         model::BatchMatMulOptions{},
         right_matrix},
        {"average_pool",
         Op::average_pool_2d,
         {1, 5, 5, 3},
         {1, 3, 3, 3},
         model::Pool2dOptions{.stride_h = 2, .stride_w = 2, .filter_h = 3, .filter_w = 3}},
        {"max_pool",
         Op::max_pool_2d,
         {1, 5, 5, 3},
         {1, 2, 2, 3},
         model::Pool2dOptions{.padding = model::Padding::valid,
                              .stride_h = 2,
                              .stride_w = 2,
                              .filter_h = 2,
                              .filter_w = 2}},
        {"resize_bilinear",
         Op::resize_bilinear,
         {1, 3, 4, 2},
         {1, 7, 5, 2},
         model::ResizeBilinearOptions{.half_pixel_centers = true},
         integers({7, 5}, {2})},
        {"resize_nearest_neighbor",
         Op::resize_nearest_neighbor,
         {1, 3, 4, 2},
         {1, 6, 8, 2},
         model::ResizeNearestNeighborOptions{.half_pixel_centers = true},
         integers({6, 8}, {2})},
    };
}

std::vector<OneOperator> elementwise() {
    return {
        {"add", Op::add, {1, 4, 4, 2}, {1, 4, 4, 2}, model::AddOptions{}, second_input},
        {"mul", Op::mul, {1, 4, 4, 2}, {1, 4, 4, 2}, model::MulOptions{}, second_input},
        {"maximum", Op::maximum, {1, 4, 4, 2}, {1, 4, 4, 2}, {}, second_input},
        {"minimum", Op::minimum, {1, 4, 4, 2}, {1, 4, 4, 2}, {}, second_input},
        {"squared_difference",
         Op::squared_difference,
         {1, 4, 4, 2},
         {1, 4, 4, 2},
         {},
         second_input},
        {"prelu", Op::prelu, {2, 3}, {2, 3}, {}, slope},
        {"dequantize", Op::dequantize, {3, 3}, {3, 3}, {}, {}, ElementType::float32},
        {"quantize", Op::quantize, {3, 3}, {3, 3}, {}},
        {"leaky_relu", Op::leaky_relu, {3, 3}, {3, 3}, model::LeakyReluOptions{.alpha = 0.3F}},
        {"hard_swish", Op{117}, {3, 3}, {3, 3}, {}},
        {"tanh", Op::tanh, {3, 3}, {3, 3}, {}},
        {"rsqrt", Op::rsqrt, {3, 3}, {3, 3}, {}},
        {"relu_n1_to_1", Op::relu_n1_to_1, {3, 3}, {3, 3}, {}},
    };
}

std::vector<OneOperator> reductions() {
    return {
        {"mean", Op::mean, {1, 4, 5, 3}, {1, 3}, model::ReducerOptions{}, integers({1, 2}, {2})},
        {"special_mean",
         Op::mean,
         {1, 4, 5, 3},
         {1, 1, 1, 3},
         model::ReducerOptions{.keep_dims = true},
         integers({1, 2}, {2})},
        {"sum", Op::sum, {2, 3, 4}, {2, 4}, model::ReducerOptions{}, integers({1}, {1})},
        {"reduce_max",
         Op::reduce_max,
         {2, 3, 4},
         {2, 3},
         model::ReducerOptions{},
         integers({-1}, {1})},
        {"reduce_min",
         Op::reduce_min,
         {2, 3, 4},
         {3, 4},
         model::ReducerOptions{},
         integers({0}, {1})},
        {"arg_max",
         Op::arg_max,
         {1, 4, 7},
         {1, 4},
         model::ArgMaxOptions{.output_type = ElementType::int32},
         integers({2}, {}),
         ElementType::int32},
    };
}

/// Values elsewhere, and other shapes of them.
std::vector<OneOperator> movements() {
    return {
        {"concatenation",
         Op::concatenation,
         {1, 4, 4, 2},
         {1, 4, 4, 4},
         model::ConcatenationOptions{.axis = 3},
         second_input},
        {"pad",
         Op::pad,
         {1, 2, 2, 2},
         {1, 4, 5, 2},
         {},
         integers({0, 0, 1, 1, 1, 2, 0, 0}, {4, 2})},
        {"gather_nd", Op::gather_nd, {4, 3}, {2, 3}, {}, integers({1, 3}, {2, 1})},
        {"transpose", Op::transpose, {2, 3, 4}, {4, 2, 3}, {}, integers({2, 0, 1}, {3})},
        {"tile", Op::tile, {2, 3}, {4, 9}, {}, integers({2, 3}, {2})},
        {"space_to_depth",
         Op::space_to_depth,
         {1, 4, 4, 3},
         {1, 2, 2, 12},
         model::SpaceToDepthOptions{.block_size = 2}},
        {"depth_to_space",
         Op::depth_to_space,
         {1, 2, 2, 12},
         {1, 4, 4, 3},
         model::DepthToSpaceOptions{.block_size = 2}},
        {"strided_slice",
         Op::strided_slice,
         {2, 5, 3},
         {1, 2, 3},
         model::StridedSliceOptions{.end_mask = 4},
         slice_numbers},
        {"reshape",
         Op::reshape,
         {1, 4, 4, 2},
         {8, 4},
         model::ReshapeOptions{.new_shape = {8, 4}},
         integers({8, -1}, {2})},
        {"squeeze", Op::squeeze, {1, 3, 1}, {3}, model::SqueezeOptions{}},
        {"expand_dims", Op::expand_dims, {3, 3}, {3, 1, 3}, {}, integers({1}, {1})},
        {"shape",
         Op::shape,
         {3, 4},
         {2},
         model::ShapeOptions{.out_type = ElementType::int32},
         {},
         ElementType::int32},
    };
}

Result<std::vector<std::byte>> file_of(const OneOperator& one) {
    Builder builder(one.name);
    std::vector<TensorIndex> inputs{builder.input("a", ElementType::int8, one.in, eighth)};
    if (one.more) {
        for (const TensorIndex index : one.more(builder)) inputs.push_back(index);
    }
    const bool quantised = one.out_type == ElementType::int8;
    const TensorIndex out =
        builder.tensor("out", one.out_type, one.out, quantised ? eighth : model::Quantization{});
    builder.add(one.op, inputs, {out}, one.options);
    builder.output(out);
    return model::write_tflite(REEF_TRY(builder.finish()));
}

}  // namespace

Result<Seeds> executor_seeds() {
    Seeds seeds;
    for (const auto kind : {products_and_windows, elementwise, reductions, movements})
        for (const OneOperator& one : kind())
            seeds.emplace_back(std::string(one.name) + ".tflite",
                               REEF_TRY(in_place(file_of(one), one.name)));
    seeds.emplace_back("plain.tflite", REEF_TRY(model::write_tflite(reef::test::plain_model())));
    const auto looming = REEF_TRY(apps::looming_model({.height = 12, .width = 12}));
    seeds.emplace_back("looming.tflite", REEF_TRY(model::write_tflite(looming)));
    return seeds;
}

}  // namespace reef::fuzz

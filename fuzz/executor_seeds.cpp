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

std::vector<OneOperator> operators() {
    return {
        {"add", Op::add, {1, 4, 4, 2}, {1, 4, 4, 2}, model::AddOptions{}, second_input},
        {"mul", Op::mul, {1, 4, 4, 2}, {1, 4, 4, 2}, model::MulOptions{}, second_input},
        {"concatenation",
         Op::concatenation,
         {1, 4, 4, 2},
         {1, 4, 4, 4},
         model::ConcatenationOptions{.axis = 3},
         second_input},
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
        {"mean", Op::mean, {1, 4, 5, 3}, {1, 3}, model::ReducerOptions{}, integers({1, 2}, {2})},
        {"pad",
         Op::pad,
         {1, 2, 2, 2},
         {1, 4, 5, 2},
         {},
         integers({0, 0, 1, 1, 1, 2, 0, 0}, {4, 2})},
        {"reshape",
         Op::reshape,
         {1, 4, 4, 2},
         {8, 4},
         model::ReshapeOptions{.new_shape = {8, 4}},
         integers({8, -1}, {2})},
        {"resize_bilinear",
         Op::resize_bilinear,
         {1, 3, 4, 2},
         {1, 7, 5, 2},
         model::ResizeBilinearOptions{.half_pixel_centers = true},
         integers({7, 5}, {2})},
        {"arg_max",
         Op::arg_max,
         {1, 4, 7},
         {1, 4},
         model::ArgMaxOptions{.output_type = ElementType::int32},
         integers({2}, {}),
         ElementType::int32},
        {"gather_nd", Op::gather_nd, {4, 3}, {2, 3}, {}, integers({1, 3}, {2, 1})},
        {"dequantize", Op::dequantize, {3, 3}, {3, 3}, {}, {}, ElementType::float32},
        {"quantize", Op::quantize, {3, 3}, {3, 3}, {}},
        {"squeeze", Op::squeeze, {1, 3, 1}, {3}, model::SqueezeOptions{}},
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
    for (const OneOperator& one : operators())
        seeds.emplace_back(std::string(one.name) + ".tflite",
                           REEF_TRY(in_place(file_of(one), one.name)));
    seeds.emplace_back("plain.tflite", REEF_TRY(model::write_tflite(test::plain_model())));
    const auto looming = REEF_TRY(apps::looming_model({.height = 12, .width = 12}));
    seeds.emplace_back("looming.tflite", REEF_TRY(model::write_tflite(looming)));
    return seeds;
}

}  // namespace reef::fuzz

#include "peers/network_maker.h"

#include <cmath>
#include <cstddef>

namespace reef::peers {

using model::TensorIndex;

namespace {

std::int32_t length_behind(std::int32_t length, std::int32_t taps, const Window& window) {
    const std::int32_t reach =
        window.padding == model::Padding::same ? 1 : (taps - 1) * window.dilation + 1;
    return (length - reach) / window.stride + 1;
}

}  // namespace

Place NetworkMaker::input(std::int32_t size) {
    return {builder_.input("in", type_, {1, size, size, 3}, activations()), size, size, 3};
}

Place NetworkMaker::conv(Place in, std::int32_t channels, Window window, Activation activation) {
    const Place out = behind(in, window, channels, activation);
    const auto weights =
        constants({channels, window.height, window.width, in.channels}, 0, activation);
    builder_.add(model::Op::conv_2d,
                 {in.tensor, weights.tensor, bias(channels, activations(in.range), weights)},
                 {out.tensor},
                 model::Conv2dOptions{.padding = window.padding,
                                      .stride_h = window.stride,
                                      .stride_w = window.stride,
                                      .dilation_h = window.dilation,
                                      .dilation_w = window.dilation,
                                      .activation = activation});
    return out;
}

Place NetworkMaker::depthwise(Place in, Window window) {
    const Place out = behind(in, window, in.channels, Activation::relu6);
    const auto weights =
        constants({1, window.height, window.width, in.channels}, 3, Activation::relu6);
    builder_.add(model::Op::depthwise_conv_2d,
                 {in.tensor, weights.tensor, bias(in.channels, activations(in.range), weights)},
                 {out.tensor},
                 model::DepthwiseConv2dOptions{.padding = window.padding,
                                               .stride_h = window.stride,
                                               .stride_w = window.stride,
                                               .dilation_h = window.dilation,
                                               .dilation_w = window.dilation,
                                               .depth_multiplier = 1,
                                               .activation = Activation::relu6});
    return out;
}

Place NetworkMaker::pool(Place in, bool average, Window window) {
    const Place out = behind(in, window, in.channels, in.range);
    builder_.add(average ? model::Op::average_pool_2d : model::Op::max_pool_2d, {in.tensor},
                 {out.tensor},
                 model::Pool2dOptions{.padding = window.padding,
                                      .stride_h = window.stride,
                                      .stride_w = window.stride,
                                      .filter_h = window.height,
                                      .filter_w = window.width});
    return out;
}

Place NetworkMaker::add(Place a, Place b, Activation activation) {
    const Place out = place(a.height, a.width, a.channels, activation);
    builder_.add(model::Op::add, {a.tensor, b.tensor}, {out.tensor},
                 model::AddOptions{.activation = activation});
    return out;
}

Place NetworkMaker::concatenation(std::span<const Place> parts) {
    std::vector<TensorIndex> inputs;
    std::int32_t channels = 0;
    for (const Place& part : parts) {
        inputs.push_back(part.tensor);
        channels += part.channels;
    }
    const Place out = place(parts[0].height, parts[0].width, channels, parts[0].range);
    builder_.add(model::Op::concatenation, inputs, {out.tensor},
                 model::ConcatenationOptions{.axis = 3});
    return out;
}

Place NetworkMaker::resize(Place in, std::int32_t size, bool align_corners) {
    const Place out = place(size, size, in.channels, in.range);
    builder_.add(model::Op::resize_bilinear,
                 {in.tensor, integers("size", std::array<std::int32_t, 2>{size, size})},
                 {out.tensor}, model::ResizeBilinearOptions{.align_corners = align_corners});
    return out;
}

Place NetworkMaker::logistic(Place in) {
    Place out = in;
    out.tensor = builder_.tensor("shares", type_, {1, in.height, in.width, in.channels}, shares());
    builder_.add(model::Op::logistic, {in.tensor}, {out.tensor});
    return out;
}

Place NetworkMaker::rows(std::span<const Place> parts, std::int32_t depth) {
    std::vector<TensorIndex> inputs;
    std::int32_t all = 0;
    for (const Place& part : parts) {
        const std::int32_t count = part.height * part.width * part.channels / depth;
        inputs.push_back(place(count, 1, depth, part.range).tensor);
        builder_.add(model::Op::reshape, {part.tensor}, {inputs.back()},
                     model::ReshapeOptions{.new_shape = {1, count, 1, depth}});
        all += count;
    }
    const Place out = place(all, 1, depth, parts[0].range);
    builder_.add(model::Op::concatenation, inputs, {out.tensor},
                 model::ConcatenationOptions{.axis = 1});
    return out;
}

void NetworkMaker::arg_max(Place in) {
    const auto out = builder_.tensor("greatest", ElementType::int64, {1, in.height, in.width});
    builder_.add(model::Op::arg_max, {in.tensor, integers("axis", std::array<std::int32_t, 1>{3})},
                 {out}, model::ArgMaxOptions{.output_type = ElementType::int64});
    builder_.output(out);
}

void NetworkMaker::classify(Place in, std::int32_t classes) {
    const auto mean = builder_.tensor("mean", type_, {1, in.channels}, activations());
    builder_.add(model::Op::mean, {in.tensor, integers("axes", std::array<std::int32_t, 2>{1, 2})},
                 {mean}, model::ReducerOptions{});
    const auto scores = builder_.tensor("scores", type_, {1, classes}, activations());
    const auto weights = constants({classes, in.channels}, per_tensor_only, Activation::none);
    builder_.add(model::Op::fully_connected,
                 {mean, weights.tensor, bias(classes, activations(), weights)}, {scores},
                 model::FullyConnectedOptions{});
    const auto out = builder_.tensor("out", type_, {1, classes}, shares());
    builder_.add(model::Op::softmax, {scores}, {out}, model::SoftmaxOptions{.beta = 1});
    builder_.output(out);
    // SOFTMAX of random scores is nearly one 1 among zeros, which hides whose they are.
    builder_.output(scores);
}

model::Quantization NetworkMaker::activations(Activation range) const {
    if (real()) return {};
    if (range == Activation::none) return model::per_tensor(step, lowest() + 128);
    return model::per_tensor(range == Activation::relu6 ? 6.0F / 255 : step, lowest());
}

model::Quantization NetworkMaker::shares() const {
    return real() ? model::Quantization{} : model::per_tensor(1.0F / 256, lowest());
}

Place NetworkMaker::place(std::int32_t height, std::int32_t width, std::int32_t channels,
                          Activation range) {
    return {builder_.tensor("t", type_, {1, height, width, channels}, activations(range)), height,
            width, channels, range};
}

Place NetworkMaker::behind(const Place& in, const Window& window, std::int32_t channels,
                           Activation range) {
    return place(length_behind(in.height, window.height, window),
                 length_behind(in.width, window.width, window), channels, range);
}

TensorIndex NetworkMaker::integers(const char* name, std::span<const std::int32_t> values) {
    return builder_.constant<std::int32_t>(name, ElementType::int32,
                                           {static_cast<std::int32_t>(values.size())}, values);
}

NetworkMaker::Weights NetworkMaker::constants(const std::vector<std::int32_t>& shape,
                                              std::int32_t axis, Activation behind) {
    std::size_t count = 1;
    for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
    const auto channels = static_cast<std::size_t>(axis == 3 ? shape[3] : shape[0]);
    // Of what a RELU follows half the numbers end at zero: twice the variance keeps the others
    // large.
    const auto terms = static_cast<float>(count / channels);
    const float gain = behind == Activation::none ? 1 : 2;
    if (real()) {
        std::vector<float> values(count);
        std::normal_distribution<float> normal(0, std::sqrt(gain / terms));
        for (float& value : values) value = normal(random_);
        return {builder_.constant<float>("weights", type_, shape, values), {}};
    }
    std::vector<std::byte> values(count);
    // As many above the zero point as below: else sums grow from layer to layer until all are full.
    constexpr std::uint32_t uint8_zero = 121;
    const std::uint32_t most = type_ == ElementType::uint8 ? 2 * uint8_zero : 255;
    for (std::byte& value : values)
        value = static_cast<std::byte>(static_cast<std::uint32_t>(random_()) % (most + 1));
    constexpr float spread = 73;  // of uniform bytes
    const float scale = std::sqrt(gain / terms) / spread;
    auto quantization = model::per_tensor(scale, 0);
    if (type_ == ElementType::uint8)
        quantization = model::per_tensor(scale, uint8_zero);
    else if (axis != per_tensor_only)
        quantization = model::per_channel(std::vector<float>(channels, scale), axis);
    return {builder_.constant_bytes("weights", type_, shape, values, quantization), quantization};
}

TensorIndex NetworkMaker::bias(std::int32_t channels, const model::Quantization& input,
                               const Weights& weights) {
    const auto count = static_cast<std::size_t>(channels);
    if (real())
        return builder_.constant<float>("bias", type_, {channels}, std::vector<float>(count, 0.1F));
    std::vector<float> scales = weights.quantization.scale;
    for (float& scale : scales) scale *= input.scale[0];
    return builder_.constant<std::int32_t>(
        "bias", ElementType::int32, {channels}, std::vector<std::int32_t>(count, 100),
        scales.size() == 1 ? model::per_tensor(scales[0], 0) : model::per_channel(scales, 0));
}

}  // namespace reef::peers

#include "rk3588/device/probe_networks.h"

#include <algorithm>

#include "reef/model/builder.h"

namespace reef::rk3588 {
namespace {

model::Quantization weight_scales(const ProbeLayer& layer, std::int32_t out_channels) {
    if (!layer.by_channel) return model::per_tensor(0.005F, 128);
    std::vector<float> scales;
    for (std::int32_t c = 0; c < out_channels; ++c)
        scales.push_back(0.002F + 0.0003F * static_cast<float>(c % 13));
    return model::per_channel(std::move(scales), layer.depthwise ? 3 : 0);
}

/// Of all pixels, without their dimensions: the fraction is dropped.
Result<model::Model> mean_of(const ProbeLayer& layer) {
    model::Builder b("a probe");
    const auto numbers = model::per_tensor(0.05F, -7);
    const auto in =
        b.input("in", ElementType::int8, {1, layer.height, layer.width, layer.channels}, numbers);
    const auto axes =
        b.constant<std::int32_t>("axes", ElementType::int32, {2}, std::vector<std::int32_t>{1, 2});
    const auto out = b.tensor("out", ElementType::int8, {1, layer.channels}, numbers);
    b.add(layer.elements, {in, axes}, {out}, model::ReducerOptions{});
    b.output(out);
    return b.finish();
}

Result<model::Model> elements_of(const ProbeLayer& layer) {
    model::Builder b("a probe");
    const std::vector<std::int32_t> shape{1, layer.height, layer.width, layer.channels};
    const auto numbers = model::per_tensor(0.05F, 120);
    const auto one = b.input("one", ElementType::uint8, shape, numbers);
    if (layer.elements == model::Op::max_pool_2d || layer.elements == model::Op::average_pool_2d) {
        const std::int32_t side = layer.window;
        const auto out =
            b.tensor("out", ElementType::uint8,
                     {1, layer.height / side, layer.width / side, layer.channels}, numbers);
        b.add(layer.elements, {one}, {out},
              model::Pool2dOptions{
                  .stride_h = side, .stride_w = side, .filter_h = side, .filter_w = side});
        b.output(out);
        return b.finish();
    }
    const bool is_function = layer.elements == model::Op::logistic;
    const auto out = b.tensor("out", ElementType::uint8, shape,
                              model::per_tensor(layer.out_scale, is_function ? 0 : 125));
    if (layer.elements == model::Op::quantize || layer.elements == model::Op::logistic) {
        b.add(layer.elements, {one}, {out});
    } else {
        const auto other =
            b.input("other", ElementType::uint8, shape, model::per_tensor(0.03F, 131));
        const bool product = layer.elements == model::Op::mul;
        b.add(layer.elements, {one, other}, {out},
              product ? model::Options(model::MulOptions{}) : model::Options(model::AddOptions{}));
    }
    b.output(out);
    return b.finish();
}

}  // namespace

Result<model::Model> model_of(const ProbeLayer& layer) {
    if (layer.elements == model::Op::mean) return mean_of(layer);
    if (layer.elements != model::Op::conv_2d) return elements_of(layer);
    const auto type = layer.by_channel ? ElementType::int8 : ElementType::uint8;
    const std::int32_t zero = layer.by_channel ? 0 : 128,
                       out_channels = layer.depthwise ? layer.channels : layer.out_channels;
    const auto out_side = [&](std::int32_t side) {
        return (side + layer.stride - 1) / layer.stride;
    };
    model::Builder b("a probe");
    const auto in = b.input("in", type, {1, layer.height, layer.width, layer.channels},
                            model::per_tensor(0.05F, zero - 5));
    const std::vector<std::int32_t> shape{layer.depthwise ? 1 : out_channels, layer.kernel,
                                          layer.kernel, layer.channels};
    std::vector<std::byte> weights(
        static_cast<std::size_t>(shape[0] * layer.kernel * layer.kernel * layer.channels));
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<std::byte>(i * 7 + i / 31);
    // TFLite has no int8 weight of -128.
    if (layer.by_channel) std::ranges::replace(weights, std::byte{0x80}, std::byte{0x81});
    const auto w =
        b.constant_bytes("weights", type, shape, weights, weight_scales(layer, out_channels));
    const auto out = b.tensor(
        "out", type, {1, out_side(layer.height), out_side(layer.width), out_channels},
        model::per_tensor(layer.out_scale,
                          layer.activation == model::Activation::none ? zero : zero - 128));
    if (layer.depthwise)
        b.add(model::Op::depthwise_conv_2d, {in, w, model::absent_tensor}, {out},
              model::DepthwiseConv2dOptions{.padding = model::Padding::same,
                                            .stride_h = layer.stride,
                                            .stride_w = layer.stride,
                                            .dilation_h = layer.dilation,
                                            .dilation_w = layer.dilation,
                                            .depth_multiplier = 1,
                                            .activation = layer.activation});
    else
        b.add(model::Op::conv_2d, {in, w, model::absent_tensor}, {out},
              model::Conv2dOptions{.padding = model::Padding::same,
                                   .stride_h = layer.stride,
                                   .stride_w = layer.stride,
                                   .dilation_h = layer.dilation,
                                   .dilation_w = layer.dilation,
                                   .activation = layer.activation});
    b.output(out);
    return b.finish();
}

}  // namespace reef::rk3588

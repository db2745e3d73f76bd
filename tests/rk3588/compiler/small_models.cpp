#include "rk3588/compiler/small_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "reef/model/builder.h"

namespace reef::test {
namespace {

class Draw {
  public:
    explicit Draw(unsigned seed) : random_(seed) {}
    std::int32_t between(std::int32_t low, std::int32_t high) {
        return low + static_cast<std::int32_t>(random_() % static_cast<unsigned>(high - low + 1));
    }
    double real(double low, double high) {
        return low + (high - low) * static_cast<double>(random_()) /
                         static_cast<double>(std::mt19937::max());
    }
    std::int32_t one_of(std::initializer_list<std::int32_t> values) {
        return *(values.begin() + between(0, static_cast<std::int32_t>(values.size()) - 1));
    }

  private:
    std::mt19937 random_;
};

void draw_shape(Draw& draw, Draw& groups, RandomConvolution& c, model::Padding& padding) {
    c.depthwise = draw.between(0, 2) == 0;
    c.kernel_h = draw.one_of({1, 1, 2, 3, 3, 5, 7});
    c.kernel_w = draw.between(0, 9) < 7 ? c.kernel_h : draw.one_of({1, 2, 3, 5});
    c.stride = draw.one_of({1, 1, 2, 3});
    c.dilation = c.stride == 1 ? draw.one_of({1, 1, 1, 2, 4}) : 1;
    c.channels = draw.one_of({1, 3, 8, 12, 16, 24, 32, 33, 40, 48, 64, 72, 96, 130, 256});
    if (c.depthwise && c.channels == 1) c.channels = 2;
    c.out_channels =
        c.depthwise ? c.channels : draw.one_of({1, 2, 8, 17, 21, 32, 34, 48, 64, 100, 128});
    c.height = draw.between(1, 40);
    c.width = draw.between(1, 40);
    if (!c.depthwise && groups.between(0, 4) == 0) {
        c.groups = groups.one_of({2, 3, 4});
        c.channels = (c.channels + c.groups - 1) / c.groups * c.groups;
        c.out_channels = (c.out_channels + c.groups - 1) / c.groups * c.groups;
    }
    const auto reach_h = (c.kernel_h - 1) * c.dilation + 1;
    const auto reach_w = (c.kernel_w - 1) * c.dilation + 1;
    const bool same = draw.between(0, 9) < 6 || reach_h > c.height || reach_w > c.width;
    padding = same ? model::Padding::same : model::Padding::valid;
    const auto out = [&](std::int32_t in, std::int32_t reach) {
        return same ? (in + c.stride - 1) / c.stride : (in - reach) / c.stride + 1;
    };
    c.out_height = out(c.height, reach_h);
    c.out_width = out(c.width, reach_w);
    if (!same) return;
    c.top = std::max(0, (c.out_height - 1) * c.stride + reach_h - c.height) / 2;
    c.left = std::max(0, (c.out_width - 1) * c.stride + reach_w - c.width) / 2;
}

std::vector<std::byte> bytes_of(const std::vector<std::int32_t>& values) {
    std::vector<std::byte> out;
    for (const auto v : values) out.push_back(static_cast<std::byte>(v));
    return out;
}

model::Options options_of(const RandomConvolution& c, model::Padding padding,
                          model::Activation activation) {
    if (c.depthwise)
        return model::DepthwiseConv2dOptions{.padding = padding,
                                             .stride_h = c.stride,
                                             .stride_w = c.stride,
                                             .dilation_h = c.dilation,
                                             .dilation_w = c.dilation,
                                             .depth_multiplier = 1,
                                             .activation = activation};
    return model::Conv2dOptions{.padding = padding,
                                .stride_h = c.stride,
                                .stride_w = c.stride,
                                .dilation_h = c.dilation,
                                .dilation_w = c.dilation,
                                .activation = activation};
}

}  // namespace

namespace {

RandomConvolution drawn_convolution(unsigned seed, bool by_channel, double powers) {
    Draw draw(seed), groups(seed + 7777);
    RandomConvolution c;
    model::Padding padding{};
    draw_shape(draw, groups, c, padding);
    c.is_unsigned = !by_channel && draw.between(0, 1) == 0;
    const std::int32_t least = c.is_unsigned ? 0 : -128, most = least + 255;
    c.input_zero = draw.between(least, most);
    c.weight_zero = c.is_unsigned ? draw.between(least, most) : 0;
    c.output_zero = draw.between(least, most);
    const std::int32_t taps = c.kernel_h * c.kernel_w;
    const std::int32_t fan_in = taps * c.seen();
    for (std::int32_t i = 0; i < fan_in * c.out_channels; ++i)
        c.weights.push_back(draw.between(c.is_unsigned ? 0 : -127, most));
    constexpr float in_scale = 0.02F, weight_scale = 0.01F;
    std::vector<float> scales(static_cast<std::size_t>(by_channel ? c.out_channels : 1));
    for (float& s : scales)
        s = powers > 0   ? static_cast<float>(weight_scale * std::pow(10, -draw.real(0, powers)))
            : by_channel ? static_cast<float>(weight_scale * draw.real(0.02, 1))
                         : weight_scale;
    const auto out_scale = static_cast<float>(static_cast<double>(in_scale * weight_scale) *
                                              std::sqrt(fan_in) * 80 * draw.real(0.3, 2));
    for (std::int32_t i = 0; i < c.out_channels; ++i) {
        const float scale = scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(i)];
        const double alike = powers > 0 ? static_cast<double>(weight_scale / scale) : 1;
        c.biases.push_back(static_cast<std::int32_t>(alike * draw.between(-20000, 20000)));
        c.multipliers.push_back(static_cast<double>(in_scale) * static_cast<double>(scale) /
                                static_cast<double>(out_scale));
    }
    const auto activation =
        std::array{model::Activation::none, model::Activation::relu,
                   model::Activation::relu6}[static_cast<std::size_t>(draw.between(0, 2))];
    c.low = activation == model::Activation::none ? least : c.output_zero;
    c.high = most;
    if (activation == model::Activation::relu6)
        c.high = std::min<std::int32_t>(
            most, c.output_zero + static_cast<std::int32_t>(std::round(6.0F / out_scale)));

    const auto type = c.is_unsigned ? ElementType::uint8 : ElementType::int8;
    model::Builder b("a convolution");
    const auto in = b.input("in", type, {1, c.height, c.width, c.channels},
                            model::per_tensor(in_scale, c.input_zero));
    const auto shape =
        c.depthwise ? std::vector<std::int32_t>{1, c.kernel_h, c.kernel_w, c.channels}
                    : std::vector<std::int32_t>{c.out_channels, c.kernel_h, c.kernel_w, c.seen()};
    const auto weights =
        b.constant_bytes("weights", type, shape, bytes_of(c.weights),
                         by_channel ? model::per_channel(scales, c.depthwise ? 3 : 0)
                                    : model::per_tensor(weight_scale, c.weight_zero));
    const auto biases =
        b.constant<std::int32_t>("biases", ElementType::int32, {c.out_channels}, c.biases);
    const auto out = b.tensor("out", type, {1, c.out_height, c.out_width, c.out_channels},
                              model::per_tensor(out_scale, c.output_zero));
    b.add(c.depthwise ? model::Op::depthwise_conv_2d : model::Op::conv_2d, {in, weights, biases},
          {out}, options_of(c, padding, activation));
    b.output(out);
    auto model = b.finish();
    EXPECT_TRUE(model) << model.error().message();
    if (model) c.model = std::move(*model);
    return c;
}

}  // namespace

RandomConvolution random_convolution(unsigned seed, bool by_channel) {
    return drawn_convolution(seed, by_channel, 0);
}

RandomConvolution random_convolution_of_wide_scales(unsigned seed, double powers) {
    return drawn_convolution(seed, true, powers);
}

}  // namespace reef::test

#include "own_models.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "reef/apps/robotics.h"
#include "reef/edgetpu/compiler.h"
#include "reef/model/builder.h"

namespace reef::test {
namespace {

using model::Activation;
using model::Op;
using model::Padding;
using model::TensorIndex;

struct Live {
    TensorIndex index = 0;
    std::int32_t side = 0, channels = 0;
    float scale = 0.05F;
};

/// Numbers by a formula: the same networks everywhere.
class Network {
  public:
    Network(std::string name, ElementType type, bool by_channel)
        : builder_(std::move(name)), type_(type), by_channel_(by_channel) {}

    Live input(std::int32_t side, std::int32_t channels) {
        Live in{.side = side, .channels = channels};
        in.index = builder_.input("in", type_, {1, side, side, channels}, numbers(in));
        return in;
    }
    Live convolution(const Live& in, std::int32_t channels, std::int32_t kernel,
                     std::int32_t stride) {
        Live out =
            tensor({.side = (in.side + stride - 1) / stride, .channels = channels, .scale = 0.09F});
        builder_.add(
            Op::conv_2d,
            {in.index, weights({channels, kernel, kernel, in.channels}, 0), biases(in, channels)},
            {out.index},
            model::Conv2dOptions{.padding = Padding::same,
                                 .stride_h = stride,
                                 .stride_w = stride,
                                 .activation = Activation::relu});
        return out;
    }
    /// Each group of output channels is made of as many input channels.
    Live grouped(const Live& in, std::int32_t channels, std::int32_t groups) {
        Live out = tensor({.side = in.side, .channels = channels, .scale = 0.09F});
        builder_.add(
            Op::conv_2d,
            {in.index, weights({channels, 3, 3, in.channels / groups}, 0), biases(in, channels)},
            {out.index},
            model::Conv2dOptions{.padding = Padding::same, .stride_h = 1, .stride_w = 1});
        return out;
    }
    /// All pixels as one.
    Live flattened(const Live& in) {
        Live out{.side = 1, .channels = in.side * in.side * in.channels, .scale = in.scale};
        const std::vector<std::int32_t> shape = {1, out.channels};
        out.index = builder_.tensor(next(), type_, shape, numbers(out));
        builder_.add(Op::reshape, {in.index}, {out.index}, model::ReshapeOptions{shape});
        return out;
    }
    Live depthwise(const Live& in) {
        Live out = tensor({.side = in.side, .channels = in.channels, .scale = 0.08F});
        builder_.add(Op::depthwise_conv_2d,
                     {in.index, weights({1, 3, 3, in.channels}, 3), biases(in, in.channels)},
                     {out.index},
                     model::DepthwiseConv2dOptions{.padding = Padding::same,
                                                   .stride_h = 1,
                                                   .stride_w = 1,
                                                   .depth_multiplier = 1,
                                                   .activation = Activation::none});
        return out;
    }
    Live dense(const Live& in, std::int32_t channels) {
        Live out{.side = 1, .channels = channels, .scale = 0.2F};
        out.index = builder_.tensor(next(), type_, {1, channels}, numbers(out));
        builder_.add(Op::fully_connected,
                     {in.index, weights({channels, in.side * in.side * in.channels}, 0),
                      biases(in, channels)},
                     {out.index}, model::FullyConnectedOptions{});
        return out;
    }
    /// TILE in both directions, which no compiler takes.
    Live repeated(const Live& in) {
        Live out = tensor({.side = 2 * in.side, .channels = in.channels, .scale = in.scale});
        const std::vector<std::int32_t> times = {1, 2, 2, 1};
        const auto constant =
            builder_.constant<std::int32_t>(next(), ElementType::int32, {4}, times);
        builder_.add(Op::tile, {in.index, constant}, {out.index});
        return out;
    }
    Live sum(const Live& a, const Live& b) {
        Live out = tensor({.side = a.side, .channels = a.channels, .scale = 0.12F});
        builder_.add(Op::add, {a.index, b.index}, {out.index}, model::AddOptions{});
        return out;
    }
    Result<model::Model> finish(const Live& out) {
        builder_.output(out.index);
        return builder_.finish();
    }

  private:
    [[nodiscard]] model::Quantization numbers(const Live& t) const {
        return model::per_tensor(t.scale, type_ == ElementType::int8 ? -3 : 125);
    }
    std::string next() { return fmt::format("t{}", ++made_); }
    std::uint32_t number() { return state_ = state_ * 1664525U + 1013904223U; }

    Live tensor(Live t) {
        t.index = builder_.tensor(next(), type_, {1, t.side, t.side, t.channels}, numbers(t));
        return t;
    }
    /// `axis`: of the output channels.
    TensorIndex weights(std::vector<std::int32_t> shape, std::int32_t axis) {
        std::size_t count = 1;
        for (const std::int32_t size : shape) count *= static_cast<std::size_t>(size);
        std::vector<std::uint8_t> values(count);
        for (auto& value : values) {
            value = static_cast<std::uint8_t>(number() >> 24);
            if (type_ == ElementType::int8 && value == 0x80) value = 0x81;
        }
        model::Quantization q =
            model::per_tensor(scale_of_weights, type_ == ElementType::int8 ? 0 : 131);
        if (by_channel_) {
            std::vector<float> scales(
                static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]));
            for (std::size_t i = 0; i < scales.size(); ++i)
                scales[i] = scale_of_weights * (1 + static_cast<float>(i % 7) / 8);
            q = model::per_channel(std::move(scales), axis);
        }
        return builder_.constant<std::uint8_t>(next(), type_, std::move(shape), values, q);
    }
    TensorIndex biases(const Live& in, std::int32_t channels) {
        std::vector<std::int32_t> values(static_cast<std::size_t>(channels));
        for (auto& value : values) value = static_cast<std::int32_t>(number() >> 20) - 2048;
        return builder_.constant<std::int32_t>(next(), ElementType::int32, {channels}, values,
                                               model::per_tensor(in.scale * scale_of_weights, 0));
    }

    static constexpr float scale_of_weights = 0.004F;
    model::Builder builder_;
    ElementType type_;
    bool by_channel_;
    unsigned made_ = 0;
    std::uint32_t state_ = 12345;
};

Result<model::Model> classifier() {
    Network net("classifier", ElementType::int8, true);
    Live at = net.convolution(net.input(12, 3), 20, 3, 2);
    at = net.convolution(net.depthwise(at), 12, 1, 1);
    return net.finish(net.convolution(at, 24, 3, 2));
}

Result<model::Model> residual() {
    Network net("residual", ElementType::uint8, false);
    const Live in = net.input(10, 8);
    const Live at = net.convolution(net.convolution(in, 8, 3, 1), 8, 3, 1);
    return net.finish(net.convolution(net.sum(in, at), 70, 1, 1));
}

Result<model::Model> wide() {
    Network net("wide", ElementType::int8, false);
    return net.finish(net.convolution(net.input(6, 40), 23, 3, 1));
}

/// Its layers are spread over the tiles by channels.
Result<model::Model> narrow() {
    Network net("narrow", ElementType::uint8, false);
    Live at = net.convolution(net.input(4, 96), 256, 1, 1);
    at = net.convolution(net.depthwise(at), 200, 1, 1);
    return net.finish(net.convolution(at, 132, 3, 1));
}

/// Its first two sums are read again at the end, behind layers that fill the tiles.
Result<model::Model> skipping() {
    Network net("skipping", ElementType::uint8, false);
    const Live in = net.input(18, 8);
    const Live first = net.sum(in, net.convolution(in, 8, 3, 1));
    const Live second = net.sum(first, net.depthwise(first));
    Live at = net.convolution(net.convolution(second, 40, 3, 1), 8, 1, 1);
    at = net.sum(second, at);
    at = net.sum(second, net.convolution(net.depthwise(at), 8, 3, 1));
    return net.finish(net.sum(first, at));
}

Result<model::Model> dense() {
    Network net("dense", ElementType::int8, true);
    return net.finish(net.dense(net.input(1, 64), 100));
}

Result<model::Model> grouped() {
    Network net("grouped", ElementType::int8, true);
    Live at = net.grouped(net.input(9, 12), 18, 3);
    return net.finish(net.grouped(at, 36, 18));
}

/// Its channels are no multiple of four, so that each pixel is filled up.
Result<model::Model> flattened() {
    Network net("flattened", ElementType::uint8, false);
    const Live at = net.convolution(net.input(6, 3), 10, 3, 1);
    return net.finish(net.dense(net.flattened(at), 21));
}

Result<model::Model> two_programs() {
    Network net("two_programs", ElementType::int8, true);
    const Live at = net.repeated(net.convolution(net.input(8, 4), 12, 3, 2));
    return net.finish(net.convolution(at, 20, 3, 2));
}

void add(std::vector<OwnModel>& out, std::string name, Result<model::Model> plain,
         const chip::CompileOptions& options = {}) {
    ASSERT_TRUE(plain) << name << ": " << plain.error().message();
    auto compiled = edgetpu::compile(*plain, options);
    ASSERT_TRUE(compiled) << name << ": " << compiled.error().message();
    out.push_back({std::move(name), std::move(*plain), std::move(compiled->model)});
}

std::vector<OwnModel> made() {
    std::vector<OwnModel> out;
    add(out, "looming", apps::looming_model({.height = 24, .width = 24}));
    add(out, "gabor",
        apps::gabor_model({.height = 16, .width = 16, .orientations = 2, .kernel_size = 5}));
    add(out, "classifier", classifier());
    add(out, "residual", residual());
    add(out, "wide", wide());
    add(out, "narrow", narrow());
    add(out, "skipping", skipping(), {.settings = {{"spill", "always"}}});
    add(out, "dense", dense());
    add(out, "grouped", grouped());
    add(out, "flattened", flattened());
    add(out, "two_programs", two_programs(), {.most_programs = 2, .keep_islands = true});
    return out;
}

}  // namespace

const std::vector<OwnModel>& own_models() {
    static const std::vector<OwnModel> models = made();
    return models;
}

chip::CompileOptions options_in_turn(unsigned seed) {
    switch (seed % 5) {
        case 1:
            return {.stream_parameters = true};
        case 2:
            return {.most_programs = 4, .keep_islands = true, .known_forms_only = true};
        case 3:
            return {.settings = {{"spill", "always"}}};
        case 4:
            return {.most_programs = 4, .keep_islands = true};
        default:
            return {};
    }
}

}  // namespace reef::test

#include "peers/known_shapes.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>
#include <span>
#include <utility>

#include "reef/model/builder.h"

namespace reef::peers {
namespace {

using model::Activation;
using model::Padding;
using model::TensorIndex;

struct Place {
    TensorIndex tensor = 0;
    std::int32_t size = 1;  ///< height and width
    std::int32_t channels = 1;
    Activation range = Activation::none;  ///< of its values
};

/// Quantised activations have the range that their function lets through, as after training, so
/// that no other bounds are left to apply. Weights are scaled so that sums spread over a part of
/// it.
class Maker {
  public:
    Maker(std::string name, ElementType type) : builder_(std::move(name)), type_(type) {}

    Place input(std::int32_t size) {
        return {builder_.input("in", type_, {1, size, size, 3}, activations()), size, 3};
    }
    Place conv(Place in, std::int32_t channels, std::int32_t taps, std::int32_t stride = 1,
               Activation activation = Activation::relu) {
        const Place out = place(same(in.size, stride), channels, activation);
        const auto weights = constants({channels, taps, taps, in.channels}, 0);
        builder_.add(model::Op::conv_2d, {in.tensor, weights, bias(channels)}, {out.tensor},
                     model::Conv2dOptions{.padding = Padding::same,
                                          .stride_h = stride,
                                          .stride_w = stride,
                                          .activation = activation});
        return out;
    }
    Place depthwise(Place in, std::int32_t taps, std::int32_t stride) {
        const Place out = place(same(in.size, stride), in.channels, Activation::relu6);
        const auto weights = constants({1, taps, taps, in.channels}, 3);
        builder_.add(model::Op::depthwise_conv_2d, {in.tensor, weights, bias(in.channels)},
                     {out.tensor},
                     model::DepthwiseConv2dOptions{.padding = Padding::same,
                                                   .stride_h = stride,
                                                   .stride_w = stride,
                                                   .depth_multiplier = 1,
                                                   .activation = Activation::relu6});
        return out;
    }
    Place pool(Place in, bool average, std::int32_t taps, std::int32_t stride) {
        const Place out = place(same(in.size, stride), in.channels, in.range);
        builder_.add(average ? model::Op::average_pool_2d : model::Op::max_pool_2d, {in.tensor},
                     {out.tensor},
                     model::Pool2dOptions{.padding = Padding::same,
                                          .stride_h = stride,
                                          .stride_w = stride,
                                          .filter_h = taps,
                                          .filter_w = taps});
        return out;
    }
    Place add(Place a, Place b, Activation activation) {
        const Place out = place(a.size, a.channels, activation);
        builder_.add(model::Op::add, {a.tensor, b.tensor}, {out.tensor},
                     model::AddOptions{.activation = activation});
        return out;
    }
    Place concatenation(std::span<const Place> parts) {
        std::vector<TensorIndex> inputs;
        std::int32_t channels = 0;
        for (const Place& part : parts) {
            inputs.push_back(part.tensor);
            channels += part.channels;
        }
        const Place out = place(parts[0].size, channels, parts[0].range);
        builder_.add(model::Op::concatenation, inputs, {out.tensor},
                     model::ConcatenationOptions{.axis = 3});
        return out;
    }
    /// The mean of all pixels, a layer of `classes` and SOFTMAX.
    void classify(Place in, std::int32_t classes) {
        const auto mean = builder_.tensor("mean", type_, {1, in.channels}, activations());
        const std::array<std::int32_t, 2> axes{1, 2};
        builder_.add(
            model::Op::mean,
            {in.tensor, builder_.constant<std::int32_t>("axes", ElementType::int32, {2}, axes)},
            {mean}, model::ReducerOptions{});
        const auto scores = builder_.tensor("scores", type_, {1, classes}, activations());
        builder_.add(model::Op::fully_connected,
                     {mean, constants({classes, in.channels}, per_tensor_only), bias(classes)},
                     {scores}, model::FullyConnectedOptions{});
        const auto out = builder_.tensor(
            "out", type_, {1, classes},
            real() ? model::Quantization{} : model::per_tensor(1.0F / 256, lowest()));
        builder_.add(model::Op::softmax, {scores}, {out}, model::SoftmaxOptions{.beta = 1});
        builder_.output(out);
    }
    Result<model::Model> finish() { return builder_.finish(); }

  private:
    static constexpr std::int32_t per_tensor_only = -1;
    static constexpr float step = 0.05F;

    static std::int32_t same(std::int32_t size, std::int32_t stride) {
        return (size + stride - 1) / stride;
    }
    [[nodiscard]] bool real() const { return type_ == ElementType::float32; }
    [[nodiscard]] std::int64_t lowest() const { return type_ == ElementType::int8 ? -128 : 0; }
    [[nodiscard]] model::Quantization activations(Activation range = Activation::none) const {
        if (real()) return {};
        if (range == Activation::none) return model::per_tensor(step, lowest() + 128);
        return model::per_tensor(range == Activation::relu6 ? 6.0F / 255 : step, lowest());
    }
    Place place(std::int32_t size, std::int32_t channels, Activation range) {
        return {builder_.tensor("t", type_, {1, size, size, channels}, activations(range)), size,
                channels, range};
    }

    TensorIndex constants(const std::vector<std::int32_t>& shape, std::int32_t axis) {
        std::size_t count = 1;
        for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
        const auto channels = static_cast<std::size_t>(axis == 3 ? shape[3] : shape[0]);
        const auto terms = static_cast<float>(count / channels);
        if (real()) {
            std::vector<float> values(count);
            std::normal_distribution<float> normal(0, std::sqrt(2 / terms));
            for (float& value : values) value = normal(random_);
            return builder_.constant<float>("weights", type_, shape, values);
        }
        std::vector<std::byte> values(count);
        for (std::byte& value : values) value = static_cast<std::byte>(random_() & 0xFF);
        constexpr float spread = 73;  // of uniform bytes
        const float scale = 1 / (spread * std::sqrt(terms));
        auto quantization = model::per_tensor(scale, 0);
        if (type_ == ElementType::uint8)
            quantization = model::per_tensor(scale, 121);
        else if (axis != per_tensor_only)
            quantization = model::per_channel(std::vector<float>(channels, scale), axis);
        return builder_.constant_bytes("weights", type_, shape, values, quantization);
    }
    TensorIndex bias(std::int32_t channels) {
        const auto count = static_cast<std::size_t>(channels);
        if (real())
            return builder_.constant<float>("bias", type_, {channels},
                                            std::vector<float>(count, 0.1F));
        return builder_.constant<std::int32_t>("bias", ElementType::int32, {channels},
                                               std::vector<std::int32_t>(count, 100));
    }

    model::Builder builder_;
    ElementType type_;
    std::mt19937 random_{1};
};

void mobilenet_v1(Maker& make) {
    Place at = make.conv(make.input(224), 32, 3, 2, Activation::relu6);
    constexpr std::array<std::pair<std::int32_t, std::int32_t>, 13> blocks{{{64, 1},
                                                                            {128, 2},
                                                                            {128, 1},
                                                                            {256, 2},
                                                                            {256, 1},
                                                                            {512, 2},
                                                                            {512, 1},
                                                                            {512, 1},
                                                                            {512, 1},
                                                                            {512, 1},
                                                                            {512, 1},
                                                                            {1024, 2},
                                                                            {1024, 1}}};
    for (const auto& [channels, stride] : blocks)
        at = make.conv(make.depthwise(at, 3, stride), channels, 1, 1, Activation::relu6);
    make.classify(at, 1001);
}

void mobilenet_v2(Maker& make) {
    Place at = make.conv(make.input(224), 32, 3, 2, Activation::relu6);
    struct Group {
        std::int32_t expand, channels, count, stride;
    };
    for (const Group& group :
         {Group{1, 16, 1, 1}, Group{6, 24, 2, 2}, Group{6, 32, 3, 2}, Group{6, 64, 4, 2},
          Group{6, 96, 3, 1}, Group{6, 160, 3, 2}, Group{6, 320, 1, 1}}) {
        for (std::int32_t i = 0; i < group.count; ++i) {
            const std::int32_t stride = i == 0 ? group.stride : 1;
            const Place wide = group.expand == 1 ? at
                                                 : make.conv(at, at.channels * group.expand, 1, 1,
                                                             Activation::relu6);
            const Place out =
                make.conv(make.depthwise(wide, 3, stride), group.channels, 1, 1, Activation::none);
            const bool adds = stride == 1 && at.channels == out.channels;
            at = adds ? make.add(at, out, Activation::none) : out;
        }
    }
    make.classify(make.conv(at, 1280, 1, 1, Activation::relu6), 1001);
}

void resnet50(Maker& make) {
    Place at = make.pool(make.conv(make.input(224), 64, 7, 2), false, 3, 2);
    constexpr std::array<std::pair<std::int32_t, int>, 4> stages{
        {{64, 3}, {128, 4}, {256, 6}, {512, 3}}};
    for (const auto& [channels, count] : stages) {
        for (int i = 0; i < count; ++i) {
            const std::int32_t stride = i == 0 && channels != 64 ? 2 : 1;
            const Place shortcut =
                i == 0 ? make.conv(at, 4 * channels, 1, stride, Activation::none) : at;
            Place inner = make.conv(make.conv(at, channels, 1, stride), channels, 3);
            inner = make.conv(inner, 4 * channels, 1, 1, Activation::none);
            at = make.add(shortcut, inner, Activation::relu);
        }
    }
    make.classify(at, 1000);
}

void inception_v1(Maker& make) {
    Place at = make.pool(make.conv(make.input(224), 64, 7, 2), false, 3, 2);
    at = make.pool(make.conv(make.conv(at, 64, 1), 192, 3), false, 3, 2);
    struct Module {
        std::int32_t direct, narrow3, wide3, narrow5, wide5, pooled;
        bool halves;  ///< a pool of step 2 comes before
    };
    for (const Module& m :
         {Module{64, 96, 128, 16, 32, 32, false}, Module{128, 128, 192, 32, 96, 64, false},
          Module{192, 96, 208, 16, 48, 64, true}, Module{160, 112, 224, 24, 64, 64, false},
          Module{128, 128, 256, 24, 64, 64, false}, Module{112, 144, 288, 32, 64, 64, false},
          Module{256, 160, 320, 32, 128, 128, false}, Module{256, 160, 320, 32, 128, 128, true},
          Module{384, 192, 384, 48, 128, 128, false}}) {
        if (m.halves) at = make.pool(at, false, 3, 2);
        const std::array parts{make.conv(at, m.direct, 1),
                               make.conv(make.conv(at, m.narrow3, 1), m.wide3, 3),
                               make.conv(make.conv(at, m.narrow5, 1), m.wide5, 3),
                               make.conv(make.pool(at, false, 3, 1), m.pooled, 1)};
        at = make.concatenation(parts);
    }
    make.classify(at, 1001);
}

struct Shape {
    const char* name;
    void (*add)(Maker& make);
};
constexpr Shape shapes[] = {{"mobilenet_v1", mobilenet_v1},
                            {"mobilenet_v2", mobilenet_v2},
                            {"resnet50", resnet50},
                            {"inception_v1", inception_v1}};
constexpr ElementType types[] = {ElementType::uint8, ElementType::int8, ElementType::float32};

std::string name_of_shape(const Shape& shape, ElementType type) {
    return fmt::format("{}:{}", shape.name, name_of(type));
}

}  // namespace

std::vector<std::string> known_shapes() {
    std::vector<std::string> names;
    for (const Shape& shape : shapes)
        for (const ElementType type : types) names.push_back(name_of_shape(shape, type));
    return names;
}

Result<model::Model> network_of_shape(std::string_view name) {
    for (const Shape& shape : shapes) {
        for (const ElementType type : types) {
            if (name_of_shape(shape, type) != name) continue;
            Maker make(std::string(name), type);
            shape.add(make);
            return make.finish();
        }
    }
    return fail(Cause::bad_argument, fmt::format("no network of shape '{}'; there are {}", name,
                                                 fmt::join(known_shapes(), ", ")));
}

}  // namespace reef::peers

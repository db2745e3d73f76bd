#include "peers/known_shapes.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "peers/network_maker.h"

namespace reef::peers {
namespace {

using model::Activation;
using Maker = NetworkMaker;

constexpr Window point{};

Place separable(Maker& make, Place in, std::int32_t channels, std::int32_t stride) {
    return make.conv(make.depthwise(in, Window::square(3, stride)), channels, point,
                     Activation::relu6);
}

/// `quarters` of the channels; the first `count` of the 13 blocks.
Place mobilenet_v1_features(Maker& make, std::int32_t size, std::int32_t quarters,
                            std::size_t count) {
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
    Place at =
        make.conv(make.input(size), 32 * quarters / 4, Window::square(3, 2), Activation::relu6);
    for (const auto& [channels, stride] : std::span(blocks).first(count))
        at = separable(make, at, channels * quarters / 4, stride);
    return at;
}

void mobilenet_v1(Maker& make) {
    make.classify(mobilenet_v1_features(make, 224, 4, 13), 1001);
}
void mobilenet_v1_075(Maker& make) {
    make.classify(mobilenet_v1_features(make, 224, 3, 13), 1001);
}

/// One pixel of the maps for 16 x 16 of the picture, and the nine maps that its decoder reads.
void bodypix(Maker& make) {
    const Place at = mobilenet_v1_features(make, 512, 3, 11);
    for (const std::int32_t channels : {1, 17, 34, 32, 32, 24, 48})
        make.output(make.conv(at, channels, point, Activation::none));
}

/// An inverted residual block.
Place bottleneck(Maker& make, Place in, std::int32_t wide_channels, std::int32_t channels,
                 Window window) {
    const Place wide =
        wide_channels == in.channels ? in : make.conv(in, wide_channels, point, Activation::relu6);
    const Place out = make.conv(make.depthwise(wide, window), channels, point, Activation::none);
    const bool adds = window.stride == 1 && in.channels == out.channels;
    return adds ? make.add(in, out, Activation::none) : out;
}

struct Group {
    std::int32_t expand, channels, count, stride;
};
constexpr Group mobilenet_v2_groups[]{{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

Place mobilenet_v2_stem(Maker& make, std::int32_t size) {
    return make.conv(make.input(size), 32, Window::square(3, 2), Activation::relu6);
}

void mobilenet_v2(Maker& make) {
    Place at = mobilenet_v2_stem(make, 224);
    for (const Group& group : mobilenet_v2_groups)
        for (std::int32_t i = 0; i < group.count; ++i)
            at = bottleneck(make, at, at.channels * group.expand, group.channels,
                            Window::square(3, i == 0 ? group.stride : 1));
    make.classify(make.conv(at, 1280, point, Activation::relu6), 1001);
}

/// MobileNet v2 that halves the picture four times, windows of the last groups with holes instead.
void deeplab_pascal(Maker& make) {
    Place at = mobilenet_v2_stem(make, 513);
    for (const Group& group : mobilenet_v2_groups) {
        const std::int32_t holes = group.channels > 160 ? 2 : 1;
        for (std::int32_t i = 0; i < group.count; ++i) {
            const std::int32_t stride = i == 0 && group.channels != 160 ? group.stride : 1;
            const bool behind_stride = group.channels == 160 && i > 0;
            at = bottleneck(make, at, at.channels * group.expand, group.channels,
                            Window::square(3, stride, behind_stride ? 2 : holes));
        }
    }
    const Place mean = make.pool(at, true, Window::inside(at.height));
    const std::array parts{make.resize(make.conv(mean, 256, point), at.height, true),
                           make.conv(at, 256, point)};
    const Place scores =
        make.conv(make.conv(make.concatenation(parts), 256, point), 21, point, Activation::none);
    make.arg_max(make.resize(scores, 513, true));
}

/// Boxes of 300 x 300: six maps from 19 x 19 down to 1 x 1, without the choice among the boxes.
void ssd_mobilenet_v2(Maker& make) {
    Place at = mobilenet_v2_stem(make, 300);
    std::vector<Place> maps;
    for (const Group& group : mobilenet_v2_groups) {
        for (std::int32_t i = 0; i < group.count; ++i) {
            const bool is_map = group.channels == 160 && i == 0;
            if (is_map) {
                // The first map is this block's wide tensor.
                at = make.conv(at, at.channels * group.expand, point, Activation::relu6);
                maps.push_back(at);
            }
            at = bottleneck(make, at, is_map ? at.channels : at.channels * group.expand,
                            group.channels, Window::square(3, i == 0 ? group.stride : 1));
        }
    }
    at = make.conv(at, 1280, point, Activation::relu6);
    maps.push_back(at);
    for (const std::int32_t channels : {512, 256, 256, 128}) {
        at = make.conv(make.conv(at, channels / 2, point, Activation::relu6), channels,
                       Window::square(3, 2), Activation::relu6);
        maps.push_back(at);
    }
    std::vector<Place> boxes, classes;
    constexpr std::int32_t corners = 4, kinds = 91;
    for (const Place& map : maps) {
        const std::int32_t anchors = &map == &maps[0] ? 3 : 6;
        boxes.push_back(make.conv(map, anchors * corners, point, Activation::none));
        classes.push_back(make.conv(map, anchors * kinds, point, Activation::none));
    }
    make.output(make.rows(boxes, corners));
    make.output(make.logistic(make.rows(classes, kinds)));
}

/// The small one for the Edge TPU: the first groups widen with 3 x 3 instead of depthwise windows.
void efficientnet_edgetpu_s(Maker& make) {
    Place at = make.conv(make.input(224), 32, Window::square(3, 2));
    const auto fused = [&](std::int32_t wide, std::int32_t channels, std::int32_t stride,
                           bool skips) {
        const Place out = make.conv(make.conv(at, wide, Window::square(3, stride)), channels, point,
                                    Activation::none);
        at = skips ? make.add(at, out, Activation::none) : out;
    };
    // The first widens as if it had 24 channels, as those behind it have.
    fused(4 * 24, 24, 1, false);
    for (const auto& [channels, count] : {std::pair{32, 2}, std::pair{48, 4}})
        for (int i = 0; i < count; ++i) fused(8 * at.channels, channels, i == 0 ? 2 : 1, i > 0);
    for (const Group& group : {Group{8, 96, 5, 2}, Group{8, 144, 4, 1}, Group{8, 192, 2, 2}})
        for (std::int32_t i = 0; i < group.count; ++i)
            at = bottleneck(make, at, at.channels * group.expand, group.channels,
                            Window::square(5, i == 0 ? group.stride : 1));
    make.classify(make.conv(at, 1280, point), 1001);
}

void resnet50(Maker& make) {
    Place at = make.pool(make.conv(make.input(224), 64, Window::square(7, 2)), false,
                         Window::square(3, 2));
    constexpr std::array<std::pair<std::int32_t, int>, 4> stages{
        {{64, 3}, {128, 4}, {256, 6}, {512, 3}}};
    for (const auto& [channels, count] : stages) {
        for (int i = 0; i < count; ++i) {
            const std::int32_t stride = i == 0 && channels != 64 ? 2 : 1;
            const Place shortcut =
                i == 0 ? make.conv(at, 4 * channels, Window::square(1, stride), Activation::none)
                       : at;
            Place inner = make.conv(make.conv(at, channels, Window::square(1, stride)), channels,
                                    Window::square(3));
            inner = make.conv(inner, 4 * channels, point, Activation::none);
            at = make.add(shortcut, inner, Activation::relu);
        }
    }
    make.classify(at, 1000);
}

void inception_v1(Maker& make) {
    const Window halving = Window::square(3, 2);
    Place at = make.pool(make.conv(make.input(224), 64, Window::square(7, 2)), false, halving);
    at = make.pool(make.conv(make.conv(at, 64, point), 192, Window::square(3)), false, halving);
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
        if (m.halves) at = make.pool(at, false, halving);
        const std::array parts{
            make.conv(at, m.direct, point),
            make.conv(make.conv(at, m.narrow3, point), m.wide3, Window::square(3)),
            make.conv(make.conv(at, m.narrow5, point), m.wide5, Window::square(3)),
            make.conv(make.pool(at, false, Window::square(3)), m.pooled, point)};
        at = make.concatenation(parts);
    }
    make.classify(at, 1001);
}

// Modules of inception_v3 by the size of their images.

Place pooled(Maker& make, Place at, std::int32_t channels) {
    return make.conv(make.pool(at, true, Window::square(3)), channels, point);
}

Place module_of_35(Maker& make, Place at, std::int32_t pool_channels) {
    const Place narrow = make.conv(make.conv(at, 64, point), 96, Window::square(3));
    return make.concatenation(std::array{
        make.conv(at, 64, point), make.conv(make.conv(at, 48, point), 64, Window::square(5)),
        make.conv(narrow, 96, Window::square(3)), pooled(make, at, pool_channels)});
}

/// Windows of 7 x 7 in two steps, four and two of them.
Place module_of_17(Maker& make, Place at, std::int32_t narrow) {
    const Window row{1, 7}, column{7, 1};
    Place twice = make.conv(at, narrow, point);
    for (const Window& window : {column, row, column}) twice = make.conv(twice, narrow, window);
    const Place once = make.conv(make.conv(at, narrow, point), narrow, row);
    return make.concatenation(std::array{make.conv(at, 192, point), make.conv(once, 192, column),
                                         make.conv(twice, 192, row), pooled(make, at, 192)});
}

Place module_of_8(Maker& make, Place at) {
    const Window row{1, 3}, column{3, 1};
    const Place once = make.conv(at, 384, point);
    const Place twice = make.conv(make.conv(at, 448, point), 384, Window::square(3));
    return make.concatenation(std::array{make.conv(at, 320, point), make.conv(once, 384, row),
                                         make.conv(once, 384, column), make.conv(twice, 384, row),
                                         make.conv(twice, 384, column), pooled(make, at, 192)});
}

Place inception_v3_stem(Maker& make) {
    Place at = make.conv(make.input(299), 32, Window::inside(3, 2));
    at = make.conv(make.conv(at, 32, Window::inside(3)), 64, Window::square(3));
    at = make.conv(make.pool(at, false, Window::inside(3, 2)), 80, point);
    return make.pool(make.conv(at, 192, Window::inside(3)), false, Window::inside(3, 2));
}

void inception_v3(Maker& make) {
    const Window halving = Window::inside(3, 2);
    Place at = inception_v3_stem(make);
    for (const std::int32_t channels : {32, 64, 64}) at = module_of_35(make, at, channels);
    const Place wide = make.conv(make.conv(at, 64, point), 96, Window::square(3));
    at = make.concatenation(std::array{make.conv(at, 384, halving), make.conv(wide, 96, halving),
                                       make.pool(at, false, halving)});
    for (const std::int32_t narrow : {128, 160, 160, 192}) at = module_of_17(make, at, narrow);
    Place long_way = make.conv(make.conv(at, 192, point), 192, Window{1, 7});
    long_way = make.conv(long_way, 192, Window{7, 1});
    at = make.concatenation(std::array{make.conv(make.conv(at, 192, point), 320, halving),
                                       make.conv(long_way, 192, halving),
                                       make.pool(at, false, halving)});
    for (int i = 0; i < 2; ++i) at = module_of_8(make, at);
    make.classify(at, 1001);
}

struct Shape {
    const char* name;
    void (*add)(Maker& make);
};
constexpr Shape shapes[] = {{"mobilenet_v1", mobilenet_v1},
                            {"mobilenet_v1_0.75", mobilenet_v1_075},
                            {"mobilenet_v2", mobilenet_v2},
                            {"resnet50", resnet50},
                            {"inception_v1", inception_v1},
                            {"inception_v3", inception_v3},
                            {"efficientnet_edgetpu_s", efficientnet_edgetpu_s},
                            {"ssd_mobilenet_v2", ssd_mobilenet_v2},
                            {"deeplab_pascal", deeplab_pascal},
                            {"bodypix_512", bodypix}};
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

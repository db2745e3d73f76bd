// Operators with windows over height and width: convolutions, pools, bilinear resizing.
#include <algorithm>
#include <array>
#include <cmath>

#include "cpu/plain/window_axis.h"

namespace reef::plain {
namespace {

using model::Op;
using model::Padding;

/// Weights with one scale, or for int8 one for each index of `axis` and zero points 0.
Values random_weights(Choices& c, ElementType type, Shape shape, std::int32_t axis) {
    Values weights = random_values(c, type, std::move(shape), Role::constant);
    if (type != i8) return weights;
    weights.zero = 0;
    if (c.one_in(2)) return weights;
    weights.axis = axis;
    weights.scales.resize(static_cast<std::size_t>(weights.shape[static_cast<std::size_t>(axis)]));
    for (float& scale : weights.scales) scale = static_cast<float>(c.real(0.003, 0.1));
    return weights;
}

/// One number for each of `channels`, in the scale of the sums; sometimes none.
Values random_bias(Choices& c, const Values& in, const Values& weights, std::int32_t channels) {
    if (c.one_in(4)) return absent();
    if (in.type == f32) return raw_values(c, f32, {channels}, Role::constant);
    Values bias = raw_values(c, i32, {channels}, Role::constant);
    for (const float scale : weights.scales) bias.scales.push_back(in.scales[0] * scale);
    return bias;
}

/// Real sums, with what their bounds need.
struct Sums {
    Expected out;
    const Values* bias = nullptr;
    model::Activation activation = model::Activation::none;

    void add(std::size_t at, double product) {
        out.real[at] += product;
        out.magnitude[at] += std::abs(product);
    }
    Expected finish(Choices& c, double terms, double steps) {
        const auto channels = static_cast<std::size_t>(out.shape.back());
        for (std::size_t i = 0; i < out.real.size(); ++i) {
            if (bias->role != Role::absent) add(i, bias->real(i % channels));
            out.real[i] = activated(activation, out.real[i]);
        }
        out.terms = terms + 1;
        if (out.type != f32) choose_quantisation(c, out, steps);
        return std::move(out);
    }
};

Sums zero_sums(ElementType type, Shape shape, const Values& bias, model::Activation activation) {
    Sums sums{
        .out = {.type = type, .shape = std::move(shape)}, .bias = &bias, .activation = activation};
    sums.out.real.assign(count_of(sums.out.shape), 0);
    sums.out.magnitude = sums.out.real;
    return sums;
}

OperatorCase make_conv_2d(Choices& c) {
    const auto padding = c.one_of({Padding::same, Padding::valid});
    const Axis h = random_axis(c, padding, true);
    const Axis w = random_axis(c, padding, true);
    const std::int32_t groups = c.one_in(4) ? 2 : 1;
    const std::int32_t depth = c.pick(1, 5);
    const std::int32_t channels = c.pick(1, 5) * groups;
    OperatorCase one{.op = Op::conv_2d};
    one.inputs = {
        random_values(c, c.one_of({u8, i8, f32}), {c.pick(1, 2), h.in, w.in, depth * groups})};
    one.inputs.push_back(
        random_weights(c, one.inputs[0].type, {channels, h.taps, w.taps, depth}, 0));
    one.inputs.push_back(random_bias(c, one.inputs[0], one.inputs[1], channels));
    const Values& in = one.inputs[0];
    const Values& weights = one.inputs[1];
    const auto activation = random_activation(c);
    one.options =
        model::Conv2dOptions{padding, h.stride, w.stride, h.dilation, w.dilation, activation};
    Sums sums =
        zero_sums(in.type, {in.shape[0], h.out, w.out, channels}, one.inputs[2], activation);
    each_index(sums.out.shape, [&](const Shape& o, std::size_t at) {
        each_index(Shape{h.taps, w.taps, depth}, [&](const Shape& t, std::size_t) {
            const std::int32_t y = h.source(o[1], t[0]);
            const std::int32_t x = w.source(o[2], t[1]);
            if (!h.holds(y) || !w.holds(x)) return;
            const std::int32_t group = o[3] / (channels / groups);
            sums.add(at, in.real(flat_index(in.shape, {o[0], y, x, group * depth + t[2]})) *
                             weights.real(flat_index(weights.shape, {o[3], t[0], t[1], t[2]})));
        });
    });
    one.outputs = {sums.finish(c, h.taps * w.taps * depth, 0.76)};
    return one;
}

OperatorCase make_depthwise_conv_2d(Choices& c) {
    const auto padding = c.one_of({Padding::same, Padding::valid});
    const Axis h = random_axis(c, padding, true);
    const Axis w = random_axis(c, padding, true);
    const std::int32_t multiplier = c.one_of({1, 1, 2, 3});
    const std::int32_t depth = c.pick(1, 9);
    const std::int32_t channels = depth * multiplier;
    OperatorCase one{.op = Op::depthwise_conv_2d};
    one.inputs = {random_values(c, c.one_of({u8, i8, f32}), {c.pick(1, 2), h.in, w.in, depth})};
    one.inputs.push_back(random_weights(c, one.inputs[0].type, {1, h.taps, w.taps, channels}, 3));
    one.inputs.push_back(random_bias(c, one.inputs[0], one.inputs[1], channels));
    const Values& in = one.inputs[0];
    const Values& weights = one.inputs[1];
    const auto activation = random_activation(c);
    one.options = model::DepthwiseConv2dOptions{padding,    h.stride,   w.stride,  h.dilation,
                                                w.dilation, multiplier, activation};
    Sums sums =
        zero_sums(in.type, {in.shape[0], h.out, w.out, channels}, one.inputs[2], activation);
    each_index(sums.out.shape, [&](const Shape& o, std::size_t at) {
        each_index(Shape{h.taps, w.taps}, [&](const Shape& t, std::size_t) {
            const std::int32_t y = h.source(o[1], t[0]);
            const std::int32_t x = w.source(o[2], t[1]);
            if (!h.holds(y) || !w.holds(x)) return;
            sums.add(at, in.real(flat_index(in.shape, {o[0], y, x, o[3] / multiplier})) *
                             weights.real(flat_index(weights.shape, {0, t[0], t[1], o[3]})));
        });
    });
    one.outputs = {sums.finish(c, h.taps * w.taps, 0.76)};
    return one;
}

/// A convolution backwards: `h.in` x `w.in` is the output.
OperatorCase make_transpose_conv(Choices& c) {
    const auto padding = c.one_of({Padding::same, Padding::valid});
    const Axis h = random_axis(c, padding, false);
    const Axis w = random_axis(c, padding, false);
    const std::int32_t depth = c.pick(1, 4);
    const std::int32_t channels = c.pick(1, 4);
    OperatorCase one{.op = Op::transpose_conv};
    const Values in =
        random_values(c, c.one_of({u8, i8, f32}), {c.pick(1, 2), h.out, w.out, depth});
    const Values weights = random_weights(c, in.type, {channels, h.taps, w.taps, depth}, 0);
    const Values bias = random_bias(c, in, weights, channels);
    const Shape shape{in.shape[0], h.in, w.in, channels};
    one.inputs = {numbers(shape), weights, in};
    if (bias.role != Role::absent) one.inputs.push_back(bias);
    one.options = model::TransposeConvOptions{padding, h.stride, w.stride};
    Sums sums = zero_sums(in.type, shape, bias, model::Activation::none);
    each_index(in.shape, [&](const Shape& i, std::size_t from) {
        each_index(Shape{channels, h.taps, w.taps}, [&](const Shape& t, std::size_t) {
            const std::int32_t y = h.source(i[1], t[1]);
            const std::int32_t x = w.source(i[2], t[2]);
            if (!h.holds(y) || !w.holds(x)) return;
            sums.add(
                flat_index(shape, {i[0], y, x, t[0]}),
                in.real(from) * weights.real(flat_index(weights.shape, {t[0], t[1], t[2], i[3]})));
        });
    });
    one.outputs = {sums.finish(c, h.taps * w.taps * depth, 0.76)};
    return one;
}

OperatorCase pool(Choices& c, Op op) {
    const bool average = op == Op::average_pool_2d;
    const auto padding = c.one_of({Padding::same, Padding::valid});
    const Axis h = random_axis(c, padding, false);
    const Axis w = random_axis(c, padding, false);
    const Values in =
        random_values(c, c.one_of({u8, i8, f32}), {c.pick(1, 2), h.in, w.in, c.pick(1, 20)});
    const auto activation = random_activation(c);
    OperatorCase one{.op = op, .inputs = {in}};
    one.options = model::Pool2dOptions{padding, h.stride, w.stride, h.taps, w.taps, activation};
    Expected out = stored_like(in, {in.shape[0], h.out, w.out, in.shape[3]});
    out.magnitude.assign(out.real.size(), 0);
    out.terms = h.taps * w.taps + 2;
    if (in.type != f32) out.steps = 0.51;
    each_index(out.shape, [&](const Shape& o, std::size_t at) {
        double sum = 0, sizes = 0, most = -1e30;
        int count = 0;
        each_index(Shape{h.taps, w.taps}, [&](const Shape& t, std::size_t) {
            const std::int32_t y = h.source(o[1], t[0]);
            const std::int32_t x = w.source(o[2], t[1]);
            if (!h.holds(y) || !w.holds(x)) return;
            const double value = in.real(flat_index(in.shape, {o[0], y, x, o[3]}));
            sum += value;
            sizes += std::abs(value);
            most = std::max(most, value);
            ++count;
        });
        out.real[at] = activated(activation, average ? sum / count : most);
        out.magnitude[at] = sizes / count;
    });
    one.outputs = {std::move(out)};
    return one;
}
OperatorCase make_average_pool_2d(Choices& c) {
    return pool(c, Op::average_pool_2d);
}
OperatorCase make_max_pool_2d(Choices& c) {
    return pool(c, Op::max_pool_2d);
}

struct Between {
    std::int32_t lower = 0, upper = 0;
    double fraction = 0;
};

Between sample(std::int32_t i, std::int32_t in, std::int32_t out,
               const model::ResizeBilinearOptions& options) {
    const bool corners = options.align_corners && out > 1;
    const double step =
        corners ? static_cast<double>(in - 1) / (out - 1) : static_cast<double>(in) / out;
    double at = options.half_pixel_centers ? (i + 0.5) * step - 0.5 : i * step;
    at = std::clamp(at, 0.0, static_cast<double>(in - 1));
    const auto lower = static_cast<std::int32_t>(std::floor(at));
    return {lower, std::min(lower + 1, in - 1), at - lower};
}

OperatorCase make_resize_bilinear(Choices& c) {
    const Values in = random_values(c, c.one_of({u8, i8, f32}),
                                    {c.pick(1, 2), c.pick(1, 6), c.pick(1, 6), c.pick(1, 18)});
    const std::int32_t height = c.pick(1, 12);
    const std::int32_t width = c.pick(1, 12);
    model::ResizeBilinearOptions options{.align_corners = c.one_in(3)};
    options.half_pixel_centers = !options.align_corners && c.one_in(2);
    Expected out = stored_like(in, {in.shape[0], height, width, in.shape[3]});
    double largest = 0;
    for (const double value : in.stored) largest = std::max(largest, std::abs(value));
    out.magnitude.assign(out.real.size(), largest);
    // Four products; coordinates are rounded, too.
    out.terms = 4 + in.shape[1] + in.shape[2];
    // uint8 drops the fraction; int8 has steps between pixels that are rounded to 1/1024.
    if (in.type == u8) out.steps = 1.01;
    if (in.type == i8) out.steps = 0.51 + 255.0 * (height + width + 2) / 2048;
    each_index(out.shape, [&](const Shape& o, std::size_t at) {
        const Between y = sample(o[1], in.shape[1], height, options);
        const Between x = sample(o[2], in.shape[2], width, options);
        const auto value = [&](std::int32_t row, std::int32_t column) {
            return in.real(flat_index(in.shape, {o[0], row, column, o[3]}));
        };
        out.real[at] = (1 - y.fraction) * ((1 - x.fraction) * value(y.lower, x.lower) +
                                           x.fraction * value(y.lower, x.upper)) +
                       y.fraction * ((1 - x.fraction) * value(y.upper, x.lower) +
                                     x.fraction * value(y.upper, x.upper));
    });
    return {.op = Op::resize_bilinear,
            .options = options,
            .inputs = {in, numbers({height, width})},
            .outputs = {std::move(out)}};
}

constexpr auto windows_table = std::to_array<NamedMaker>({
    {Op::conv_2d, make_conv_2d},
    {Op::depthwise_conv_2d, make_depthwise_conv_2d},
    {Op::transpose_conv, make_transpose_conv},
    {Op::average_pool_2d, make_average_pool_2d},
    {Op::max_pool_2d, make_max_pool_2d},
    {Op::resize_bilinear, make_resize_bilinear},
});

}  // namespace

std::span<const NamedMaker> window_makers() {
    return windows_table;
}

}  // namespace reef::plain

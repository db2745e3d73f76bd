// CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and BATCH_MATMUL of float32 activations and int8
// weights: whole steps of the activations times weights, whose sums are exact.
#include <algorithm>
#include <array>
#include <cmath>

#include "cpu/plain/hybrid_steps.h"
#include "cpu/plain/window_axis.h"

namespace reef::plain {
namespace {

using model::Op;
using model::Padding;

/// Of sums that are exact: three roundings follow, of the scales' product, of its product with the
/// sum, and of the bias added.
struct HybridSums {
    Expected out;
    Values bias;
    model::Activation activation;

    HybridSums(Shape shape, Values bias_values, model::Activation fused)
        : out{.type = f32, .shape = std::move(shape), .terms = 3},
          bias(std::move(bias_values)),
          activation(fused) {}
    void add(double sum, double scale) {
        const double product = sum * scale;
        const auto channels = static_cast<std::size_t>(out.shape.back());
        const double added = bias.role == Role::absent ? 0 : bias.real(out.real.size() % channels);
        out.real.push_back(activated(activation, product + added));
        out.magnitude.push_back(std::abs(product) + std::abs(added));
    }
};

double weight_scale(const Values& weights, std::int32_t channel) {
    return static_cast<double>(
        weights.scales[weights.scales.size() == 1 ? 0 : static_cast<std::size_t>(channel)]);
}

Values random_float_bias(Choices& c, std::int32_t channels) {
    if (c.one_in(4)) return absent();
    return raw_values(c, f32, {channels}, Role::constant);
}

std::vector<Values> with_bias(const Values& in, const Values& weights, const Values& bias) {
    std::vector<Values> inputs{in, weights};
    if (bias.role != Role::absent) inputs.push_back(bias);
    return inputs;
}

std::size_t image_size(const Values& in) {
    return in.stored.size() / static_cast<std::size_t>(in.shape[0]);
}

/// Where an image has the element.
std::size_t in_image(const Values& in, std::int32_t y, std::int32_t x, std::int32_t channel) {
    return flat_index({in.shape[1], in.shape[2], in.shape[3]}, {y, x, channel});
}

OperatorCase make_hybrid_conv_2d(Choices& c) {
    const auto padding = c.one_of({Padding::same, Padding::valid});
    const Axis h = random_axis(c, padding, true);
    const Axis w = random_axis(c, padding, true);
    const std::int32_t depth = c.pick(1, 9), channels = c.pick(1, 9), images = c.pick(1, 3);
    const Values in = hybrid_input(c, {images, h.in, w.in, depth}, images);
    const Values weights =
        hybrid_weights(c, {channels, h.taps, w.taps, depth}, c.one_in(2) ? 0 : -1);
    const Values bias = random_float_bias(c, channels);
    const auto activation = random_activation(c);
    HybridSums sums({images, h.out, w.out, channels}, bias, activation);
    // TFLite takes a channel's only scale for one of all channels.
    const auto steps = steps_of_rows(in, image_size(in), weights.scales.size() > 1);
    each_index(sums.out.shape, [&](const Shape& o, std::size_t) {
        const Steps& image = steps[static_cast<std::size_t>(o[0])];
        double sum = 0;
        each_index(Shape{h.taps, w.taps, depth}, [&](const Shape& t, std::size_t) {
            const std::int32_t y = h.source(o[1], t[0]);
            const std::int32_t x = w.source(o[2], t[1]);
            if (!h.holds(y) || !w.holds(x)) return;
            sum += image.values[in_image(in, y, x, t[2])] *
                   weights.stored[flat_index(weights.shape, {o[3], t[0], t[1], t[2]})];
        });
        sums.add(sum, image.scale * weight_scale(weights, o[3]));
    });
    return {.op = Op::conv_2d,
            .options = model::Conv2dOptions{padding, h.stride, w.stride, h.dilation, w.dilation,
                                            activation},
            .inputs = with_bias(in, weights, bias),
            .outputs = {sums.out}};
}

OperatorCase make_hybrid_depthwise_conv_2d(Choices& c) {
    const auto padding = c.one_of({Padding::same, Padding::valid});
    const Axis h = random_axis(c, padding, true);
    const Axis w = random_axis(c, padding, true);
    const std::int32_t multiplier = c.one_of({1, 1, 2, 3});
    const std::int32_t depth = c.pick(1, 20), images = c.pick(1, 3);
    const std::int32_t channels = depth * multiplier;
    const Values in = hybrid_input(c, {images, h.in, w.in, depth}, images);
    const Values weights = hybrid_weights(c, {1, h.taps, w.taps, channels}, 3);
    const Values bias = random_float_bias(c, channels);
    const auto activation = random_activation(c);
    HybridSums sums({images, h.out, w.out, channels}, bias, activation);
    const auto steps = steps_of_rows(in, image_size(in), true);
    each_index(sums.out.shape, [&](const Shape& o, std::size_t) {
        const Steps& image = steps[static_cast<std::size_t>(o[0])];
        double sum = 0;
        each_index(Shape{h.taps, w.taps}, [&](const Shape& t, std::size_t) {
            const std::int32_t y = h.source(o[1], t[0]);
            const std::int32_t x = w.source(o[2], t[1]);
            if (!h.holds(y) || !w.holds(x)) return;
            sum += image.values[in_image(in, y, x, o[3] / multiplier)] *
                   weights.stored[flat_index(weights.shape, {0, t[0], t[1], o[3]})];
        });
        sums.add(sum, image.scale * weight_scale(weights, o[3]));
    });
    return {.op = Op::depthwise_conv_2d,
            .options = model::DepthwiseConv2dOptions{padding, h.stride, w.stride, h.dilation,
                                                     w.dilation, multiplier, activation},
            .inputs = with_bias(in, weights, bias),
            .outputs = {sums.out}};
}

OperatorCase make_hybrid_fully_connected(Choices& c) {
    const std::int32_t depth = c.one_in(6) ? c.pick(300, 700) : c.pick(1, 40);
    const std::int32_t units = c.pick(1, 20), rows = c.pick(1, 5);
    const bool asymmetric = c.one_in(2);
    const Values in = hybrid_input(c, {rows, depth}, rows);
    const Values weights = hybrid_weights(c, {units, depth});
    const Values bias = random_float_bias(c, units);
    const auto activation = random_activation(c);
    HybridSums sums({rows, units}, bias, activation);
    const auto steps = steps_of_rows(in, static_cast<std::size_t>(depth), asymmetric);
    each_index(sums.out.shape, [&](const Shape& o, std::size_t) {
        const Steps& row = steps[static_cast<std::size_t>(o[0])];
        double sum = 0;
        for (std::int32_t k = 0; k < depth; ++k)
            sum += row.values[static_cast<std::size_t>(k)] *
                   weights.stored[flat_index(weights.shape, {o[1], k})];
        sums.add(sum, row.scale * weight_scale(weights, 0));
    });
    return {.op = Op::fully_connected,
            .options = model::FullyConnectedOptions{.activation = activation,
                                                    .asymmetric_quantize_inputs = asymmetric},
            .inputs = with_bias(in, weights, bias),
            .outputs = {sums.out}};
}

/// One matrix of a product: `rows` x `columns`, or, swapped, the other way round in memory.
struct MatrixInput {
    Shape shape;
    bool swapped = false;

    MatrixInput(Choices& c, Shape batches, std::int32_t rows, std::int32_t columns, bool swap)
        : shape(std::move(batches)), swapped(swap) {
        for (auto& length : shape)
            if (c.one_in(4)) length = 1;
        shape.insert(shape.end(), {swap ? columns : rows, swap ? rows : columns});
    }
    [[nodiscard]] std::size_t at(const Shape& out, std::int32_t row, std::int32_t column) const {
        Shape index(out.begin(), out.end() - 2);
        for (std::size_t d = 0; d < index.size(); ++d)
            if (shape[d] == 1) index[d] = 0;
        index.insert(index.end(), {swapped ? column : row, swapped ? row : column});
        return flat_index(shape, index);
    }
};

OperatorCase make_hybrid_batch_matmul(Choices& c) {
    const std::int32_t rows = c.pick(1, 6), depth = c.pick(1, 24), columns = c.pick(1, 9);
    Shape batches = c.shape(0, 2, 3);
    const model::BatchMatMulOptions options{c.one_in(3), c.one_in(2), c.one_in(2)};
    const MatrixInput first(c, batches, rows, depth, options.adj_x);
    const MatrixInput second(c, batches, depth, columns, options.adj_y);
    for (std::size_t d = 0; d < batches.size(); ++d)
        batches[d] = std::max(first.shape[d], second.shape[d]);
    const Values a = hybrid_input(c, first.shape, 1);
    const Values b = hybrid_weights(c, second.shape);
    Shape shape = batches;
    shape.insert(shape.end(), {rows, columns});
    HybridSums sums(shape, {.role = Role::absent}, model::Activation::none);
    each_index(shape, [&](const Shape& o, std::size_t) {
        std::vector<double> row;
        for (std::int32_t k = 0; k < depth; ++k)
            row.push_back(a.stored[first.at(o, o[o.size() - 2], k)]);
        const Steps steps = steps_of(row, options.asymmetric_quantize_inputs);
        double sum = 0;
        for (std::int32_t k = 0; k < depth; ++k)
            sum += steps.values[static_cast<std::size_t>(k)] * b.stored[second.at(o, k, o.back())];
        sums.add(sum, steps.scale * weight_scale(b, 0));
    });
    return {.op = Op::batch_matmul, .options = options, .inputs = {a, b}, .outputs = {sums.out}};
}

constexpr auto hybrid_products_table = std::to_array<NamedMaker>({
    {Op::conv_2d, make_hybrid_conv_2d},
    {Op::depthwise_conv_2d, make_hybrid_depthwise_conv_2d},
    {Op::fully_connected, make_hybrid_fully_connected},
    {Op::batch_matmul, make_hybrid_batch_matmul},
});

}  // namespace

std::span<const NamedMaker> hybrid_product_makers() {
    return hybrid_products_table;
}

}  // namespace reef::plain

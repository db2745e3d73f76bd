#include "reef/model/operator_samples.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "reef/model/builder.h"

namespace reef::model {
namespace {

using Shape = std::vector<std::int32_t>;

constexpr float in_scale = 0.05F;
constexpr float out_scale = 0.06F;

std::int32_t elements_of(const Shape& shape) {
    return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies{});
}

/// One network while it is made: tensors in the type of the sample.
class Network {
  public:
    explicit Network(ElementType type) : type_(type) {}

    [[nodiscard]] bool is_signed() const { return type_ == ElementType::int8; }

    TensorIndex in(Shape shape, float scale = in_scale) {
        return builder_.input(name("in"), type_, std::move(shape), numbers(scale));
    }
    TensorIndex out(Shape shape, float scale = out_scale) {
        const auto index = builder_.tensor(name("out"), type_, std::move(shape), numbers(scale));
        builder_.output(index);
        return index;
    }
    /// With the input's scale: operators that move values have one alone.
    TensorIndex same(Shape shape) { return out(std::move(shape), in_scale); }

    /// In the numbers that functions with bounds have; `zero` as uint8 stores it.
    TensorIndex bounded(Shape shape, float scale, std::int64_t zero) {
        const auto index = builder_.tensor(name("out"), type_, std::move(shape),
                                           per_tensor(scale, zero - (is_signed() ? 128 : 0)));
        builder_.output(index);
        return index;
    }

    /// What a convolution of a pixel makes of an input: for operators that need no instructions and
    /// stay with the CPU where nothing else is on the chip.
    TensorIndex computed(const Shape& shape) {
        const auto from = in(shape);
        const std::int32_t channels = shape.back();
        const auto kernel = weights({channels, 1, 1, channels}, 0);
        const auto to = builder_.tensor(name("computed"), type_, shape, numbers(in_scale));
        add(Op::conv_2d, {from, kernel}, {to},
            Conv2dOptions{Padding::same, 1, 1, 1, 1, Activation::none, {}});
        return to;
    }

    TensorIndex ints(const Shape& values, std::optional<Shape> shape = {}) {
        return builder_.constant<std::int32_t>(
            name("ints"), ElementType::int32,
            shape.value_or(Shape{static_cast<std::int32_t>(values.size())}), values);
    }
    /// Bytes that differ from each other, in the numbers of activations.
    TensorIndex bytes(const Shape& shape, float scale = in_scale) {
        const auto data = different(elements_of(shape));
        return builder_.constant<std::uint8_t>(name("bytes"), type_, shape, data, numbers(scale));
    }
    /// int8: a scale for each index of `axis`.
    TensorIndex weights(const Shape& shape, std::int32_t axis) {
        const auto data = different(elements_of(shape));
        const auto channels = static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]);
        std::vector<float> scales(channels);
        for (std::size_t c = 0; c < channels; ++c)
            scales[c] = 0.004F + 0.0001F * static_cast<float>(c % 16);
        return builder_.constant<std::uint8_t>(
            name("weights"), type_, shape, data,
            is_signed() ? per_channel(std::move(scales), axis) : per_tensor(0.005F, 125));
    }
    /// int8 alone: one symmetric scale.
    TensorIndex symmetric(const Shape& shape) {
        const auto data = different(elements_of(shape));
        return builder_.constant<std::uint8_t>(name("weights"), type_, shape, data,
                                               per_tensor(0.004F, is_signed() ? 0 : 128));
    }
    /// What is kept between runs, in the numbers of `out()` or in 16 bits.
    TensorIndex state(const Shape& shape) {
        return builder_.variable(name("state"), type_, shape, numbers(out_scale));
    }
    TensorIndex wide_state(const Shape& shape) {
        return builder_.variable(name("state"), ElementType::int16, shape, per_tensor(0x1p-12F, 0));
    }
    TensorIndex bias(std::int32_t channels) {
        Shape values(static_cast<std::size_t>(channels));
        for (std::size_t c = 0; c < values.size(); ++c)
            values[c] = 100 * static_cast<std::int32_t>(c % 7) - 300;
        return ints(values);
    }
    void add(Op op, std::vector<TensorIndex> inputs, std::vector<TensorIndex> outputs,
             Options options = {}) {
        builder_.add(op, std::move(inputs), std::move(outputs), std::move(options));
    }
    Result<Model> finish() { return builder_.finish(); }

  private:
    [[nodiscard]] Quantization numbers(float scale) const {
        return per_tensor(scale, is_signed() ? -4 : 124);
    }
    std::string name(const char* of) { return of + std::to_string(++names_); }
    static std::vector<std::uint8_t> different(std::int32_t count) {
        std::vector<std::uint8_t> data(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < data.size(); ++i)
            data[i] = static_cast<std::uint8_t>(1 + (i * 37 + i / 251) % 254);
        // 0x80 is no weight of TFLite's int8.
        std::ranges::replace(data, std::uint8_t{0x80}, std::uint8_t{0x81});
        return data;
    }

    ElementType type_;
    Builder builder_{"operator sample"};
    int names_ = 0;
};

/// Collects samples; the first one that is no model ends it.
class Samples {
  public:
    explicit Samples(ElementType type) : type_(type) {}

    void add(Op op, std::string variant, const std::function<void(Network&)>& make) {
        if (!failed_) return;
        Network network(type_);
        make(network);
        auto model = network.finish();
        if (!model)
            failed_ = std::unexpected(std::move(model).error());
        else
            samples_.push_back({builtin_name(op), std::move(variant), std::move(*model)});
    }
    /// An operator of one input, and of constants that `make` adds.
    void one(Op op, std::string variant, const Shape& from, const Shape& to, Options options = {},
             const Shape& list = {}, bool moves = true) {
        add(op, std::move(variant), [&](Network& n) {
            std::vector<TensorIndex> inputs{n.in(from)};
            if (!list.empty()) inputs.push_back(n.ints(list));
            n.add(op, std::move(inputs), {moves ? n.same(to) : n.out(to)}, options);
        });
    }
    Result<std::vector<OperatorSample>> take() {
        if (!failed_) return std::unexpected(std::move(failed_).error());
        return std::move(samples_);
    }

  private:
    ElementType type_;
    std::vector<OperatorSample> samples_;
    Status failed_;
};

constexpr std::int32_t side = 8, depth = 16;
const Shape image{1, side, side, depth};
const Shape row{1, depth};

struct Kernel {
    std::int32_t height = 3, width = 3, stride = 1, dilation = 1;
    Padding padding = Padding::same;
    Activation activation = Activation::none;
    bool with_bias = true;
    [[nodiscard]] std::int32_t out(std::int32_t in, std::int32_t taps) const {
        return padding == Padding::same ? (in + stride - 1) / stride
                                        : (in - (taps - 1) * dilation - 1) / stride + 1;
    }
    [[nodiscard]] Shape image_of(std::int32_t channels, std::int32_t in = side) const {
        return {1, out(in, height), out(in, width), channels};
    }
};

void convolution(Samples& s, std::string variant, const Kernel& k, std::int32_t groups = 1,
                 std::int32_t in_side = side) {
    s.add(Op::conv_2d, std::move(variant), [&](Network& n) {
        std::vector<TensorIndex> inputs{n.in({1, in_side, in_side, depth}),
                                        n.weights({24, k.height, k.width, depth / groups}, 0)};
        if (k.with_bias) inputs.push_back(n.bias(24));
        n.add(
            Op::conv_2d, inputs, {n.out(k.image_of(24, in_side), 0.3F)},
            Conv2dOptions{k.padding, k.stride, k.stride, k.dilation, k.dilation, k.activation, {}});
    });
}

void depthwise(Samples& s, std::string variant, const Kernel& k, std::int32_t multiplier = 1) {
    s.add(Op::depthwise_conv_2d, std::move(variant), [&](Network& n) {
        const std::int32_t channels = depth * multiplier;
        n.add(Op::depthwise_conv_2d,
              {n.in(image), n.weights({1, k.height, k.width, channels}, 3), n.bias(channels)},
              {n.out(k.image_of(channels))},
              DepthwiseConv2dOptions{k.padding, k.stride, k.stride, k.dilation, k.dilation,
                                     multiplier, k.activation});
    });
}

void add_convolutions(Samples& s) {
    convolution(s, "3 x 3", {});
    convolution(s, "1 x 1", {.height = 1, .width = 1});
    convolution(s, "1 x 7", {.height = 1, .width = 7});
    convolution(s, "3 x 3, stride 2", {.stride = 2});
    convolution(s, "3 x 3, dilation 2", {.dilation = 2});
    convolution(s, "3 x 3, inside the image", {.padding = Padding::valid});
    convolution(s, "3 x 3, no bias", {.with_bias = false});
    convolution(s, "3 x 3, RELU6", {.activation = Activation::relu6});
    convolution(s, "3 x 3, RELU_N1_TO_1", {.activation = Activation::relu_n1_to_1});
    convolution(s, "3 x 3, two groups", {}, 2);
    convolution(s, "17 x 17", {.height = 17, .width = 17}, 1, 20);
    s.add(Op::conv_2d, "computed weights", [](Network& n) {
        n.add(Op::conv_2d, {n.in(image), n.in({1, 1, 1, depth})}, {n.out({1, side, side, 1})},
              Conv2dOptions{Padding::same, 1, 1, 1, 1, Activation::none, {}});
    });
    depthwise(s, "3 x 3", {});
    depthwise(s, "3 x 3, stride 2", {.stride = 2});
    depthwise(s, "3 x 3, dilation 2", {.dilation = 2});
    depthwise(s, "3 x 3, two channels of one", {}, 2);
    const auto dense = [&s](std::string variant, const Shape& from, const Shape& to,
                            std::int32_t columns) {
        s.add(Op::fully_connected, std::move(variant), [&](Network& n) {
            n.add(Op::fully_connected, {n.in(from), n.weights({24, columns}, 0), n.bias(24)},
                  {n.out(to, 0.3F)}, FullyConnectedOptions{});
        });
    };
    dense("a vector", row, {1, 24}, depth);
    dense("a whole image", {1, 4, 4, depth}, {1, 24}, 16 * depth);
    dense("a whole image of 17 x 17", {1, 17, 17, depth}, {1, 24}, 17 * 17 * depth);
    dense("8 rows", {8, depth}, {8, 24}, depth);
    dense("the pixels of an image as rows", {1, 4, 4, depth}, {16, 24}, depth);
    dense("two pixels each as rows", {1, 4, 4, depth}, {8, 24}, 2 * depth);
    s.add(Op::transpose_conv, "3 x 3, stride 2", [](Network& n) {
        const Shape to{1, 2 * side, 2 * side, 24};
        n.add(Op::transpose_conv,
              {n.ints(to), n.weights({24, 3, 3, depth}, 0), n.in(image), n.bias(24)},
              {n.out(to, 0.3F)}, TransposeConvOptions{Padding::same, 2, 2, Activation::none, {}});
    });
}

/// Of two tensors, of one and a constant, and of one that is repeated over the other.
void pairs(Samples& s, Op op, const Options& options, bool one_scale = false) {
    const float scale = one_scale ? in_scale : 2 * out_scale;
    s.add(op, "two tensors", [&](Network& n) {
        n.add(op, {n.in(image), n.in(image)}, {n.out(image, scale)}, options);
    });
    if (one_scale) {
        s.add(op, "two tensors of different scales", [&](Network& n) {
            n.add(op, {n.in(image), n.in(image, 0.07F)}, {n.out(image)}, options);
        });
    }
    const auto with_constant = [&](std::string variant, const Shape& shape) {
        s.add(op, std::move(variant), [&](Network& n) {
            n.add(op, {n.in(image), n.bytes(shape)}, {n.out(image, scale)}, options);
        });
    };
    with_constant("a constant", {1});
    with_constant("a constant for each channel", {depth});
    with_constant("a constant image", image);
    s.add(op, "a pixel and an image", [&](Network& n) {
        n.add(op, {n.in(image), n.in({1, 1, 1, depth})}, {n.out(image, scale)}, options);
    });
}

/// The constant in front, and where the scale stays.
void pairs_with_constants(Samples& s, Op op, const Options& options, float scale) {
    for (const Shape& shape : {Shape{1}, Shape{depth}, image}) {
        const std::string what = shape.size() == 4 ? " image"
                                 : shape[0] == 1   ? ""
                                                   : " for each channel";
        s.add(op, "a constant" + what + " in front", [&](Network& n) {
            n.add(op, {n.bytes(shape), n.in(image)}, {n.out(image, scale)}, options);
        });
    }
}

void add_pairs(Samples& s) {
    pairs(s, Op::add, AddOptions{});
    s.add(Op::add, "two tensors, RELU", [](Network& n) {
        n.add(Op::add, {n.in(image), n.in(image)}, {n.out(image)},
              AddOptions{Activation::relu, true});
    });
    s.add(Op::add, "a constant for each channel, one scale", [](Network& n) {
        n.add(Op::add, {n.in(image), n.bytes({depth})}, {n.out(image, in_scale)}, AddOptions{});
    });
    pairs_with_constants(s, Op::add, AddOptions{}, in_scale);
    pairs(s, Op::sub, SubOptions{});
    pairs(s, Op::mul, MulOptions{});
    pairs_with_constants(s, Op::mul, MulOptions{}, 2 * out_scale);
    pairs(s, Op::maximum, {}, true);
    pairs(s, Op::minimum, {}, true);
    s.add(Op::squared_difference, "two tensors", [](Network& n) {
        n.add(Op::squared_difference, {n.in(image), n.in(image)}, {n.out(image)});
    });
}

void add_windows(Samples& s) {
    const Shape half{1, side / 2, side / 2, depth};
    const auto pool = [&](Op op, std::string variant, Padding padding, std::int32_t k,
                          std::int32_t stride, const Shape& to) {
        s.one(op, std::move(variant), image, to,
              Pool2dOptions{padding, stride, stride, k, k, Activation::none});
    };
    for (const Op op : {Op::max_pool_2d, Op::average_pool_2d}) {
        pool(op, "2 x 2, stride 2", Padding::valid, 2, 2, half);
        pool(op, "3 x 3 beyond the image", Padding::same, 3, 1, image);
    }
    const Shape pixel{1, 1, 1, depth};
    for (const Op op : {Op::mean, Op::sum, Op::reduce_max, Op::reduce_min}) {
        const bool moves = op != Op::sum;
        s.one(op, "over rows and columns", image, pixel, ReducerOptions{true}, {1, 2}, moves);
        s.one(op, "over channels", image, {1, side, side, 1}, ReducerOptions{true}, {3}, moves);
    }
    const Shape twice{1, 2 * side, 2 * side, depth}, thrice{1, 3 * side, 3 * side, depth};
    const auto resize = [&](std::string variant, const Shape& to, bool corners, bool centers) {
        s.one(Op::resize_bilinear, variant, image, to,
              ResizeBilinearOptions{corners, centers, 0, 0}, {to[1], to[2]});
        s.one(Op::resize_nearest_neighbor, variant, image, to,
              ResizeNearestNeighborOptions{corners, centers}, {to[1], to[2]});
    };
    resize("to twice the size", twice, false, false);
    resize("to twice the size, half_pixel_centers", twice, false, true);
    resize("to twice the size, align_corners", twice, true, false);
    resize("to three times the size", thrice, false, false);
}

void add_tables(Samples& s) {
    s.one(Op::quantize, "to another scale", image, image, {}, {}, false);
    for (const Op op : {Op::relu, Op::relu6, Op::relu_n1_to_1, Op::hard_swish})
        s.one(op, "", image, image, {}, {}, false);
    s.one(Op::leaky_relu, "", image, image, LeakyReluOptions{0.1F}, {}, false);
    s.add(Op::prelu, "a slope for each channel", [](Network& n) {
        n.add(Op::prelu, {n.in(image), n.bytes({depth}, 0.004F)}, {n.out(image)});
    });
    const auto bounded = [&](Op op, std::string variant, const Shape& shape, float scale,
                             std::int64_t zero, const Options& options) {
        s.add(op, std::move(variant), [&](Network& n) {
            n.add(op, {n.in(shape)}, {n.bounded(shape, scale, zero)}, options);
        });
    };
    bounded(Op::logistic, "", image, 1.0F / 256, 0, {});
    bounded(Op::tanh, "", image, 1.0F / 128, 128, {});
    bounded(Op::softmax, "of a vector", row, 1.0F / 256, 0, SoftmaxOptions{1});
    bounded(Op::softmax, "of each pixel", image, 1.0F / 256, 0, SoftmaxOptions{1});
    bounded(Op::l2_normalization, "", row, 1.0F / 128, 128, L2NormOptions{});
    s.one(Op::rsqrt, "", image, image, {}, {}, false);
}

void add_joints(Samples& s) {
    for (const auto& [axis, variant] : {std::pair{3, "channels"}, {2, "columns"}, {1, "rows"}}) {
        Shape to = image;
        to[static_cast<std::size_t>(axis)] *= 2;
        s.add(Op::concatenation, variant, [&](Network& n) {
            n.add(Op::concatenation, {n.in(image), n.in(image)}, {n.same(to)},
                  ConcatenationOptions{axis, Activation::none});
        });
    }
    for (const auto& [axis, variant] : {std::pair{3, "channels"}, {2, "columns"}, {1, "rows"}}) {
        Shape to = image;
        to[static_cast<std::size_t>(axis)] /= 2;
        s.add(Op::split, variant, [&](Network& n) {
            const auto which = n.ints({axis});
            const auto from = n.in(image);
            const std::vector<TensorIndex> parts{n.same(to), n.same(to)};
            n.add(Op::split, {which, from}, parts, SplitOptions{2});
        });
    }
    s.add(Op::pack, "two vectors", [](Network& n) {
        n.add(Op::pack, {n.in(row), n.in(row)}, {n.same({1, 2, depth})}, PackOptions{2, 1});
    });
    s.add(Op::unpack, "two rows", [](Network& n) {
        const auto from = n.in({1, 2, depth});
        const std::vector<TensorIndex> parts{n.same(row), n.same(row)};
        n.add(Op::unpack, {from}, parts, UnpackOptions{2, 1});
    });
}

void add_movements(Samples& s) {
    s.add(Op::slice, "a part of the image", [](Network& n) {
        n.add(Op::slice, {n.in(image), n.ints({0, 1, 2, 4}), n.ints({1, 5, 4, 8})},
              {n.same({1, 5, 4, 8})});
    });
    const auto strided = [&](std::string variant, std::int32_t step, const Shape& to) {
        s.add(Op::strided_slice, std::move(variant), [&](Network& n) {
            const Shape begin{0, step < 0 ? side - 1 : 0, 0, 0};
            n.add(Op::strided_slice,
                  {n.in(image), n.ints(begin), n.ints({1, side, side, depth}),
                   n.ints({1, step, 1, 1})},
                  {n.same(to)}, StridedSliceOptions{.end_mask = step < 0 ? 2 : 0});
        });
    };
    strided("every row", 1, image);
    strided("every second row", 2, {1, side / 2, side, depth});
    strided("rows from the last on", -1, image);
    const auto pad = [&](std::string variant, const Shape& widths, const Shape& to) {
        s.add(Op::pad, std::move(variant), [&](Network& n) {
            n.add(Op::pad, {n.in(image), n.ints(widths, Shape{4, 2})}, {n.same(to)});
        });
    };
    const auto pad_fewer = [&](std::string variant, const Shape& from, const Shape& widths,
                               const Shape& to) {
        s.add(Op::pad, std::move(variant), [&](Network& n) {
            const auto rank = static_cast<std::int32_t>(from.size());
            n.add(Op::pad, {n.in(from), n.ints(widths, Shape{rank, 2})}, {n.same(to)});
        });
    };
    pad_fewer("of three dimensions", {side, side, depth}, {1, 2, 1, 0, 0, 0},
              {side + 3, side + 1, depth});
    pad_fewer("of two dimensions", {8, depth}, {1, 2, 0, 4}, {11, depth + 4});
    pad("rows and columns", {0, 0, 1, 2, 1, 0, 0, 0}, {1, side + 3, side + 1, depth});
    pad("channels behind the others", {0, 0, 0, 0, 0, 0, 0, 3}, {1, side, side, depth + 3});
    pad("channels before the others", {0, 0, 0, 0, 0, 0, 3, 0}, {1, side, side, depth + 3});
    const Shape flat{1, side * side * depth};
    s.add(Op::reshape, "an image to a vector", [&](Network& n) {
        n.add(Op::reshape, {n.computed(image), n.ints(flat)}, {n.same(flat)}, ReshapeOptions{flat});
    });
    s.add(Op::squeeze, "", [](Network& n) {
        n.add(Op::squeeze, {n.computed({1, 1, 1, depth})}, {n.same(row)}, SqueezeOptions{{1, 2}});
    });
    s.add(Op::expand_dims, "", [](Network& n) {
        const auto flat_row = n.same(row);
        n.add(Op::reshape, {n.computed({1, 1, 1, depth}), n.ints(row)}, {flat_row},
              ReshapeOptions{row});
        n.add(Op::expand_dims, {flat_row, n.ints({1})}, {n.same({1, 1, depth})});
    });
    s.one(Op::transpose, "rows and columns", {1, side, 4, depth}, {1, 4, side, depth}, {},
          {0, 2, 1, 3});
    s.one(Op::transpose, "channels first", image, {1, depth, side, side}, {}, {0, 3, 1, 2});
    s.one(Op::space_to_depth, "2 x 2", image, {1, side / 2, side / 2, 4 * depth},
          SpaceToDepthOptions{2});
    s.one(Op::depth_to_space, "2 x 2", image, {1, 2 * side, 2 * side, depth / 4},
          DepthToSpaceOptions{2});
}

void add_recurrent(Samples& s) {
    s.add(Op::unidirectional_sequence_lstm, "8 units, 4 steps", [](Network& n) {
        constexpr std::int32_t units = 8, steps = 4, gates = 4;
        std::vector<TensorIndex> inputs{n.in({1, steps, depth}, 0.02F)};
        for (const std::int32_t columns : {depth, units})
            for (std::int32_t g = 0; g < gates; ++g)
                inputs.push_back(n.symmetric({units, columns}));
        inputs.insert(inputs.end(), 3, absent_tensor);
        for (std::int32_t g = 0; g < gates; ++g) inputs.push_back(n.bias(units));
        inputs.insert(inputs.end(), 2, absent_tensor);
        inputs.push_back(n.state({1, units}));
        inputs.push_back(n.wide_state({1, units}));
        inputs.insert(inputs.end(), 4, absent_tensor);
        n.add(Op::unidirectional_sequence_lstm, std::move(inputs), {n.out({1, steps, units})},
              UnidirectionalSequenceLstmOptions{.activation = Activation::tanh});
    });
}

}  // namespace

Result<std::vector<OperatorSample>> operator_samples(ElementType type) {
    if (type != ElementType::uint8 && type != ElementType::int8)
        return fail(Cause::bad_argument, "samples are of uint8 or of int8");
    Samples samples(type);
    add_convolutions(samples);
    add_pairs(samples);
    add_windows(samples);
    add_tables(samples);
    add_joints(samples);
    add_movements(samples);
    add_recurrent(samples);
    return samples.take();
}

}  // namespace reef::model

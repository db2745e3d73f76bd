// Convolutions, and what is one.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "compiler/graph_reader.h"

namespace reef::compiler {

Read GraphReader::with_constants(const Operator& op, Convolution conv, std::size_t bias,
                                 std::size_t weights_at) const {
    const Tensor& weights = tensor(op.inputs[weights_at]);
    const Bytes bytes = model_.constant(weights);
    if (bytes.empty()) return std::unexpected("its weights are computed");
    if (!is_byte(weights.type) || !weights.quantization || !weights.quantization->quantized())
        return std::unexpected("its weights have not 8 bits");
    const auto elements = std::int64_t{conv.window.kernel_h} * conv.window.kernel_w *
                          conv.out_channels * (conv.depthwise ? 1 : conv.in_channels);
    if (elements != weights.element_count() || std::cmp_not_equal(elements, bytes.size()))
        return disagree();
    conv.weight_scales = weights.quantization->scale;
    const auto& zeros = weights.quantization->zero_point;
    if (std::ranges::adjacent_find(zeros, std::not_equal_to{}) != zeros.end())
        return std::unexpected("its weights have more than one zero point");
    conv.weight_zero =
        (zeros.empty() ? 0 : static_cast<std::int32_t>(zeros[0])) + flip_of(weights.type);
    if (conv.per_channel() &&
        (conv.weight_scales.size() != static_cast<std::size_t>(conv.out_channels) ||
         conv.weight_zero != 128))
        return std::unexpected("its scales by channel are not symmetric ones of output channels");
    if (weights.type == ElementType::uint8) {
        conv.weights = SharedBytes(bytes, nullptr);
    } else {
        auto flipped = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
        for (std::byte& b : *flipped) b ^= std::byte{0x80};
        conv.weights = SharedBytes(*flipped, flipped);
    }
    conv.biases.assign(static_cast<std::size_t>(conv.out_channels), 0);
    if (op.inputs.size() > bias && op.inputs[bias] != model::absent_tensor) {
        auto biases = constant<std::int32_t>(op.inputs[bias], ElementType::int32);
        if (!biases || biases->size() != conv.biases.size())
            return std::unexpected("its bias is no constant of 32 bits for each channel");
        conv.biases = std::move(*biases);
    }
    return conv;
}

namespace {

/// Weights of each group's own input channels, to weights of all: the others are zero.
SharedBytes of_all_groups(const Convolution& conv, std::int32_t groups) {
    const auto taps = static_cast<std::size_t>(conv.window.kernel_h) *
                      static_cast<std::size_t>(conv.window.kernel_w);
    const auto in = static_cast<std::size_t>(conv.in_channels);
    const auto outs = static_cast<std::size_t>(conv.out_channels);
    const std::size_t own = in / static_cast<std::size_t>(groups);
    const std::size_t outs_of_group = outs / static_cast<std::size_t>(groups);
    auto wide = std::make_shared<std::vector<std::byte>>(outs * taps * in,
                                                         static_cast<std::byte>(conv.weight_zero));
    const Bytes from = conv.weights.view();
    for (std::size_t o = 0; o < outs; ++o)
        for (std::size_t t = 0; t < taps; ++t)
            std::ranges::copy(from.subspan((o * taps + t) * own, own),
                              wide->begin() + static_cast<std::ptrdiff_t>((o * taps + t) * in +
                                                                          o / outs_of_group * own));
    return {*wide, wide};
}

}  // namespace

/// CONV_2D and DEPTHWISE_CONV_2D.
template <typename Options>
Read GraphReader::windowed(const Operator& op) const {
    constexpr bool depthwise = std::is_same_v<Options, model::DepthwiseConv2dOptions>;
    if (op.inputs.size() < 2) return disagree();
    const auto o = REEF_TRY(options<Options>(op));
    const auto& shape = tensor(op.inputs[1]).shape;
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (shape.size() != 4 || shape[depthwise ? 3 : 0] != out.channels) return disagree();
    if (depthwise && (shape[0] != 1 || out.channels % in.channels != 0)) return disagree();
    // With one input channel depthwise weights have the order of an ordinary convolution's but for
    // the output channel, which comes last: legalise() turns them round.
    Convolution conv{
        .window = {shape[1], shape[2], o.stride_h, o.stride_w, o.dilation_h, o.dilation_w},
        .depthwise = depthwise,
        .activation = o.activation,
        .in_channels = in.channels,
        .out_channels = out.channels,
        .weights = {},
        .weight_scales = {},
        .biases = {}};
    if (!place_window(conv.window, o.padding, in, out)) return disagree();
    if (depthwise || shape[3] == in.channels) return with_constants(op, std::move(conv));
    const std::int32_t groups = shape[3] < 1 ? 0 : in.channels / shape[3];
    if (groups < 1 || in.channels % shape[3] != 0 || out.channels % groups != 0) return disagree();
    constexpr std::int64_t most_weights = std::int64_t{1} << 26;
    if (tensor(op.inputs[1]).element_count() * groups > most_weights)
        return std::unexpected("its groups are too many: the chip would compute all of them");
    conv.in_channels = shape[3];
    auto read = with_constants(op, std::move(conv));
    if (!read) return read;
    auto& narrow = std::get<Convolution>(*read);
    narrow.in_channels = in.channels;
    narrow.weights = of_all_groups(narrow, groups);
    return read;
}

template Read GraphReader::windowed<model::Conv2dOptions>(const Operator& op) const;
template Read GraphReader::windowed<model::DepthwiseConv2dOptions>(const Operator& op) const;

Read GraphReader::transposed(const Operator& op) const {
    if (op.inputs.size() < 3 || op.inputs[2] == model::absent_tensor) return disagree();
    const auto o = REEF_TRY(options<model::TransposeConvOptions>(op));
    if (o.activation != Activation::none) return std::unexpected("it has an activation");
    const auto size = constant<std::int32_t>(op.inputs[0], ElementType::int32);
    if (!size) return std::unexpected("its output's shape is no constant");
    if (*size != tensor(op.outputs[0]).shape) return disagree();
    const auto& shape = tensor(op.inputs[1]).shape;
    const Value &in = value(op.inputs[2]), &out = value(op.outputs[0]);
    if (shape.size() != 4 || shape[0] != out.channels || shape[3] != in.channels) return disagree();
    Convolution conv{.window = {shape[1], shape[2], o.stride_h, o.stride_w},
                     .in_channels = in.channels,
                     .out_channels = out.channels,
                     .weights = {},
                     .weight_scales = {},
                     .biases = {}};
    if (!place_window(conv.window, o.padding, out, in)) return disagree();
    auto read = with_constants(op, std::move(conv), 3);
    if (!read) return read;
    return TransposedConvolution{std::get<Convolution>(std::move(*read))};
}

Read GraphReader::fully_connected(const Operator& op) const {
    if (op.inputs.size() < 2) return disagree();
    const auto o = REEF_TRY(options<model::FullyConnectedOptions>(op));
    if (o.weights_format != 0) return std::unexpected("its weights are shuffled");
    const auto& shape = tensor(op.inputs[1]).shape;
    const Value &in = value(op.inputs[0]), &out = value(op.outputs[0]);
    if (shape.size() != 2 || shape[0] != out.channels) return disagree();
    // The input's last dimension may be another than the weights': rows are made of all elements.
    Convolution conv{.window = {},
                     .activation = o.activation,
                     .in_channels = shape[1],
                     .out_channels = out.channels,
                     .weights = {},
                     .weight_scales = {},
                     .biases = {}};
    if (in.pixels() * in.channels != out.pixels() * shape[1]) return disagree();
    auto computed = tensor(op.inputs[0]).shape;
    if (!o.keep_num_dims)
        computed = {static_cast<std::int32_t>(out.pixels()), out.channels};
    else if (!computed.empty() && computed.back() == shape[1])
        computed.back() = out.channels;
    if (computed != tensor(op.outputs[0]).shape) return disagree();
    const bool by_pixel = in.channels == shape[1] && in.width == out.width;
    if (by_pixel) return with_constants(op, std::move(conv));
    if (out.pixels() == 1) {
        conv.window.kernel_h = in.height;
        conv.window.kernel_w = in.width;
        conv.in_channels = in.channels;
        return with_constants(op, std::move(conv));
    }
    auto read = with_constants(op, std::move(conv));
    if (!read) return read;
    return RowProduct{std::get<Convolution>(std::move(*read))};
}

}  // namespace reef::compiler

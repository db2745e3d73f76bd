// Operators that move a window over an image, and products of matrices.
#include <algorithm>
#include <span>

#include "cpu/prepare/pooling.h"
#include "peers/onnx_exporter.h"

namespace reef::peers {
namespace {

using enum Layout;

std::int64_t padding_after(std::int64_t in, std::int64_t out, std::int64_t reach,
                           std::int64_t stride, std::int64_t before) {
    return std::max<std::int64_t>(0, (out - 1) * stride + reach - in - before);
}

/// Of elements of `size` bytes.
std::vector<std::byte> transposed(Bytes from, std::size_t outer, std::size_t rows,
                                  std::size_t columns, std::size_t size) {
    std::vector<std::byte> to;
    to.reserve(from.size());
    for (std::size_t o = 0; o < outer; ++o)
        for (std::size_t c = 0; c < columns; ++c)
            for (std::size_t r = 0; r < rows; ++r) {
                const Bytes element = from.subspan(((o * rows + r) * columns + c) * size, size);
                to.insert(to.end(), element.begin(), element.end());
            }
    return to;
}

std::size_t size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

Status no_hybrid(const OperatorView& op) {
    if (op.input(0).type == ElementType::float32 && op.input(1).type != ElementType::float32)
        return fail(Cause::unsupported, "float32 on quantised weights is not written");
    return {};
}

}  // namespace

Status OnnxExporter::conv_2d(const OperatorView& op) {
    return convolution(op, REEF_TRY(cpu::read_conv_2d(op)), false);
}
Status OnnxExporter::depthwise_conv_2d(const OperatorView& op) {
    return convolution(op, REEF_TRY(cpu::read_depthwise_conv_2d(op)), true);
}

/// As DequantizeLinear of bytes and of 32-bit sums, or float32. uint8 weights are int8, 128 less,
/// which MLAS multiplies faster.
Names OnnxExporter::weights_and_bias(const OperatorView& op, const cpu::Convolution& c,
                                     std::vector<std::byte> weights, const Dimensions& shape) {
    if (c.floats)
        return {out_.constant(ElementType::float32, shape, weights),
                out_.constant(ElementType::float32, {c.out_channels},
                              std::as_bytes(std::span(c.floats->bias)))};
    const bool lower = c.type == ElementType::uint8;
    if (lower)
        for (std::byte& weight : weights) weight ^= std::byte{0x80};
    const std::vector<float>& scales = op.input(1).quantization->scale;
    const Dimensions per_scale =
        scales.size() == 1 ? Dimensions{} : Dimensions{static_cast<std::int64_t>(scales.size())};
    const std::vector<std::int8_t> zeros(
        scales.size(), static_cast<std::int8_t>(c.weight_zero - (lower ? 128 : 0)));
    std::vector<float> sums = scales;
    for (float& scale : sums) scale *= op.input(0).quantization->scale[0];
    Names names{out_.fresh("weights"), out_.fresh("bias")};
    const auto dequantise = [&](const Names& inputs, const std::string& name) {
        const OnnxNode node = out_.node("DequantizeLinear", inputs, {name});
        if (!per_scale.empty()) node.set("axis", std::int64_t{0});
    };
    dequantise({out_.constant(ElementType::int8, shape, weights),
                out_.constant(ElementType::float32, per_scale, std::as_bytes(std::span(scales))),
                out_.constant(ElementType::int8, per_scale, std::as_bytes(std::span(zeros)))},
               names[0]);
    dequantise(
        {out_.constant(ElementType::int32, {c.out_channels}, std::as_bytes(std::span(c.bias))),
         out_.constant(ElementType::float32, per_scale, std::as_bytes(std::span(sums)))},
        names[1]);
    return names;
}

OnnxNode OnnxExporter::compute_sums(std::string_view type, const Names& inputs,
                                    const OperatorView& op, Layout layout,
                                    const cpu::Convolution& c) {
    const TensorIndex output = op.op().outputs[0];
    return c.floats ? compute_clamped(type, inputs, output, layout, c.floats->clamp)
                    : compute(type, inputs, output, layout, c.clamp);
}

Status OnnxExporter::convolution(const OperatorView& op, const cpu::Convolution& c,
                                 bool depthwise) {
    REEF_CHECK(no_hybrid(op));
    TensorIndex input = op.op().inputs[0];
    Border border;
    if (const auto found = borders_.find(input); found != borders_.end()) {
        border = found->second;
        input = border.inner;
    }
    const auto& from = tensor(input).shape;
    const auto after = [](const cpu::WindowAxis& axis, std::int64_t in, std::int64_t before) {
        return padding_after(in, axis.out, (axis.taps - 1) * axis.dilation + 1, axis.stride,
                             before);
    };
    const std::int64_t top = c.h.pad + border.top, left = c.w.pad + border.left;
    const Dimensions pads{top, left, after(c.h, from[1], top), after(c.w, from[2], left)};
    const std::size_t taps = size(c.h.taps * c.w.taps), bytes = *size_of(op.input(1).type);
    auto weights =
        depthwise ? transposed(c.weights.view(), 1, taps, size(c.out_channels), bytes)
                  : transposed(c.weights.view(), size(c.out_channels), taps, size(c.depth), bytes);
    Names inputs{real(input, channels_first)};
    for (std::string& name :
         weights_and_bias(op, c, std::move(weights),
                          {c.out_channels, depthwise ? 1 : c.depth, c.h.taps, c.w.taps}))
        inputs.push_back(std::move(name));
    compute_sums("Conv", inputs, op, channels_first, c)
        .set("kernel_shape", Dimensions{c.h.taps, c.w.taps})
        .set("strides", Dimensions{c.h.stride, c.w.stride})
        .set("dilations", Dimensions{c.h.dilation, c.w.dilation})
        .set("pads", pads)
        .set("group", depthwise ? c.in_channels : c.groups());
    return {};
}

Status OnnxExporter::fully_connected(const OperatorView& op) {
    const cpu::Convolution c = REEF_TRY(cpu::read_fully_connected(op));
    REEF_CHECK(no_hybrid(op));
    const TensorIndex input = op.op().inputs[0], output = op.op().outputs[0];
    std::string rows = bytes(input, of_model);
    if (tensor(input).shape.size() != 2) {
        const std::string flat = out_.fresh("rows");
        out_.node("Reshape", {rows, out_.integers({c.batch, c.depth})}, {flat});
        rows = flat;
    }
    if (tensor(output).shape.size() != 2)
        return fail(Cause::unsupported, "results of other ranks than 2 are not written");
    const Bytes weights = c.weights.view();
    Names inputs{c.floats ? rows : dequantised(rows, tensor(input))};
    for (std::string& name :
         weights_and_bias(op, c, {weights.begin(), weights.end()}, {c.out_channels, c.depth}))
        inputs.push_back(std::move(name));
    compute_sums("Gemm", inputs, op, of_model, c).set("transB", std::int64_t{1});
    return {};
}

namespace {

Dimensions pads_of(const cpu::Pooling& p) {
    const auto after = [](const cpu::PoolingAxis& axis) {
        return padding_after(axis.input, axis.output, axis.filter, axis.stride, axis.padding);
    };
    return {p.y.padding, p.x.padding, after(p.y), after(p.x)};
}

OnnxNode windows(const OnnxNode& node, const cpu::Pooling& p) {
    return node.set("kernel_shape", Dimensions{p.y.filter, p.x.filter})
        .set("strides", Dimensions{p.y.stride, p.x.stride})
        .set("pads", pads_of(p));
}

}  // namespace

Status OnnxExporter::average_pool(const OperatorView& op) {
    const bool floats = op.input(0).type == ElementType::float32;
    const cpu::Pooling p = REEF_TRY(floats ? cpu::check_float_pooling(op) : cpu::check_pooling(op));
    const Names inputs{real(op.op().inputs[0], channels_first)};
    const TensorIndex output = op.op().outputs[0];
    const bool whole = p.y.output == 1 && p.x.output == 1 && p.y.window(0).size() == p.y.input &&
                       p.x.window(0).size() == p.x.input;
    const char* type = whole ? "GlobalAveragePool" : "AveragePool";
    const OnnxNode node = floats
                              ? compute_clamped(type, inputs, output, channels_first, p.float_clamp)
                              : compute(type, inputs, output, channels_first, p.clamp);
    if (!whole) windows(node, p);
    return {};
}

Status OnnxExporter::max_pool(const OperatorView& op) {
    const TensorIndex input = op.op().inputs[0], output = op.op().outputs[0];
    if (op.input(0).type == ElementType::float32) {
        const cpu::Pooling p = REEF_TRY(cpu::check_float_pooling(op));
        windows(compute_clamped("MaxPool", {bytes(input, channels_first)}, output, channels_first,
                                p.float_clamp),
                p);
        return {};
    }
    const cpu::Pooling p = REEF_TRY(cpu::check_pooling(op));
    if (p.clamp != cpu::type_range(op.output(0).type))
        return fail(Cause::unsupported, "an activation behind the greatest is not written");
    windows(move("MaxPool", input, {}, output, channels_first), p);
    return {};
}

}  // namespace reef::peers

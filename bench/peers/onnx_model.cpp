#include "peers/onnx_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "peers/node_program.h"
#include "peers/onnx_exporter.h"

namespace reef::peers {
namespace {

constexpr std::int32_t raise = 128;

bool is_bytes(const model::Tensor& tensor) {
    return (tensor.type == ElementType::uint8 || tensor.type == ElementType::int8) &&
           tensor.quantization && tensor.quantization->quantized();
}

ElementType type_there(const model::Tensor& tensor) {
    return is_raised(tensor) ? ElementType::uint8 : tensor.type;
}

Dimensions dimensions(const std::vector<std::int32_t>& shape) {
    return {shape.begin(), shape.end()};
}

std::uint8_t zero_point_there(const model::Tensor& tensor) {
    const auto& zeros = tensor.quantization->zero_point;
    return static_cast<std::uint8_t>((zeros.empty() ? 0 : zeros[0]) +
                                     (is_raised(tensor) ? raise : 0));
}

/// NHWC to NCHW.
std::vector<std::byte> channels_first(Bytes from, const Dimensions& shape, std::size_t size) {
    const auto pixels = static_cast<std::size_t>(shape[1] * shape[2]);
    const auto channels = static_cast<std::size_t>(shape[3]);
    std::vector<std::byte> to;
    to.reserve(from.size());
    for (std::size_t n = 0; n < static_cast<std::size_t>(shape[0]); ++n)
        for (std::size_t c = 0; c < channels; ++c)
            for (std::size_t p = 0; p < pixels; ++p) {
                const Bytes element = from.subspan(((n * pixels + p) * channels + c) * size, size);
                to.insert(to.end(), element.begin(), element.end());
            }
    return to;
}

Dimensions channels_first(const Dimensions& shape) {
    Dimensions permuted;
    for (const std::size_t i : channels_first_order) permuted.push_back(shape[i]);
    return permuted;
}

}  // namespace

OnnxExporter::OnnxExporter(const model::Model& model, const model::Subgraph& graph)
    : model_(model), subgraph_(graph), out_("network") {}

const model::Tensor& OnnxExporter::tensor(TensorIndex t) const {
    return subgraph_.tensors[static_cast<std::size_t>(t)];
}
bool OnnxExporter::is_constant(TensorIndex t) const {
    return !model_.constant(tensor(t)).empty();
}

Dimensions OnnxExporter::shape_in(TensorIndex t, Layout layout) const {
    const Dimensions shape = dimensions(tensor(t).shape);
    return layout == Layout::of_model ? shape : channels_first(shape);
}

std::int64_t OnnxExporter::axis_in(std::size_t axis, Layout layout) const {
    if (layout == Layout::of_model) return static_cast<std::int64_t>(axis);
    return std::ranges::find(channels_first_order, axis) - channels_first_order.begin();
}

std::string OnnxExporter::constant_bytes(TensorIndex t, Layout layout, std::size_t rank) {
    const model::Tensor& constant = tensor(t);
    Dimensions shape = dimensions(constant.shape);
    const Bytes view = model_.constant(constant);
    std::vector<std::byte> bytes(view.begin(), view.end());
    if (is_raised(constant))
        for (std::byte& byte : bytes) byte ^= std::byte{raise};
    if (layout == Layout::channels_first) {
        shape.insert(shape.begin(), rank - std::min(rank, shape.size()), 1);
        bytes = channels_first(bytes, shape, *size_of(constant.type));
        shape = channels_first(shape);
    }
    return out_.constant(type_there(constant), shape, bytes);
}

std::string OnnxExporter::bytes(TensorIndex t, Layout layout) {
    if (is_constant(t)) return constant_bytes(t, layout, tensor(t).shape.size());
    if (const auto found = names_.find({t, layout}); found != names_.end()) return found->second;
    const bool to_channels_first = layout == Layout::channels_first;
    const std::string from =
        names_.at({t, to_channels_first ? Layout::of_model : Layout::channels_first});
    std::string name = written(t, layout);
    out_.node("Transpose", {from}, {name})
        .set("perm", to_channels_first ? Dimensions{0, 3, 1, 2} : Dimensions{0, 2, 3, 1});
    return name;
}

std::string OnnxExporter::written(TensorIndex t, Layout layout) {
    std::string name =
        fmt::format("t{}{}", t, layout == Layout::channels_first ? "_channels_first" : "");
    names_[{t, layout}] = name;
    return name;
}

std::string OnnxExporter::dequantised(const std::string& bytes, const model::Tensor& tensor,
                                      float factor) {
    const std::uint8_t zero = zero_point_there(tensor);
    std::string name = out_.fresh("real");
    out_.node("DequantizeLinear",
              {bytes, out_.scalar(tensor.quantization->scale[0] * factor),
               out_.constant(type_there(tensor), {}, std::as_bytes(std::span(&zero, 1)))},
              {name});
    return name;
}

void OnnxExporter::quantise(const std::string& values, const model::Tensor& tensor,
                            const std::string& name) {
    const std::uint8_t zero = zero_point_there(tensor);
    out_.node("QuantizeLinear",
              {values, out_.scalar(tensor.quantization->scale[0]),
               out_.constant(type_there(tensor), {}, std::as_bytes(std::span(&zero, 1)))},
              {name});
}

std::string OnnxExporter::real(TensorIndex t, Layout layout, float factor) {
    const std::string name = bytes(t, layout);
    return is_bytes(tensor(t)) ? dequantised(name, tensor(t), factor) : name;
}

std::string OnnxExporter::operand(TensorIndex t, Layout layout, std::size_t rank) {
    if (!is_constant(t)) return real(t, layout);
    const std::string name = constant_bytes(t, layout, rank);
    return is_bytes(tensor(t)) ? dequantised(name, tensor(t)) : name;
}

OnnxNode OnnxExporter::compute(std::string_view type, const Names& inputs, TensorIndex output,
                               Layout layout, std::optional<cpu::ClampRange> clamp) {
    const model::Tensor& to = tensor(output);
    if (!is_bytes(to)) return out_.node(type, inputs, {written(output, layout)});
    const std::string values = out_.fresh("real");
    const OnnxNode node = out_.node(type, inputs, {values});
    if (!clamp || *clamp == cpu::type_range(to.type)) {
        quantise(values, to, written(output, layout));
        return node;
    }
    const std::string unclamped = out_.fresh("unclamped");
    quantise(values, to, unclamped);
    const auto limit = [&](std::int32_t value) {
        const auto there = static_cast<std::uint8_t>(value + (is_raised(to) ? raise : 0));
        return out_.constant(ElementType::uint8, {}, std::as_bytes(std::span(&there, 1)));
    };
    out_.node("Clip", {unclamped, limit(clamp->min), limit(clamp->max)}, {written(output, layout)});
    return node;
}

OnnxNode OnnxExporter::compute_clamped(std::string_view type, const Names& inputs,
                                       TensorIndex output, Layout layout,
                                       cpu::Limits<float> clamp) {
    constexpr auto unbounded = std::numeric_limits<float>::max();
    if (clamp.min <= -unbounded && clamp.max >= unbounded)
        return out_.node(type, inputs, {written(output, layout)});
    const std::string unclamped = out_.fresh("unclamped");
    const OnnxNode node = out_.node(type, inputs, {unclamped});
    if (clamp.min == 0 && clamp.max >= unbounded) {
        out_.node("Relu", {unclamped}, {written(output, layout)});
        return node;
    }
    out_.node("Clip", {unclamped, out_.scalar(clamp.min), out_.scalar(clamp.max)},
              {written(output, layout)});
    return node;
}

OnnxNode OnnxExporter::move(std::string_view type, TensorIndex input, const Names& more,
                            TensorIndex output, Layout layout) {
    const auto same = cpu::same_quantization(tensor(input), tensor(output));
    const bool as_bytes = same && *same && tensor(input).type == tensor(output).type;
    Names inputs{as_bytes ? bytes(input, layout) : real(input, layout)};
    inputs.insert(inputs.end(), more.begin(), more.end());
    if (as_bytes) return out_.node(type, inputs, {written(output, layout)});
    return compute(type, inputs, output, layout);
}

Layout OnnxExporter::layout_of(const OperatorView& op) const {
    bool found = false;
    for (const TensorIndex t : op.op().inputs) {
        if (t == model::absent_tensor || is_constant(t)) continue;
        if (tensor(t).shape.size() != 4) return Layout::of_model;
        found = found || names_.contains({t, Layout::channels_first});
    }
    return found && op.output(0).shape.size() == 4 ? Layout::channels_first : Layout::of_model;
}

void OnnxExporter::find_borders() {
    using enum model::Op;
    const auto readers_convolve = [&](TensorIndex t) {
        return std::ranges::all_of(subgraph_.operators, [t](const model::Operator& op) {
            const bool convolves =
                op.code.builtin == conv_2d || op.code.builtin == depthwise_conv_2d;
            return convolves ? std::ranges::count(op.inputs, t) == (op.inputs[0] == t ? 1 : 0)
                             : std::ranges::count(op.inputs, t) == 0;
        });
    };
    for (std::size_t i = 0; i < subgraph_.operators.size(); ++i) {
        const OperatorView op(model_, subgraph_, i);
        if (op.op().code.builtin != model::Op::pad || op.input(0).shape.size() != 4) continue;
        const auto widths = cpu::constant_integers(op, 1, "paddings");
        const auto same = cpu::same_quantization(op.input(0), op.output(0));
        const TensorIndex padded = op.op().outputs[0];
        if (!widths || widths->size() != 8 || !same || !*same || !readers_convolve(padded) ||
            std::ranges::count(subgraph_.outputs, padded) != 0)
            continue;
        if ((*widths)[0] == 0 && (*widths)[1] == 0 && (*widths)[6] == 0 && (*widths)[7] == 0)
            borders_[padded] = {op.op().inputs[0], (*widths)[2], (*widths)[4]};
    }
}

Status OnnxExporter::convert(std::size_t index) {
    const OperatorView op(model_, subgraph_, index);
    const auto refuse = [&](std::string why) {
        return fail(Cause::unsupported, std::move(why), model::place_of(subgraph_, index));
    };
    for (const auto& list : {op.op().inputs, op.op().outputs}) {
        for (const TensorIndex t : list) {
            if (t == model::absent_tensor) continue;
            if (!has_onnx_type(tensor(t).type))
                return refuse(fmt::format("tensors of {}", name_of(tensor(t).type)));
        }
    }
    for (const Converter& known : converters)
        if (known.op == op.op().code.builtin && op.op().code.custom.empty())
            return in_place((this->*known.convert)(op), model::place_of(subgraph_, index));
    return refuse("no form in ONNX is written of it");
}

Result<std::string> OnnxExporter::run() {
    for (const TensorIndex t : subgraph_.inputs)
        out_.input(written(t, Layout::of_model), type_there(tensor(t)),
                   dimensions(tensor(t).shape));
    find_borders();
    for (std::size_t i = 0; i < subgraph_.operators.size(); ++i) {
        out_.name_nodes(fmt::format("op{}_", i));
        REEF_CHECK(convert(i));
    }
    for (const TensorIndex t : subgraph_.outputs)
        out_.output(bytes(t, Layout::of_model), type_there(tensor(t)), dimensions(tensor(t).shape));
    return out_.serialised();
}

Result<std::string> onnx_file(const model::Model& model, const model::Subgraph& graph) {
    return OnnxExporter(model, graph).run();
}

std::string onnx_identity(const model::Subgraph& graph) {
    OnnxGraph identity("identity");
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const model::Tensor& tensor = graph.tensors[static_cast<std::size_t>(graph.inputs[i])];
        const auto name = fmt::format("in{}", i), same = fmt::format("out{}", i);
        identity.input(name, type_there(tensor), dimensions(tensor.shape));
        identity.node("Identity", {name}, {same});
        identity.output(same, type_there(tensor), dimensions(tensor.shape));
    }
    return identity.serialised();
}

}  // namespace reef::peers

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "peers/onnx_exporter.h"

namespace reef::peers {
namespace {

using enum Layout;

std::size_t size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

Result<std::vector<std::int64_t>> constant_numbers(const OperatorView& op, std::size_t input) {
    return cpu::constant_integers(op, input, "numbers");
}

std::int64_t onnx_number(ElementType type) {
    switch (type) {
        case ElementType::float32:
            return onnx::TensorProto_DataType_FLOAT;
        case ElementType::uint8:
            return onnx::TensorProto_DataType_UINT8;
        case ElementType::int32:
            return onnx::TensorProto_DataType_INT32;
        case ElementType::int64:
            return onnx::TensorProto_DataType_INT64;
        default:
            return onnx::TensorProto_DataType_INT8;
    }
}

Result<model::Activation> activation_of(const OperatorView& op) {
    using enum model::Op;
    switch (op.op().code.builtin) {
        case add:
            return REEF_TRY(op.options<model::AddOptions>()).activation;
        case sub:
            return REEF_TRY(op.options<model::SubOptions>()).activation;
        case mul:
            return REEF_TRY(op.options<model::MulOptions>()).activation;
        case div:
            return REEF_TRY(op.options<model::DivOptions>()).activation;
        default:
            return model::Activation::none;
    }
}

/// FLOOR_DIV, too: networks divide indices, which are not negative.
const char* binary_name(model::Op op) {
    using enum model::Op;
    switch (op) {
        case add:
            return "Add";
        case sub:
            return "Sub";
        case mul:
            return "Mul";
        case maximum:
            return "Max";
        case minimum:
            return "Min";
        default:
            return "Div";
    }
}

const char* unary_name(model::Op op) {
    using enum model::Op;
    switch (op) {
        case logistic:
            return "Sigmoid";
        case tanh:
            return "Tanh";
        case sqrt:
            return "Sqrt";
        case hard_swish:
            return "HardSwish";
        default:
            return "Relu";
    }
}

}  // namespace

const std::vector<OnnxExporter::Converter> OnnxExporter::converters{
    {model::Op::conv_2d, &OnnxExporter::conv_2d},
    {model::Op::depthwise_conv_2d, &OnnxExporter::depthwise_conv_2d},
    {model::Op::fully_connected, &OnnxExporter::fully_connected},
    {model::Op::average_pool_2d, &OnnxExporter::average_pool},
    {model::Op::max_pool_2d, &OnnxExporter::max_pool},
    {model::Op::mean, &OnnxExporter::mean},
    {model::Op::add, &OnnxExporter::binary},
    {model::Op::sub, &OnnxExporter::binary},
    {model::Op::mul, &OnnxExporter::binary},
    {model::Op::div, &OnnxExporter::binary},
    {model::Op::floor_div, &OnnxExporter::binary},
    {model::Op::maximum, &OnnxExporter::extreme},
    {model::Op::minimum, &OnnxExporter::extreme},
    {model::Op::logistic, &OnnxExporter::unary},
    {model::Op::tanh, &OnnxExporter::unary},
    {model::Op::sqrt, &OnnxExporter::unary},
    {model::Op::hard_swish, &OnnxExporter::unary},
    {model::Op::relu, &OnnxExporter::unary},
    {model::Op::softmax, &OnnxExporter::softmax},
    {model::Op::leaky_relu, &OnnxExporter::leaky_relu},
    {model::Op::resize_bilinear, &OnnxExporter::resize_bilinear},
    {model::Op::resize_nearest_neighbor, &OnnxExporter::resize_nearest},
    {model::Op::concatenation, &OnnxExporter::concatenation},
    {model::Op::pad, &OnnxExporter::pad},
    {model::Op::reshape, &OnnxExporter::reshape},
    {model::Op::squeeze, &OnnxExporter::reshape},
    {model::Op::expand_dims, &OnnxExporter::reshape},
    {model::Op::transpose, &OnnxExporter::transpose},
    {model::Op::strided_slice, &OnnxExporter::strided_slice},
    {model::Op::split, &OnnxExporter::split},
    {model::Op::pack, &OnnxExporter::pack},
    {model::Op::unpack, &OnnxExporter::unpack},
    {model::Op::arg_max, &OnnxExporter::arg_max},
    {model::Op::gather_nd, &OnnxExporter::gather_nd},
    {model::Op::cast, &OnnxExporter::cast},
    {model::Op::quantize, &OnnxExporter::quantize},
    {model::Op::dequantize, &OnnxExporter::dequantize},
};

Status OnnxExporter::mean(const OperatorView& op) {
    const TensorIndex input = op.op().inputs[0], output = op.op().outputs[0];
    const auto axes = REEF_TRY(constant_numbers(op, 1));
    const bool keeps = op.output(0).shape.size() == op.input(0).shape.size();
    if (op.input(0).shape.size() != 4 || axes != std::vector<std::int64_t>{1, 2}) {
        compute("ReduceMean", {real(input, of_model)}, output, of_model)
            .set("axes", axes)
            .set("keepdims", std::int64_t{keeps});
        return {};
    }
    if (keeps) {
        compute("GlobalAveragePool", {real(input, channels_first)}, output, channels_first);
        return {};
    }
    std::string pooled = out_.fresh("pooled");
    out_.node("GlobalAveragePool", {real(input, channels_first)}, {pooled});
    if (op.output(0).type != ElementType::float32) {
        const std::string values = std::exchange(pooled, out_.fresh("quantised"));
        quantise(values, tensor(output), pooled);
    }
    out_.node("Reshape", {pooled, out_.integers(shape_in(output, of_model))},
              {written(output, of_model)});
    return {};
}

Status OnnxExporter::binary(const OperatorView& op) {
    const Layout layout = layout_of(op);
    const TensorIndex output = op.op().outputs[0];
    const std::size_t rank = op.output(0).shape.size();
    const Names inputs{operand(op.op().inputs[0], layout, rank),
                       operand(op.op().inputs[1], layout, rank)};
    const char* name = binary_name(op.op().code.builtin);
    const model::Activation activation = REEF_TRY(activation_of(op));
    if (activation == model::Activation::none)
        compute(name, inputs, output, layout);
    else if (op.output(0).type == ElementType::float32)
        compute_clamped(name, inputs, output, layout,
                        REEF_TRY(cpu::float_activation_range(activation)));
    else
        compute(name, inputs, output, layout,
                REEF_TRY(cpu::quantized_activation_range(activation, op.output(0))));
    return {};
}

/// MAXIMUM and MINIMUM: TFLite compares the bytes of their inputs, whatever their scales.
Status OnnxExporter::extreme(const OperatorView& op) {
    for (std::size_t i = 0; i < 2; ++i)
        if (!REEF_TRY(cpu::same_quantization(op.input(i), op.output(0))))
            return fail(Cause::unsupported, "bytes of different scales are compared");
    return binary(op);
}

Status OnnxExporter::unary(const OperatorView& op) {
    const Layout layout = layout_of(op);
    compute(unary_name(op.op().code.builtin), {real(op.op().inputs[0], layout)}, op.op().outputs[0],
            layout);
    return {};
}

Status OnnxExporter::leaky_relu(const OperatorView& op) {
    const Layout layout = layout_of(op);
    compute("LeakyRelu", {real(op.op().inputs[0], layout)}, op.op().outputs[0], layout)
        .set("alpha", REEF_TRY(op.options<model::LeakyReluOptions>()).alpha);
    return {};
}

Status OnnxExporter::softmax(const OperatorView& op) {
    const float beta = REEF_TRY(op.options<model::SoftmaxOptions>()).beta;
    if (op.input(0).type == ElementType::float32 && beta != 1)
        return fail(Cause::unsupported, "a factor of float32 exponents is not written");
    compute("Softmax", {real(op.op().inputs[0], of_model, beta)}, op.op().outputs[0], of_model)
        .set("axis", std::int64_t{-1});
    return {};
}

Status OnnxExporter::resize(const OperatorView& op, bool align_corners, bool half_pixel_centers,
                            bool nearest) {
    const TensorIndex output = op.op().outputs[0];
    const Names more{"", "", out_.integers(shape_in(output, channels_first))};
    const OnnxNode node = move("Resize", op.op().inputs[0], more, output, channels_first);
    node.set("coordinate_transformation_mode", align_corners        ? "align_corners"
                                               : half_pixel_centers ? "half_pixel"
                                                                    : "asymmetric");
    node.set("mode", nearest ? "nearest" : "linear");
    if (nearest)
        node.set("nearest_mode",
                 align_corners || half_pixel_centers ? "round_prefer_ceil" : "floor");
    return {};
}

Status OnnxExporter::resize_bilinear(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::ResizeBilinearOptions>());
    return resize(op, options.align_corners, options.half_pixel_centers, false);
}
Status OnnxExporter::resize_nearest(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::ResizeNearestNeighborOptions>());
    return resize(op, options.align_corners, options.half_pixel_centers, true);
}

Status OnnxExporter::concatenation(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::ConcatenationOptions>());
    const std::size_t axis = REEF_TRY(cpu::resolve_axis(options.axis, op.output(0).shape.size()));
    const Layout layout = layout_of(op);
    bool same = true;
    for (std::size_t i = 0; i < op.input_count(); ++i)
        same = same && REEF_TRY(cpu::same_quantization(op.input(i), op.output(0)));
    Names inputs;
    for (const TensorIndex t : op.op().inputs)
        inputs.push_back(same ? bytes(t, layout) : real(t, layout));
    const TensorIndex output = op.op().outputs[0];
    const OnnxNode node = same ? out_.node("Concat", inputs, {written(output, layout)})
                               : compute("Concat", inputs, output, layout);
    node.set("axis", axis_in(axis, layout));
    return {};
}

Status OnnxExporter::pad(const OperatorView& op) {
    const TensorIndex output = op.op().outputs[0];
    if (borders_.contains(output)) return {};
    const auto widths = REEF_TRY(constant_numbers(op, 1));
    const Layout layout = layout_of(op);
    const std::size_t rank = op.output(0).shape.size();
    if (widths.size() != 2 * rank) return fail(Cause::bad_input, "paddings of another rank");
    Dimensions pads(2 * rank);
    for (std::size_t i = 0; i < rank; ++i) {
        const std::size_t at = size(axis_in(i, layout));
        pads[at] = widths[2 * i];
        pads[rank + at] = widths[2 * i + 1];
    }
    Names more{out_.integers(pads)};
    if (const auto& parameters = op.output(0).quantization; parameters && parameters->quantized()) {
        const auto zero = static_cast<std::uint8_t>(
            REEF_TRY(cpu::per_tensor_parameters(op.output(0))).zero_point +
            (op.output(0).type == ElementType::int8 ? 128 : 0));
        more.push_back(out_.constant(ElementType::uint8, {}, std::as_bytes(std::span(&zero, 1))));
    }
    if (!REEF_TRY(cpu::same_quantization(op.input(0), op.output(0))))
        return fail(Cause::unsupported, "paddings that change the scale are not written");
    move("Pad", op.op().inputs[0], more, output, layout);
    return {};
}

Status OnnxExporter::reshape(const OperatorView& op) {
    const TensorIndex output = op.op().outputs[0];
    move("Reshape", op.op().inputs[0], {out_.integers(shape_in(output, of_model))}, output,
         of_model);
    return {};
}

Status OnnxExporter::transpose(const OperatorView& op) {
    move("Transpose", op.op().inputs[0], {}, op.op().outputs[0], of_model)
        .set("perm", REEF_TRY(constant_numbers(op, 1)));
    return {};
}

Status OnnxExporter::strided_slice(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::StridedSliceOptions>());
    const auto begin = REEF_TRY(constant_numbers(op, 1));
    const auto end = REEF_TRY(constant_numbers(op, 2));
    const auto strides = REEF_TRY(constant_numbers(op, 3));
    const auto& from = op.input(0).shape;
    const bool masks = options.ellipsis_mask != 0 || options.new_axis_mask != 0 ||
                       options.shrink_axis_mask != 0 || options.offset;
    if (masks || begin.size() != from.size() || end.size() != from.size() ||
        std::ranges::any_of(strides, [](std::int64_t stride) { return stride < 1; }))
        return fail(Cause::unsupported, "slices that change the rank or go back are not written");
    const Layout layout = layout_of(op);
    Dimensions starts, ends, axes, steps;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto masked = [i](std::int32_t mask) { return (mask >> i & 1) != 0; };
        starts.push_back(masked(options.begin_mask) ? 0 : begin[i]);
        ends.push_back(masked(options.end_mask) ? from[i] : end[i]);
        axes.push_back(axis_in(i, layout));
        steps.push_back(strides[i]);
    }
    move("Slice", op.op().inputs[0],
         {out_.integers(starts), out_.integers(ends), out_.integers(axes), out_.integers(steps)},
         op.op().outputs[0], layout);
    return {};
}

Status OnnxExporter::split(const OperatorView& op) {
    const auto axis = REEF_TRY(constant_numbers(op, 0));
    if (axis.size() != 1) return fail(Cause::bad_input, "not one axis");
    const std::size_t along = REEF_TRY(cpu::resolve_axis(axis[0], op.input(1).shape.size()));
    const Layout layout = layout_of(op);
    Names outputs;
    Dimensions lengths;
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        if (!REEF_TRY(cpu::same_quantization(op.input(1), op.output(i))))
            return fail(Cause::unsupported, "parts of another scale are not written");
        lengths.push_back(op.output(i).shape[along]);
    }
    const std::string whole = bytes(op.op().inputs[1], layout);
    for (const TensorIndex t : op.op().outputs) outputs.push_back(written(t, layout));
    out_.node("Split", {whole, out_.integers(lengths)}, outputs)
        .set("axis", axis_in(along, layout));
    return {};
}

Status OnnxExporter::pack(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::PackOptions>());
    const TensorIndex output = op.op().outputs[0];
    const std::size_t axis = REEF_TRY(cpu::resolve_axis(options.axis, op.output(0).shape.size()));
    Dimensions part = shape_in(output, of_model);
    part[axis] = 1;
    Names parts;
    for (std::size_t i = 0; i < op.input_count(); ++i) {
        if (!REEF_TRY(cpu::same_quantization(op.input(i), op.output(0))))
            return fail(Cause::unsupported, "parts of another scale are not written");
        parts.push_back(out_.fresh("part"));
        out_.node("Reshape", {bytes(op.op().inputs[i], of_model), out_.integers(part)},
                  {parts.back()});
    }
    out_.node("Concat", parts, {written(output, of_model)})
        .set("axis", static_cast<std::int64_t>(axis));
    return {};
}

Status OnnxExporter::unpack(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::UnpackOptions>());
    const std::size_t axis = REEF_TRY(cpu::resolve_axis(options.axis, op.input(0).shape.size()));
    Names parts;
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        if (!REEF_TRY(cpu::same_quantization(op.input(0), op.output(i))))
            return fail(Cause::unsupported, "parts of another scale are not written");
        parts.push_back(out_.fresh("part"));
    }
    out_.node("Split",
              {bytes(op.op().inputs[0], of_model), out_.integers(Dimensions(op.output_count(), 1))},
              parts)
        .set("axis", static_cast<std::int64_t>(axis));
    for (std::size_t i = 0; i < op.output_count(); ++i) {
        const TensorIndex output = op.op().outputs[i];
        out_.node("Reshape", {parts[i], out_.integers(shape_in(output, of_model))},
                  {written(output, of_model)});
    }
    return {};
}

Status OnnxExporter::arg_max(const OperatorView& op) {
    const TensorIndex input = op.op().inputs[0], output = op.op().outputs[0];
    const auto axis = REEF_TRY(constant_numbers(op, 1));
    if (axis.size() != 1) return fail(Cause::bad_input, "not one axis");
    const std::size_t along = REEF_TRY(cpu::resolve_axis(axis[0], op.input(0).shape.size()));
    // Without the channels NCHW is the model's order.
    const bool first = along == 3 && names_.contains({input, channels_first});
    const Layout layout = first ? channels_first : of_model;
    const bool is_long = op.output(0).type == ElementType::int64;
    const std::string index = is_long ? written(output, of_model) : out_.fresh("index");
    out_.node("ArgMax", {bytes(input, layout)}, {index})
        .set("axis", axis_in(along, layout))
        .set("keepdims", std::int64_t{0});
    if (!is_long)
        out_.node("Cast", {index}, {written(output, of_model)})
            .set("to", onnx_number(op.output(0).type));
    return {};
}

Status OnnxExporter::gather_nd(const OperatorView& op) {
    const std::string indices = out_.fresh("indices");
    out_.node("Cast", {bytes(op.op().inputs[1], of_model)}, {indices})
        .set("to", onnx_number(ElementType::int64));
    move("GatherND", op.op().inputs[0], {indices}, op.op().outputs[0], of_model);
    return {};
}

Status OnnxExporter::cast(const OperatorView& op) {
    const Layout layout = layout_of(op);
    out_.node("Cast", {bytes(op.op().inputs[0], layout)}, {written(op.op().outputs[0], layout)})
        .set("to", onnx_number(op.output(0).type));
    return {};
}

Status OnnxExporter::quantize(const OperatorView& op) {
    const TensorIndex input = op.op().inputs[0], output = op.op().outputs[0];
    const Layout layout = layout_of(op);
    const auto there = [](const model::Tensor& t) -> Result<cpu::AffineParameters> {
        auto parameters = REEF_TRY(cpu::per_tensor_parameters(t));
        if (t.type == ElementType::int8) parameters.zero_point += 128;
        return parameters;
    };
    if (op.input(0).type != ElementType::float32 &&
        REEF_TRY(there(op.input(0))) == REEF_TRY(there(op.output(0))))
        out_.node("Identity", {bytes(input, layout)}, {written(output, layout)});
    else
        quantise(real(input, layout), tensor(output), written(output, layout));
    return {};
}

Status OnnxExporter::dequantize(const OperatorView& op) {
    const Layout layout = layout_of(op);
    const std::string values = real(op.op().inputs[0], layout);
    out_.node("Identity", {values}, {written(op.op().outputs[0], layout)});
    return {};
}

}  // namespace reef::peers

#include "model/tflite_options.h"

namespace reef::model {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Padding padding_of(std::int8_t value) {
    return static_cast<Padding>(value);
}
Activation activation_of(std::int8_t value) {
    return static_cast<Activation>(value);
}
ElementType type_of(std::int8_t value) {
    return static_cast<ElementType>(value);
}
template <typename Enum>
std::int8_t number(Enum value) {
    return static_cast<std::int8_t>(value);
}

std::vector<std::int32_t> vector_of(const flatbuffers::Vector<std::int32_t>* values) {
    if (values == nullptr) return {};
    return {values->begin(), values->end()};
}
Offset<flatbuffers::Vector<std::int32_t>> vector_to(FlatBufferBuilder& builder,
                                                    const std::vector<std::int32_t>& values) {
    if (values.empty()) return 0;
    return builder.CreateVector(values);
}

// One pair of functions per table: from() reads it, to() writes it.

Options from(const schema::Conv2DOptions& t) {
    return Conv2dOptions{.padding = padding_of(t.padding()),
                         .stride_h = t.stride_h(),
                         .stride_w = t.stride_w(),
                         .dilation_h = t.dilation_h_factor(),
                         .dilation_w = t.dilation_w_factor(),
                         .activation = activation_of(t.fused_activation_function()),
                         .quantized_bias_type = type_of(t.quantized_bias_type())};
}
auto to(FlatBufferBuilder& b, const Conv2dOptions& o) {
    return schema::CreateConv2DOptions(b, number(o.padding), o.stride_w, o.stride_h,
                                       number(o.activation), o.dilation_w, o.dilation_h,
                                       number(o.quantized_bias_type));
}

Options from(const schema::DepthwiseConv2DOptions& t) {
    return DepthwiseConv2dOptions{.padding = padding_of(t.padding()),
                                  .stride_h = t.stride_h(),
                                  .stride_w = t.stride_w(),
                                  .dilation_h = t.dilation_h_factor(),
                                  .dilation_w = t.dilation_w_factor(),
                                  .depth_multiplier = t.depth_multiplier(),
                                  .activation = activation_of(t.fused_activation_function())};
}
auto to(FlatBufferBuilder& b, const DepthwiseConv2dOptions& o) {
    return schema::CreateDepthwiseConv2DOptions(b, number(o.padding), o.stride_w, o.stride_h,
                                                o.depth_multiplier, number(o.activation),
                                                o.dilation_w, o.dilation_h);
}

Options from(const schema::Pool2DOptions& t) {
    return Pool2dOptions{.padding = padding_of(t.padding()),
                         .stride_h = t.stride_h(),
                         .stride_w = t.stride_w(),
                         .filter_h = t.filter_height(),
                         .filter_w = t.filter_width(),
                         .activation = activation_of(t.fused_activation_function())};
}
auto to(FlatBufferBuilder& b, const Pool2dOptions& o) {
    return schema::CreatePool2DOptions(b, number(o.padding), o.stride_w, o.stride_h, o.filter_w,
                                       o.filter_h, number(o.activation));
}

Options from(const schema::TransposeConvOptions& t) {
    return TransposeConvOptions{.padding = padding_of(t.padding()),
                                .stride_h = t.stride_h(),
                                .stride_w = t.stride_w(),
                                .activation = activation_of(t.fused_activation_function()),
                                .quantized_bias_type = type_of(t.quantized_bias_type())};
}
auto to(FlatBufferBuilder& b, const TransposeConvOptions& o) {
    return schema::CreateTransposeConvOptions(b, number(o.padding), o.stride_w, o.stride_h,
                                              number(o.activation), number(o.quantized_bias_type));
}

Options from(const schema::FullyConnectedOptions& t) {
    return FullyConnectedOptions{.activation = activation_of(t.fused_activation_function()),
                                 .weights_format = t.weights_format(),
                                 .keep_num_dims = t.keep_num_dims(),
                                 .asymmetric_quantize_inputs = t.asymmetric_quantize_inputs(),
                                 .quantized_bias_type = type_of(t.quantized_bias_type())};
}
auto to(FlatBufferBuilder& b, const FullyConnectedOptions& o) {
    return schema::CreateFullyConnectedOptions(b, number(o.activation), o.weights_format,
                                               o.keep_num_dims, o.asymmetric_quantize_inputs,
                                               number(o.quantized_bias_type));
}

Options from(const schema::AddOptions& t) {
    return AddOptions{activation_of(t.fused_activation_function()), t.pot_scale_int16()};
}
auto to(FlatBufferBuilder& b, const AddOptions& o) {
    return schema::CreateAddOptions(b, number(o.activation), o.pot_scale_int16);
}

Options from(const schema::SubOptions& t) {
    return SubOptions{activation_of(t.fused_activation_function()), t.pot_scale_int16()};
}
auto to(FlatBufferBuilder& b, const SubOptions& o) {
    return schema::CreateSubOptions(b, number(o.activation), o.pot_scale_int16);
}

Options from(const schema::MulOptions& t) {
    return MulOptions{activation_of(t.fused_activation_function())};
}
auto to(FlatBufferBuilder& b, const MulOptions& o) {
    return schema::CreateMulOptions(b, number(o.activation));
}

Options from(const schema::DivOptions& t) {
    return DivOptions{activation_of(t.fused_activation_function())};
}
auto to(FlatBufferBuilder& b, const DivOptions& o) {
    return schema::CreateDivOptions(b, number(o.activation));
}

Options from(const schema::ConcatenationOptions& t) {
    return ConcatenationOptions{t.axis(), activation_of(t.fused_activation_function())};
}
auto to(FlatBufferBuilder& b, const ConcatenationOptions& o) {
    return schema::CreateConcatenationOptions(b, o.axis, number(o.activation));
}

Options from(const schema::SoftmaxOptions& t) {
    return SoftmaxOptions{t.beta()};
}
auto to(FlatBufferBuilder& b, const SoftmaxOptions& o) {
    return schema::CreateSoftmaxOptions(b, o.beta);
}

Options from(const schema::ReshapeOptions& t) {
    return ReshapeOptions{vector_of(t.new_shape())};
}
auto to(FlatBufferBuilder& b, const ReshapeOptions& o) {
    const auto new_shape = vector_to(b, o.new_shape);
    return schema::CreateReshapeOptions(b, new_shape);
}

Options from(const schema::SqueezeOptions& t) {
    return SqueezeOptions{vector_of(t.squeeze_dims())};
}
auto to(FlatBufferBuilder& b, const SqueezeOptions& o) {
    const auto dims = vector_to(b, o.squeeze_dims);
    return schema::CreateSqueezeOptions(b, dims);
}

Options from(const schema::ResizeBilinearOptions& t) {
    return ResizeBilinearOptions{t.align_corners(), t.half_pixel_centers(), t.new_height(),
                                 t.new_width()};
}
auto to(FlatBufferBuilder& b, const ResizeBilinearOptions& o) {
    return schema::CreateResizeBilinearOptions(b, o.old_height, o.old_width, o.align_corners,
                                               o.half_pixel_centers);
}

Options from(const schema::ResizeNearestNeighborOptions& t) {
    return ResizeNearestNeighborOptions{t.align_corners(), t.half_pixel_centers()};
}
auto to(FlatBufferBuilder& b, const ResizeNearestNeighborOptions& o) {
    return schema::CreateResizeNearestNeighborOptions(b, o.align_corners, o.half_pixel_centers);
}

Options from(const schema::ReducerOptions& t) {
    return ReducerOptions{t.keep_dims()};
}
auto to(FlatBufferBuilder& b, const ReducerOptions& o) {
    return schema::CreateReducerOptions(b, o.keep_dims);
}

Options from(const schema::StridedSliceOptions& t) {
    return StridedSliceOptions{t.begin_mask(),    t.end_mask(),         t.ellipsis_mask(),
                               t.new_axis_mask(), t.shrink_axis_mask(), t.offset()};
}
auto to(FlatBufferBuilder& b, const StridedSliceOptions& o) {
    return schema::CreateStridedSliceOptions(b, o.begin_mask, o.end_mask, o.ellipsis_mask,
                                             o.new_axis_mask, o.shrink_axis_mask, o.offset);
}

Options from(const schema::SplitOptions& t) {
    return SplitOptions{t.num_splits()};
}
auto to(FlatBufferBuilder& b, const SplitOptions& o) {
    return schema::CreateSplitOptions(b, o.num_splits);
}

Options from(const schema::CastOptions& t) {
    return CastOptions{type_of(t.in_data_type()), type_of(t.out_data_type())};
}
auto to(FlatBufferBuilder& b, const CastOptions& o) {
    return schema::CreateCastOptions(b, number(o.in_type), number(o.out_type));
}

Options from(const schema::ArgMaxOptions& t) {
    return ArgMaxOptions{type_of(t.output_type())};
}
auto to(FlatBufferBuilder& b, const ArgMaxOptions& o) {
    return schema::CreateArgMaxOptions(b, number(o.output_type));
}

Options from(const schema::ArgMinOptions& t) {
    return ArgMinOptions{type_of(t.output_type())};
}
auto to(FlatBufferBuilder& b, const ArgMinOptions& o) {
    return schema::CreateArgMinOptions(b, number(o.output_type));
}

Options from(const schema::PackOptions& t) {
    return PackOptions{t.values_count(), t.axis()};
}
auto to(FlatBufferBuilder& b, const PackOptions& o) {
    return schema::CreatePackOptions(b, o.values_count, o.axis);
}

Options from(const schema::UnpackOptions& t) {
    return UnpackOptions{t.num(), t.axis()};
}
auto to(FlatBufferBuilder& b, const UnpackOptions& o) {
    return schema::CreateUnpackOptions(b, o.num, o.axis);
}

Options from(const schema::SplitVOptions& t) {
    return SplitVOptions{t.num_splits()};
}
auto to(FlatBufferBuilder& b, const SplitVOptions& o) {
    return schema::CreateSplitVOptions(b, o.num_splits);
}

Options from(const schema::ShapeOptions& t) {
    return ShapeOptions{type_of(t.out_type())};
}
auto to(FlatBufferBuilder& b, const ShapeOptions& o) {
    return schema::CreateShapeOptions(b, number(o.out_type));
}

Options from(const schema::SpaceToDepthOptions& t) {
    return SpaceToDepthOptions{t.block_size()};
}
auto to(FlatBufferBuilder& b, const SpaceToDepthOptions& o) {
    return schema::CreateSpaceToDepthOptions(b, o.block_size);
}

Options from(const schema::DepthToSpaceOptions& t) {
    return DepthToSpaceOptions{t.block_size()};
}
auto to(FlatBufferBuilder& b, const DepthToSpaceOptions& o) {
    return schema::CreateDepthToSpaceOptions(b, o.block_size);
}

Options from(const schema::LeakyReluOptions& t) {
    return LeakyReluOptions{t.alpha()};
}
auto to(FlatBufferBuilder& b, const LeakyReluOptions& o) {
    return schema::CreateLeakyReluOptions(b, o.alpha);
}

Options from(const schema::GeluOptions& t) {
    return GeluOptions{t.approximate()};
}
auto to(FlatBufferBuilder& b, const GeluOptions& o) {
    return schema::CreateGeluOptions(b, o.approximate);
}

Options from(const schema::GatherOptions& t) {
    return GatherOptions{t.axis(), t.batch_dims()};
}
auto to(FlatBufferBuilder& b, const GatherOptions& o) {
    return schema::CreateGatherOptions(b, o.axis, o.batch_dims);
}

Options from(const schema::MirrorPadOptions& t) {
    return MirrorPadOptions{static_cast<Mirror>(t.mode())};
}
auto to(FlatBufferBuilder& b, const MirrorPadOptions& o) {
    return schema::CreateMirrorPadOptions(b, number(o.mode));
}

Options from(const schema::L2NormOptions& t) {
    return L2NormOptions{activation_of(t.fused_activation_function())};
}
auto to(FlatBufferBuilder& b, const L2NormOptions& o) {
    return schema::CreateL2NormOptions(b, number(o.activation));
}

Options from(const schema::BatchMatMulOptions& t) {
    return BatchMatMulOptions{t.adj_x(), t.adj_y(), t.asymmetric_quantize_inputs()};
}
auto to(FlatBufferBuilder& b, const BatchMatMulOptions& o) {
    return schema::CreateBatchMatMulOptions(b, o.adj_x, o.adj_y, o.asymmetric_quantize_inputs);
}

Options from(const schema::SVDFOptions& t) {
    return SvdfOptions{t.rank(), activation_of(t.fused_activation_function()),
                       t.asymmetric_quantize_inputs()};
}
auto to(FlatBufferBuilder& b, const SvdfOptions& o) {
    return schema::CreateSVDFOptions(b, o.rank, number(o.activation), o.asymmetric_quantize_inputs);
}

Options from(const schema::UnidirectionalSequenceLSTMOptions& t) {
    return UnidirectionalSequenceLstmOptions{
        .activation = activation_of(t.fused_activation_function()),
        .cell_clip = t.cell_clip(),
        .proj_clip = t.proj_clip(),
        .time_major = t.time_major(),
        .asymmetric_quantize_inputs = t.asymmetric_quantize_inputs(),
        .diagonal_recurrent_tensors = t.diagonal_recurrent_tensors()};
}
auto to(FlatBufferBuilder& b, const UnidirectionalSequenceLstmOptions& o) {
    return schema::CreateUnidirectionalSequenceLSTMOptions(
        b, number(o.activation), o.cell_clip, o.proj_clip, o.time_major,
        o.asymmetric_quantize_inputs, o.diagonal_recurrent_tensors);
}

template <typename Table>
PackedUnion<schema::BuiltinOptions> packed(Offset<Table> table) {
    return {schema::BuiltinOptionsTraits<Table>::enum_value, table.Union()};
}

/// Tries one table after the other; every table type has its from() above.
template <typename... Tables>
Options read_typed(const schema::Operator& op) {
    Options options;
    const auto attempt = [&]<typename T>(const T* table) {
        if (table == nullptr) return false;
        options = from(*table);
        return true;
    };
    const bool typed = (attempt(op.builtin_options_as<Tables>()) || ...);
    if (!typed) options = opaque_from(op.builtin_options_type(), op.builtin_options());
    return options;
}

}  // namespace

Options read_options(const schema::Operator& op) {
    if (op.builtin_options_type() == schema::BuiltinOptions::NONE ||
        op.builtin_options() == nullptr) {
        return {};
    }
    return read_typed<
        schema::Conv2DOptions, schema::DepthwiseConv2DOptions, schema::Pool2DOptions,
        schema::TransposeConvOptions, schema::FullyConnectedOptions, schema::AddOptions,
        schema::SubOptions, schema::MulOptions, schema::DivOptions, schema::ConcatenationOptions,
        schema::SoftmaxOptions, schema::ReshapeOptions, schema::SqueezeOptions,
        schema::ResizeBilinearOptions, schema::ResizeNearestNeighborOptions, schema::ReducerOptions,
        schema::StridedSliceOptions, schema::SplitOptions, schema::CastOptions,
        schema::ArgMaxOptions, schema::ArgMinOptions, schema::PackOptions, schema::UnpackOptions,
        schema::SplitVOptions, schema::ShapeOptions, schema::SpaceToDepthOptions,
        schema::DepthToSpaceOptions, schema::LeakyReluOptions, schema::GeluOptions,
        schema::GatherOptions, schema::MirrorPadOptions, schema::L2NormOptions,
        schema::BatchMatMulOptions, schema::SVDFOptions, schema::UnidirectionalSequenceLSTMOptions>(
        op);
}

PackedUnion<schema::BuiltinOptions> write_options(FlatBufferBuilder& builder,
                                                  const Options& options) {
    return std::visit(
        [&]<typename O>(const O& o) -> PackedUnion<schema::BuiltinOptions> {
            if constexpr (std::is_same_v<O, std::monostate>) {
                return {};
            } else if constexpr (std::is_same_v<O, OpaqueOptions>) {
                return pack_builtin_options(builder, o);
            } else {
                return packed(to(builder, o));
            }
        },
        options);
}

}  // namespace reef::model

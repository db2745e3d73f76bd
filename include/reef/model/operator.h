// Operator codes and the typed options of the operators that Reef knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reef/base/element_type.h"

namespace reef::model {

/// TFLite's BuiltinOperator numbers. Only operators that Reef's code names are listed; every other
/// number is preserved, and builtin_name() still knows what it is called.
enum class Op : std::int32_t {
    add = 0,
    average_pool_2d = 1,
    concatenation = 2,
    conv_2d = 3,
    depthwise_conv_2d = 4,
    depth_to_space = 5,
    dequantize = 6,
    floor = 8,
    fully_connected = 9,
    l2_normalization = 11,
    logistic = 14,
    max_pool_2d = 17,
    mul = 18,
    relu = 19,
    relu_n1_to_1 = 20,
    relu6 = 21,
    reshape = 22,
    resize_bilinear = 23,
    softmax = 25,
    space_to_depth = 26,
    svdf = 27,
    tanh = 28,
    custom = 32,
    pad = 34,
    gather = 36,
    batch_to_space_nd = 37,
    space_to_batch_nd = 38,
    transpose = 39,
    mean = 40,
    sub = 41,
    div = 42,
    squeeze = 43,
    unidirectional_sequence_lstm = 44,
    strided_slice = 45,
    exp = 47,
    topk_v2 = 48,
    split = 49,
    log_softmax = 50,
    cast = 53,
    prelu = 54,
    maximum = 55,
    arg_max = 56,
    minimum = 57,
    less = 58,
    neg = 59,
    padv2 = 60,
    greater = 61,
    greater_equal = 62,
    less_equal = 63,
    select = 64,
    slice = 65,
    sin = 66,
    transpose_conv = 67,
    tile = 69,
    expand_dims = 70,
    equal = 71,
    not_equal = 72,
    log = 73,
    sum = 74,
    sqrt = 75,
    rsqrt = 76,
    shape = 77,
    pow = 78,
    arg_min = 79,
    reduce_max = 82,
    pack = 83,
    logical_or = 84,
    logical_and = 86,
    logical_not = 87,
    unpack = 88,
    reduce_min = 89,
    floor_div = 90,
    square = 92,
    floor_mod = 95,
    resize_nearest_neighbor = 97,
    leaky_relu = 98,
    squared_difference = 99,
    mirror_pad = 100,
    abs = 101,
    split_v = 102,
    ceil = 104,
    gather_nd = 107,
    cos = 108,
    elu = 111,
    quantize = 114,
    round = 116,
    hard_swish = 117,
    select_v2 = 123,
    batch_matmul = 126,
    gelu = 150,
};

/// "CONV_2D" for 3, and so on for every operator TFLite had numbered by 2024; "BUILTIN_<n>" beyond.
[[nodiscard]] std::string builtin_name(Op op);

/// The operator codes of networks that find objects and poses.
inline constexpr std::string_view detection_postprocess_op = "TFLite_Detection_PostProcess";
inline constexpr std::string_view posenet_decoder_op = "PosenetDecoderOp";

struct OperatorCode {
    Op builtin = Op::custom;
    std::string custom;  ///< custom_code of the file; names the operator when builtin is Op::custom
    std::int32_t version = 1;

    /// The custom name, or builtin_name().
    [[nodiscard]] std::string name() const;
    friend bool operator==(const OperatorCode&, const OperatorCode&) = default;
};

// Options as in the schema, with the schema's defaults. Window, stride and dilation are in elements
// of the input's height and width.

enum class Padding : std::uint8_t { same = 0, valid = 1 };
enum class Activation : std::uint8_t {
    none = 0,
    relu = 1,
    relu_n1_to_1 = 2,
    relu6 = 3,
    tanh = 4,
    sign_bit = 5,
};

struct Conv2dOptions {
    Padding padding = Padding::same;
    std::int32_t stride_h = 0, stride_w = 0;
    std::int32_t dilation_h = 1, dilation_w = 1;
    Activation activation = Activation::none;
    ElementType quantized_bias_type = ElementType::float32;
    friend bool operator==(const Conv2dOptions&, const Conv2dOptions&) = default;
};

struct DepthwiseConv2dOptions {
    Padding padding = Padding::same;
    std::int32_t stride_h = 0, stride_w = 0;
    std::int32_t dilation_h = 1, dilation_w = 1;
    std::int32_t depth_multiplier = 0;
    Activation activation = Activation::none;
    friend bool operator==(const DepthwiseConv2dOptions&, const DepthwiseConv2dOptions&) = default;
};

struct Pool2dOptions {
    Padding padding = Padding::same;
    std::int32_t stride_h = 0, stride_w = 0;
    std::int32_t filter_h = 0, filter_w = 0;
    Activation activation = Activation::none;
    friend bool operator==(const Pool2dOptions&, const Pool2dOptions&) = default;
};

struct TransposeConvOptions {
    Padding padding = Padding::same;
    std::int32_t stride_h = 0, stride_w = 0;
    Activation activation = Activation::none;
    ElementType quantized_bias_type = ElementType::float32;
    friend bool operator==(const TransposeConvOptions&, const TransposeConvOptions&) = default;
};

struct FullyConnectedOptions {
    Activation activation = Activation::none;
    std::int8_t weights_format = 0;  ///< 0 default; 1 SHUFFLED4x16INT8
    bool keep_num_dims = false;
    bool asymmetric_quantize_inputs = false;
    ElementType quantized_bias_type = ElementType::float32;
    friend bool operator==(const FullyConnectedOptions&, const FullyConnectedOptions&) = default;
};

struct AddOptions {
    Activation activation = Activation::none;
    bool pot_scale_int16 = true;
    friend bool operator==(const AddOptions&, const AddOptions&) = default;
};
struct SubOptions {
    Activation activation = Activation::none;
    bool pot_scale_int16 = true;
    friend bool operator==(const SubOptions&, const SubOptions&) = default;
};
struct MulOptions {
    Activation activation = Activation::none;
    friend bool operator==(const MulOptions&, const MulOptions&) = default;
};
struct DivOptions {
    Activation activation = Activation::none;
    friend bool operator==(const DivOptions&, const DivOptions&) = default;
};
struct ConcatenationOptions {
    std::int32_t axis = 0;
    Activation activation = Activation::none;
    friend bool operator==(const ConcatenationOptions&, const ConcatenationOptions&) = default;
};
struct SoftmaxOptions {
    float beta = 0;
    friend bool operator==(const SoftmaxOptions&, const SoftmaxOptions&) = default;
};
struct ReshapeOptions {
    std::vector<std::int32_t> new_shape;
    friend bool operator==(const ReshapeOptions&, const ReshapeOptions&) = default;
};
struct SqueezeOptions {
    std::vector<std::int32_t> squeeze_dims;
    friend bool operator==(const SqueezeOptions&, const SqueezeOptions&) = default;
};
struct ResizeBilinearOptions {
    bool align_corners = false;
    bool half_pixel_centers = false;
    std::int32_t old_height = 0;  ///< new_height of files before 2018; an input tensor replaced it
    std::int32_t old_width = 0;
    friend bool operator==(const ResizeBilinearOptions&, const ResizeBilinearOptions&) = default;
};
struct ResizeNearestNeighborOptions {
    bool align_corners = false;
    bool half_pixel_centers = false;
    friend bool operator==(const ResizeNearestNeighborOptions&,
                           const ResizeNearestNeighborOptions&) = default;
};
/// Reducers: MEAN, SUM, REDUCE_MAX, ...
struct ReducerOptions {
    bool keep_dims = false;
    friend bool operator==(const ReducerOptions&, const ReducerOptions&) = default;
};
/// Bit i of a mask belongs to dimension i.
struct StridedSliceOptions {
    std::int32_t begin_mask = 0;
    std::int32_t end_mask = 0;
    std::int32_t ellipsis_mask = 0;
    std::int32_t new_axis_mask = 0;
    std::int32_t shrink_axis_mask = 0;
    bool offset = false;  ///< the end tensor counts from the begin tensor
    friend bool operator==(const StridedSliceOptions&, const StridedSliceOptions&) = default;
};
struct SplitVOptions {
    std::int32_t num_splits = 0;
    friend bool operator==(const SplitVOptions&, const SplitVOptions&) = default;
};
struct SplitOptions {
    std::int32_t num_splits = 0;
    friend bool operator==(const SplitOptions&, const SplitOptions&) = default;
};
/// Absent types in the file are float32 (the schema's default, number 0).
struct CastOptions {
    ElementType in_type = ElementType::float32;
    ElementType out_type = ElementType::float32;
    friend bool operator==(const CastOptions&, const CastOptions&) = default;
};
struct ArgMaxOptions {
    ElementType output_type = ElementType::float32;
    friend bool operator==(const ArgMaxOptions&, const ArgMaxOptions&) = default;
};
struct ArgMinOptions {
    ElementType output_type = ElementType::float32;
    friend bool operator==(const ArgMinOptions&, const ArgMinOptions&) = default;
};
struct PackOptions {
    std::int32_t values_count = 0;
    std::int32_t axis = 0;
    friend bool operator==(const PackOptions&, const PackOptions&) = default;
};
struct UnpackOptions {
    std::int32_t num = 0;
    std::int32_t axis = 0;
    friend bool operator==(const UnpackOptions&, const UnpackOptions&) = default;
};
struct ShapeOptions {
    ElementType out_type = ElementType::float32;
    friend bool operator==(const ShapeOptions&, const ShapeOptions&) = default;
};
/// Pixels of a block's side.
struct SpaceToDepthOptions {
    std::int32_t block_size = 0;
    friend bool operator==(const SpaceToDepthOptions&, const SpaceToDepthOptions&) = default;
};
struct DepthToSpaceOptions {
    std::int32_t block_size = 0;
    friend bool operator==(const DepthToSpaceOptions&, const DepthToSpaceOptions&) = default;
};
struct LeakyReluOptions {
    float alpha = 0;  ///< factor of negative values
    friend bool operator==(const LeakyReluOptions&, const LeakyReluOptions&) = default;
};
/// Whether the normal distribution is approximated by tanh.
struct GeluOptions {
    bool approximate = false;
    friend bool operator==(const GeluOptions&, const GeluOptions&) = default;
};
/// batch_dims: leading dimensions that values and indices have in common.
struct GatherOptions {
    std::int32_t axis = 0;
    std::int32_t batch_dims = 0;
    friend bool operator==(const GatherOptions&, const GatherOptions&) = default;
};
/// Whether the outermost elements are repeated in the border.
enum class Mirror : std::uint8_t { reflect = 0, symmetric = 1 };
struct MirrorPadOptions {
    Mirror mode = Mirror::reflect;
    friend bool operator==(const MirrorPadOptions&, const MirrorPadOptions&) = default;
};
struct L2NormOptions {
    Activation activation = Activation::none;
    friend bool operator==(const L2NormOptions&, const L2NormOptions&) = default;
};
/// adj_x, adj_y: the last two dimensions of that input are exchanged.
struct BatchMatMulOptions {
    bool adj_x = false;
    bool adj_y = false;
    bool asymmetric_quantize_inputs = false;
    friend bool operator==(const BatchMatMulOptions&, const BatchMatMulOptions&) = default;
};
struct SvdfOptions {
    std::int32_t rank = 0;
    Activation activation = Activation::none;
    bool asymmetric_quantize_inputs = false;
    friend bool operator==(const SvdfOptions&, const SvdfOptions&) = default;
};
struct UnidirectionalSequenceLstmOptions {
    Activation activation = Activation::none;
    float cell_clip = 0;
    float proj_clip = 0;
    bool time_major = false;
    bool asymmetric_quantize_inputs = false;
    bool diagonal_recurrent_tensors = false;
    friend bool operator==(const UnidirectionalSequenceLstmOptions&,
                           const UnidirectionalSequenceLstmOptions&) = default;
};

/// A builtin operator's options of a type that Reef does not look inside. `type_name` is the
/// table's name in the schema, `union_type` its number in BuiltinOptions. A number that the schema
/// does not have leaves name and bytes empty, and Model::not_preserved says so.
struct OpaqueOptions {
    std::uint8_t union_type = 0;
    std::string type_name;
    std::vector<std::byte> bytes;  ///< a FlatBuffer of its own with that table as its root
    friend bool operator==(const OpaqueOptions&, const OpaqueOptions&) = default;
};

using OptionsAlternatives =
    std::variant<std::monostate, Conv2dOptions, DepthwiseConv2dOptions, Pool2dOptions,
                 TransposeConvOptions, FullyConnectedOptions, AddOptions, SubOptions, MulOptions,
                 DivOptions, ConcatenationOptions, SoftmaxOptions, ReshapeOptions, SqueezeOptions,
                 ResizeBilinearOptions, ResizeNearestNeighborOptions, ReducerOptions,
                 StridedSliceOptions, SplitOptions, CastOptions, ArgMaxOptions, ArgMinOptions,
                 PackOptions, UnpackOptions, SplitVOptions, ShapeOptions, SpaceToDepthOptions,
                 DepthToSpaceOptions, LeakyReluOptions, GeluOptions, GatherOptions,
                 MirrorPadOptions, L2NormOptions, BatchMatMulOptions, SvdfOptions,
                 UnidirectionalSequenceLstmOptions, OpaqueOptions>;

/// monostate: the file gives none. The default constructed option is then the schema's default.
/// A type of its own, because to copy, move, destroy and compare is a function for each
/// alternative, which every file with an operator would compile again.
class Options : public OptionsAlternatives {
  public:
    using OptionsAlternatives::OptionsAlternatives;
    Options() noexcept;
    Options(const Options&);
    Options(Options&&) noexcept;
    Options& operator=(const Options&);
    Options& operator=(Options&&) noexcept;
    ~Options();
    friend bool operator==(const Options&, const Options&);
};

}  // namespace reef::model

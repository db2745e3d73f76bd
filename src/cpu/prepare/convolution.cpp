#include "cpu/prepare/convolution.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace reef::cpu {
namespace {

constexpr std::size_t weights_index = 1;

/// Where the other inputs are: TRANSPOSE_CONV has the output's shape in front.
struct Places {
    std::size_t input = 0;
    std::size_t bias = 2;
};

/// `rules`: null for TFLite's, which know float32.
Status check_types(const OperatorView& op, const ConvolutionRules* rules, Places places = {}) {
    const model::Tensor& input = op.input(places.input);
    const model::Tensor& weights = op.input(weights_index);
    if (rules != nullptr || input.type != ElementType::float32)
        REEF_CHECK(expect_type(input, "input", {ElementType::uint8, ElementType::int8}));
    const bool hybrid = rules == nullptr && places.input == Places{}.input && is_hybrid(op);
    if (!hybrid) REEF_CHECK(expect_type(weights, "weights", {input.type}));
    REEF_CHECK(expect_type(op.output(0), "output", {input.type}));
    if (op.constant(weights_index).empty())
        return fail(Cause::unsupported, fmt::format("weights '{}' are computed at run time "
                                                    "or empty; constant ones are needed",
                                                    weights.name));
    return {};
}

Status read_weights(const OperatorView& op, Convolution& c) {
    const model::Tensor& weights = op.input(weights_index);
    c.type = weights.type;
    c.weights = op.shared_constant(weights_index);
    const auto bytes = weights.byte_count();
    if (!bytes || static_cast<std::size_t>(*bytes) != c.weights.size())
        return fail(Cause::bad_input,
                    fmt::format("weights '{}' hold {} bytes, not those of {}", weights.name,
                                c.weights.size(), model::shape_text(weights.shape)));
    return {};
}

/// Nothing when the operator has none.
Result<Bytes> bias_bytes(const OperatorView& op, std::size_t bias_index, ElementType type,
                         std::size_t channels) {
    if (!op.has_input(bias_index)) return Bytes{};
    const model::Tensor& bias = op.input(bias_index);
    REEF_CHECK(expect_type(bias, "bias", {type}));
    const Bytes bytes = op.constant(bias_index);
    if (bytes.empty())
        return fail(
            Cause::unsupported,
            fmt::format("bias '{}' is computed at run time; a constant one is needed", bias.name));
    constexpr std::size_t width = 4;
    if (bytes.size() != channels * width)
        return fail(Cause::bad_input, fmt::format("bias '{}' has {} elements for {} channels",
                                                  bias.name, bytes.size() / width, channels));
    return bytes;
}

template <typename T>
Status read_bias(const OperatorView& op, std::size_t bias_index, ElementType type,
                 std::int64_t channels, std::vector<T>& bias) {
    static_assert(sizeof(T) == 4);
    bias.assign(static_cast<std::size_t>(channels), 0);
    const Bytes bytes = REEF_TRY(bias_bytes(op, bias_index, type, bias.size()));
    if (!bytes.empty()) std::memcpy(bias.data(), bytes.data(), bytes.size());
    return {};
}

/// The weights' scales: one, or one per output channel (int8 only).
Result<std::vector<float>> weight_scales(const OperatorView& op, const Convolution& c,
                                         std::int32_t channel_axis) {
    const model::Tensor& weights = op.input(weights_index);
    if (!weights.quantization || weights.quantization->scale.size() <= 1) {
        return std::vector<float>{REEF_TRY(per_tensor_parameters(weights)).scale};
    }
    const model::Quantization& q = *weights.quantization;
    if (c.type != ElementType::int8)
        return fail(Cause::unsupported,
                    fmt::format("{} weights with a scale per channel", name_of(c.type)));
    if (q.axis != channel_axis || q.scale.size() != static_cast<std::size_t>(c.out_channels))
        return fail(
            Cause::bad_input,
            fmt::format("weights '{}' have {} scales along axis {}; {} along axis {} are "
                        "needed",
                        weights.name, q.scale.size(), q.axis, c.out_channels, channel_axis));
    for (const std::int64_t zero : q.zero_point)
        if (zero != 0)
            return fail(Cause::unsupported,
                        fmt::format("weights '{}' with a scale per channel and zero point {}",
                                    weights.name, zero));
    for (const float scale : q.scale)
        if (!std::isfinite(scale) || scale <= 0)
            return fail(Cause::bad_input,
                        fmt::format("weights '{}' have scale {}, not a positive number",
                                    weights.name, scale));
    return q.scale;
}

/// Where TFLite multiplies the scales of input and weights: its per-channel path works in double,
/// the per-tensor path (uint8 convolutions, FULLY_CONNECTED) rounds the product to float first.
enum class ScaleProduct : std::uint8_t { in_double, in_float };

ScaleProduct convolution_product(const Convolution& c) {
    return c.type == ElementType::int8 ? ScaleProduct::in_double : ScaleProduct::in_float;
}

/// What of the operator's options and place decides its rescaling.
struct RescalingRules {
    const ConvolutionRules* other;  ///< null: TFLite's
    std::int32_t channel_axis;      ///< of the weights
    ScaleProduct product;
    model::Activation activation;
    Places places = {};
};

Status read_fixed_point(const OperatorView& op, const RescalingRules& rules,
                        const std::vector<float>& scales, Convolution& c) {
    const AffineParameters input = REEF_TRY(per_tensor_parameters(op.input(rules.places.input)));
    const AffineParameters output = REEF_TRY(per_tensor_parameters(op.output(0)));
    c.clamp = REEF_TRY(quantized_activation_range(rules.activation, op.output(0)));
    if (c.clamp.min > c.clamp.max)
        return fail(Cause::bad_input, "the fused activation lets no value through");
    c.multipliers.reserve(static_cast<std::size_t>(c.out_channels));
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.out_channels); ++i) {
        const float weight = scales.size() == 1 ? scales[0] : scales[i];
        const double both = rules.product == ScaleProduct::in_float
                                ? static_cast<double>(input.scale * weight)
                                : static_cast<double>(input.scale) * static_cast<double>(weight);
        c.multipliers.push_back(
            REEF_TRY(checked_multiplier(both / static_cast<double>(output.scale))));
    }
    return {};
}

Status read_floats(const OperatorView& op, const RescalingRules& rules, Convolution& c) {
    FloatSums floats;
    floats.clamp = REEF_TRY(float_activation_range(rules.activation));
    REEF_CHECK(read_bias(op, rules.places.bias, ElementType::float32, c.out_channels, floats.bias));
    c.floats = std::move(floats);
    return {};
}

Result<HybridConvolution> hybrid_of(const OperatorView& op, const RescalingRules& rules,
                                    Convolution c) {
    HybridConvolution hybrid;
    constexpr std::int64_t most_products = (std::int64_t{1} << 31U) / (255 * 128);
    if (c.h.taps * c.w.taps * c.depth >= most_products)
        return fail(Cause::unsupported,
                    "float32 on int8 weights: so many products may leave 32 bits");
    hybrid.weight_scales = REEF_TRY(weight_scales(op, c, rules.channel_axis));
    for (const std::int64_t zero : op.input(weights_index).quantization->zero_point)
        if (zero != 0)
            return fail(Cause::unsupported,
                        fmt::format("float32 on int8 weights with zero point {}", zero));
    // Several scales go with an asymmetric input, one scale, be it the only channel's, with a
    // symmetric one.
    hybrid.asymmetric = hybrid.weight_scales.size() > 1;
    REEF_CHECK(read_floats(op, rules, c));
    hybrid.convolution = std::move(c);
    return hybrid;
}

Status read_quantization(const OperatorView& op, const RescalingRules& rules, Convolution& c) {
    if (c.type == ElementType::float32) return read_floats(op, rules, c);
    c.input_zero = REEF_TRY(per_tensor_parameters(op.input(rules.places.input))).zero_point;
    c.output_zero = REEF_TRY(per_tensor_parameters(op.output(0))).zero_point;
    const std::vector<float> scales = REEF_TRY(weight_scales(op, c, rules.channel_axis));
    if (scales.size() == 1 && op.input(weights_index).quantization->scale.size() == 1)
        c.weight_zero = REEF_TRY(per_tensor_parameters(op.input(weights_index))).zero_point;
    REEF_CHECK(read_bias(op, rules.places.bias, ElementType::int32, c.out_channels, c.bias));
    if (rules.other == nullptr) return read_fixed_point(op, rules, scales, c);
    c.float_stage = REEF_TRY(rules.other->stage(op, rules.activation, scales, c));
    return {};
}

/// TFLite's output size and padding of one axis (ComputePaddingHeightWidth): what SAME adds is
/// split with the odd row at the end.
Result<WindowAxis> window_axis(std::int64_t in, std::int64_t taps, std::int64_t stride,
                               std::int64_t dilation, model::Padding padding) {
    if (stride < 1 || dilation < 1)
        return fail(Cause::bad_input,
                    fmt::format("stride {} and dilation {} must be at least 1", stride, dilation));
    if (taps < 1) return fail(Cause::bad_input, "the filter is empty");
    const std::int64_t reach = (taps - 1) * dilation + 1;
    WindowAxis axis{
        .in = in, .out = 0, .taps = taps, .stride = stride, .dilation = dilation, .pad = 0};
    if (padding == model::Padding::same)
        axis.out = (in + stride - 1) / stride;
    else if (in >= reach)
        axis.out = (in - reach) / stride + 1;
    if (axis.out > 0)
        axis.pad = std::max<std::int64_t>(0, ((axis.out - 1) * stride + reach - in) / 2);
    return axis;
}

Status expect_rank_4(const model::Tensor& tensor, const char* what) {
    if (tensor.shape.size() != 4)
        return fail(Cause::bad_input,
                    fmt::format("{} '{}' has shape {}; four dimensions are "
                                "needed",
                                what, tensor.name, model::shape_text(tensor.shape)));
    return {};
}

Status check_spatial_inputs(const OperatorView& op, const ConvolutionRules* rules) {
    REEF_CHECK(op.expect_counts(2, 3, 1));
    REEF_CHECK(check_types(op, rules));
    REEF_CHECK(expect_rank_4(op.input(Places{}.input), "input"));
    return expect_rank_4(op.input(weights_index), "filter");
}

/// CONV_2D and DEPTHWISE_CONV_2D alike: batch, axes and the output's shape.
template <typename Options>
Status read_geometry(const OperatorView& op, const Options& options, Convolution& c) {
    const std::vector<std::int32_t>& in = op.input(Places{}.input).shape;
    const std::vector<std::int32_t>& filter = op.input(weights_index).shape;
    c.batch = in[0];
    c.in_channels = in[3];
    if (c.in_channels < 1 || c.out_channels < 1)
        return fail(Cause::bad_input, "the input or the filter has no channels");
    c.h = REEF_TRY(
        window_axis(in[1], filter[1], options.stride_h, options.dilation_h, options.padding));
    c.w = REEF_TRY(
        window_axis(in[2], filter[2], options.stride_w, options.dilation_w, options.padding));
    return expect_shape(
        op.output(0), "output",
        {in[0], static_cast<std::int32_t>(c.h.out), static_cast<std::int32_t>(c.w.out),
         static_cast<std::int32_t>(c.out_channels)});
}

/// TFLite's convolutions take int8 weights as symmetric, whatever the file says.
Status expect_symmetric_int8(const Convolution& c) {
    if (c.type == ElementType::int8 && c.weight_zero != 0)
        return fail(Cause::unsupported,
                    fmt::format("int8 weights with zero point {}; it must be 0", c.weight_zero));
    return {};
}

Status check_by(const ConvolutionRules* rules, const Convolution& c) {
    return rules != nullptr && rules->check != nullptr ? rules->check(c) : Status{};
}

Result<Convolution> conv_2d_of(const OperatorView& op, const ConvolutionRules* rules,
                               const model::Conv2dOptions& options) {
    REEF_CHECK(check_spatial_inputs(op, rules));
    Convolution c;
    c.out_channels = op.input(weights_index).shape[0];
    c.depth = op.input(weights_index).shape[3];
    REEF_CHECK(read_weights(op, c));
    REEF_CHECK(read_geometry(op, options, c));
    if (c.depth < 1 || c.in_channels % c.depth != 0 || c.out_channels % c.groups() != 0)
        return fail(Cause::bad_input,
                    fmt::format("{} input channels do not fit a filter of {}", c.in_channels,
                                model::shape_text(op.input(weights_index).shape)));
    REEF_CHECK(check_by(rules, c));
    return c;
}

Result<Convolution> depthwise_conv_2d_of(const OperatorView& op, const ConvolutionRules* rules,
                                         const model::DepthwiseConv2dOptions& options) {
    REEF_CHECK(check_spatial_inputs(op, rules));
    const std::vector<std::int32_t>& filter = op.input(weights_index).shape;
    Convolution c;
    c.out_channels = filter[3];
    c.ties = Ties::away_from_zero;
    REEF_CHECK(read_weights(op, c));
    REEF_CHECK(read_geometry(op, options, c));
    // The file's depth_multiplier is redundant: TFLite, too, takes it from the shapes.
    if (filter[0] != 1 || c.out_channels % c.in_channels != 0)
        return fail(Cause::bad_input,
                    fmt::format("{} input channels do not fit a depthwise filter of {}",
                                c.in_channels, model::shape_text(filter)));
    c.depth_multiplier = c.out_channels / c.in_channels;
    REEF_CHECK(check_by(rules, c));
    return c;
}

Result<Convolution> fully_connected_of(const OperatorView& op, const ConvolutionRules* rules,
                                       const model::FullyConnectedOptions& options) {
    REEF_CHECK(op.expect_counts(2, 3, 1));
    REEF_CHECK(check_types(op, rules));
    if (options.weights_format != 0)
        return fail(Cause::unsupported,
                    fmt::format("weights format {} (shuffled)", options.weights_format));
    const model::Tensor& input = op.input(Places{}.input);
    const model::Tensor& weights = op.input(weights_index);
    if (weights.shape.size() != 2 || weights.shape[0] < 1 || weights.shape[1] < 1)
        return fail(Cause::bad_input, fmt::format("weights '{}' have shape {}; two dimensions are "
                                                  "needed",
                                                  weights.name, model::shape_text(weights.shape)));
    Convolution c;
    c.out_channels = weights.shape[0];
    c.depth = c.in_channels = weights.shape[1];
    REEF_CHECK(read_weights(op, c));
    if (input.element_count() % c.depth != 0)
        return fail(Cause::bad_input, fmt::format("an input of {} does not divide into rows of {}",
                                                  model::shape_text(input.shape), c.depth));
    c.batch = input.element_count() / c.depth;
    if (c.batch > std::numeric_limits<std::int32_t>::max())
        return fail(Cause::bad_input,
                    fmt::format("an input of {} makes {} rows, which overflow 32 bits",
                                model::shape_text(input.shape), c.batch));
    std::vector<std::int32_t> computed{static_cast<std::int32_t>(c.batch), weights.shape[0]};
    if (options.keep_num_dims) {
        if (input.shape.empty() || input.shape.back() != weights.shape[1])
            return fail(Cause::bad_input,
                        fmt::format("an input of {} keeps its dimensions only with rows of {}",
                                    model::shape_text(input.shape), c.depth));
        computed = input.shape;
        computed.back() = weights.shape[0];
    }
    REEF_CHECK(expect_shape(op.output(0), "output", computed));
    return c;
}

}  // namespace

Result<Convolution> read_conv_2d(const OperatorView& op, const ConvolutionRules* rules) {
    const auto options = REEF_TRY(op.options<model::Conv2dOptions>());
    Convolution c = REEF_TRY(conv_2d_of(op, rules, options));
    REEF_CHECK(read_quantization(op, {rules, 0, convolution_product(c), options.activation}, c));
    REEF_CHECK(expect_symmetric_int8(c));
    return c;
}

Result<Convolution> read_depthwise_conv_2d(const OperatorView& op, const ConvolutionRules* rules) {
    const auto options = REEF_TRY(op.options<model::DepthwiseConv2dOptions>());
    Convolution c = REEF_TRY(depthwise_conv_2d_of(op, rules, options));
    REEF_CHECK(read_quantization(op, {rules, 3, convolution_product(c), options.activation}, c));
    REEF_CHECK(expect_symmetric_int8(c));
    return c;
}

Result<Convolution> read_fully_connected(const OperatorView& op, const ConvolutionRules* rules) {
    const auto options = REEF_TRY(op.options<model::FullyConnectedOptions>());
    Convolution c = REEF_TRY(fully_connected_of(op, rules, options));
    const model::Tensor& weights = op.input(weights_index);
    const bool per_channel = weights.quantization && weights.quantization->per_channel();
    const ScaleProduct product = per_channel ? ScaleProduct::in_double : ScaleProduct::in_float;
    REEF_CHECK(read_quantization(op, {rules, 0, product, options.activation}, c));
    return c;
}

bool is_hybrid(const OperatorView& op) {
    return op.has_input(0) && op.has_input(weights_index) &&
           op.input(0).type == ElementType::float32 &&
           op.input(weights_index).type == ElementType::int8;
}

Result<HybridConvolution> read_hybrid_conv_2d(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::Conv2dOptions>());
    Convolution c = REEF_TRY(conv_2d_of(op, nullptr, options));
    if (c.groups() != 1)
        return fail(Cause::unsupported, "float32 on int8 weights in groups of channels");
    return hybrid_of(op, {nullptr, 0, {}, options.activation}, std::move(c));
}

Result<HybridConvolution> read_hybrid_depthwise_conv_2d(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::DepthwiseConv2dOptions>());
    Convolution c = REEF_TRY(depthwise_conv_2d_of(op, nullptr, options));
    HybridConvolution hybrid =
        REEF_TRY(hybrid_of(op, {nullptr, 3, {}, options.activation}, std::move(c)));
    if (hybrid.weight_scales.size() != static_cast<std::size_t>(hybrid.convolution.out_channels))
        return fail(Cause::unsupported,
                    "float32 on int8 weights with one scale; a depthwise filter needs one per "
                    "channel");
    hybrid.depthwise = true;
    hybrid.asymmetric = true;
    return hybrid;
}

Result<HybridConvolution> read_hybrid_fully_connected(const OperatorView& op) {
    const auto options = REEF_TRY(op.options<model::FullyConnectedOptions>());
    Convolution c = REEF_TRY(fully_connected_of(op, nullptr, options));
    HybridConvolution hybrid =
        REEF_TRY(hybrid_of(op, {nullptr, 0, {}, options.activation}, std::move(c)));
    if (op.input(weights_index).quantization->per_channel())
        return fail(Cause::unsupported,
                    "float32 on int8 weights with a scale per channel; TFLite 2.9 reads one");
    hybrid.asymmetric = options.asymmetric_quantize_inputs;
    return hybrid;
}

Result<Convolution> read_transpose_conv(const OperatorView& op, const ConvolutionRules* rules) {
    constexpr Places places{.input = 2, .bias = 3};
    REEF_CHECK(op.expect_counts(3, 4, 1));
    const auto options = REEF_TRY(op.options<model::TransposeConvOptions>());
    if (options.activation != model::Activation::none)
        return fail(Cause::unsupported, "a fused activation");
    REEF_CHECK(check_types(op, rules, places));
    const model::Tensor& input = op.input(places.input);
    REEF_CHECK(expect_rank_4(input, "input"));
    REEF_CHECK(expect_rank_4(op.input(weights_index), "filter"));
    const auto shape = REEF_TRY(constant_int32(op, 0, "the output's shape"));
    REEF_CHECK(expect_shape(op.output(0), "output", shape));
    REEF_CHECK(expect_rank_4(op.output(0), "output"));
    const std::vector<std::int32_t>& filter = op.input(weights_index).shape;
    Convolution c;
    c.ties = Ties::away_from_zero;
    c.batch = input.shape[0];
    c.in_channels = c.depth = filter[3];
    c.out_channels = filter[0];
    c.h = REEF_TRY(window_axis(shape[1], filter[1], options.stride_h, 1, options.padding));
    c.w = REEF_TRY(window_axis(shape[2], filter[2], options.stride_w, 1, options.padding));
    const std::vector<std::int32_t> computed{shape[0], static_cast<std::int32_t>(c.h.out),
                                             static_cast<std::int32_t>(c.w.out), filter[3]};
    if (input.shape != computed || shape[3] != filter[0] || c.out_channels < 1 || c.depth < 1)
        return fail(Cause::bad_input,
                    fmt::format("an input of {} and a filter of {} do not give {}",
                                model::shape_text(input.shape), model::shape_text(filter),
                                model::shape_text(shape)));
    REEF_CHECK(read_weights(op, c));
    REEF_CHECK(read_quantization(
        op, {rules, 0, convolution_product(c), model::Activation::none, places}, c));
    REEF_CHECK(expect_symmetric_int8(c));
    // The other convolutions limit a sum that is infinite to the largest number.
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (c.floats) c.floats->clamp = {-infinity, infinity};
    return c;
}

}  // namespace reef::cpu

#include "cpu/convolution.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "cpu/kernels.h"

namespace reef::cpu {
namespace {

constexpr std::size_t input_index = 0;
constexpr std::size_t weights_index = 1;
constexpr std::size_t bias_index = 2;

Status check_types(const OperatorView& op) {
    const model::Tensor& input = op.input(input_index);
    const model::Tensor& weights = op.input(weights_index);
    REEF_CHECK(expect_type(input, "input", {ElementType::uint8, ElementType::int8}));
    REEF_CHECK(expect_type(weights, "weights", {input.type}));
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

Status read_bias(const OperatorView& op, Convolution& c) {
    const auto channels = static_cast<std::size_t>(c.out_channels);
    c.bias.assign(channels, 0);
    if (!op.has_input(bias_index)) return {};
    const model::Tensor& bias = op.input(bias_index);
    REEF_CHECK(expect_type(bias, "bias", {ElementType::int32}));
    const Bytes bytes = op.constant(bias_index);
    if (bytes.empty())
        return fail(
            Cause::unsupported,
            fmt::format("bias '{}' is computed at run time; a constant one is needed", bias.name));
    if (bytes.size() != channels * sizeof(std::int32_t))
        return fail(Cause::bad_input,
                    fmt::format("bias '{}' has {} elements for {} channels", bias.name,
                                bytes.size() / sizeof(std::int32_t), channels));
    std::memcpy(c.bias.data(), bytes.data(), bytes.size());
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
    Arithmetic arithmetic;
    std::int32_t channel_axis;  ///< of the weights
    ScaleProduct product;
    model::Activation activation;
};

Status read_fixed_point(const OperatorView& op, const RescalingRules& rules,
                        const std::vector<float>& scales, Convolution& c) {
    const AffineParameters input = REEF_TRY(per_tensor_parameters(op.input(input_index)));
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

Status read_float_stage(const OperatorView& op, const RescalingRules& rules,
                        const std::vector<float>& scales, Convolution& c) {
    const AffineParameters input = REEF_TRY(per_tensor_parameters(op.input(input_index)));
    const AffineParameters output = REEF_TRY(per_tensor_parameters(op.output(0)));
    FloatStage stage;
    stage.requantise = REEF_TRY(float_requantisation(rules.activation, op.output(0)));
    stage.scales.reserve(static_cast<std::size_t>(c.out_channels));
    for (std::size_t i = 0; i < static_cast<std::size_t>(c.out_channels); ++i) {
        const float weight = scales.size() == 1 ? scales[0] : scales[i];
        stage.scales.push_back(REEF_TRY(float_scale(input.scale * weight, output)));
    }
    c.float_stage = std::move(stage);
    return {};
}

Status read_quantization(const OperatorView& op, const RescalingRules& rules, Convolution& c) {
    c.input_zero = REEF_TRY(per_tensor_parameters(op.input(input_index))).zero_point;
    c.output_zero = REEF_TRY(per_tensor_parameters(op.output(0))).zero_point;
    const std::vector<float> scales = REEF_TRY(weight_scales(op, c, rules.channel_axis));
    if (scales.size() == 1 && op.input(weights_index).quantization->scale.size() == 1)
        c.weight_zero = REEF_TRY(per_tensor_parameters(op.input(weights_index))).zero_point;
    REEF_CHECK(read_bias(op, c));
    if (rules.arithmetic == Arithmetic::edgetpu) return read_float_stage(op, rules, scales, c);
    return read_fixed_point(op, rules, scales, c);
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

Status check_spatial_inputs(const OperatorView& op) {
    REEF_CHECK(op.expect_counts(2, 3, 1));
    REEF_CHECK(check_types(op));
    REEF_CHECK(expect_rank_4(op.input(input_index), "input"));
    return expect_rank_4(op.input(weights_index), "filter");
}

/// CONV_2D and DEPTHWISE_CONV_2D alike: batch, axes and the output's shape.
template <typename Options>
Status read_geometry(const OperatorView& op, const Options& options, Convolution& c) {
    const std::vector<std::int32_t>& in = op.input(input_index).shape;
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

}  // namespace

Result<Convolution> read_conv_2d(const OperatorView& op, Arithmetic arithmetic) {
    REEF_CHECK(check_spatial_inputs(op));
    const auto options = REEF_TRY(op.options<model::Conv2dOptions>());
    Convolution c;
    c.out_channels = op.input(weights_index).shape[0];
    c.depth = op.input(weights_index).shape[3];
    REEF_CHECK(read_weights(op, c));
    REEF_CHECK(read_geometry(op, options, c));
    if (c.depth < 1 || c.in_channels % c.depth != 0 || c.out_channels % c.groups() != 0)
        return fail(Cause::bad_input,
                    fmt::format("{} input channels do not fit a filter of {}", c.in_channels,
                                model::shape_text(op.input(weights_index).shape)));
    if (arithmetic == Arithmetic::edgetpu && c.groups() != 1)
        return unknown_on_edgetpu("a convolution in groups");
    REEF_CHECK(
        read_quantization(op, {arithmetic, 0, convolution_product(c), options.activation}, c));
    REEF_CHECK(expect_symmetric_int8(c));
    return c;
}

Result<Convolution> read_depthwise_conv_2d(const OperatorView& op, Arithmetic arithmetic) {
    REEF_CHECK(check_spatial_inputs(op));
    const auto options = REEF_TRY(op.options<model::DepthwiseConv2dOptions>());
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
    if (arithmetic == Arithmetic::edgetpu && c.depth_multiplier > 1 && c.in_channels > 1)
        return unknown_on_edgetpu(
            "several output channels per input channel of a depthwise "
            "convolution of several");
    REEF_CHECK(
        read_quantization(op, {arithmetic, 3, convolution_product(c), options.activation}, c));
    REEF_CHECK(expect_symmetric_int8(c));
    return c;
}

Result<Convolution> read_fully_connected(const OperatorView& op, Arithmetic arithmetic) {
    REEF_CHECK(op.expect_counts(2, 3, 1));
    REEF_CHECK(check_types(op));
    const auto options = REEF_TRY(op.options<model::FullyConnectedOptions>());
    if (options.weights_format != 0)
        return fail(Cause::unsupported,
                    fmt::format("weights format {} (shuffled)", options.weights_format));
    const model::Tensor& input = op.input(input_index);
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
    const bool per_channel = weights.quantization && weights.quantization->per_channel();
    const ScaleProduct product = per_channel ? ScaleProduct::in_double : ScaleProduct::in_float;
    REEF_CHECK(read_quantization(op, {arithmetic, 0, product, options.activation}, c));
    return c;
}

PreparedKernel prepare_conv_2d(const OperatorView& op, const PrepareOptions& options) {
    Convolution c = REEF_TRY(read_conv_2d(op, options.arithmetic));
    if (options.kernels == KernelSet::reference) return reference_conv_2d(std::move(c));
    return fast_conv_2d(std::move(c), options.threads);
}

PreparedKernel prepare_depthwise_conv_2d(const OperatorView& op, const PrepareOptions& options) {
    Convolution c = REEF_TRY(read_depthwise_conv_2d(op, options.arithmetic));
    if (options.kernels == KernelSet::reference) return reference_depthwise_conv_2d(std::move(c));
    return fast_depthwise_conv_2d(std::move(c), options.threads);
}

PreparedKernel prepare_fully_connected(const OperatorView& op, const PrepareOptions& options) {
    Convolution c = REEF_TRY(read_fully_connected(op, options.arithmetic));
    if (options.kernels == KernelSet::reference) return reference_fully_connected(std::move(c));
    return fast_fully_connected(std::move(c), options.threads);
}

}  // namespace reef::cpu

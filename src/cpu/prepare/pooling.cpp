#include "cpu/prepare/pooling.h"

#include <fmt/format.h>

#include <cmath>

namespace reef::cpu {
namespace {

constexpr std::int64_t largest_window = 1 << 23;

Result<PoolingAxis> check_axis(std::int32_t input, std::int32_t filter, std::int32_t stride,
                               model::Padding padding, const char* name) {
    if (filter < 1 || stride < 1 || filter > largest_window || stride > largest_window)
        return fail(Cause::bad_input,
                    fmt::format("filter {} and stride {} in {}", filter, stride, name));
    PoolingAxis axis{.input = input, .filter = filter, .stride = stride};
    if (padding == model::Padding::valid) {
        if (filter > input)
            return fail(Cause::bad_input,
                        fmt::format("a filter of {} does not fit an input of {} in {} (VALID)",
                                    filter, input, name));
        axis.output = (input - filter) / stride + 1;
        return axis;
    }
    axis.output = (input - 1) / stride + 1;
    const std::int64_t covered = static_cast<std::int64_t>(axis.output - 1) * stride + filter;
    axis.padding = static_cast<std::int32_t>(std::max<std::int64_t>(covered - input, 0) / 2);
    return axis;
}

/// TFLite's limit: pooling does not rescale.
Status expect_same_quantization(const OperatorView& op) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (in.zero_point == out.zero_point && std::abs(in.scale - out.scale) <= 1.0e-6F) return {};
    return fail(Cause::unsupported,
                fmt::format("the input's scale {} and zero point {} differ from the output's {} "
                            "and {}: pooling does not rescale",
                            in.scale, in.zero_point, out.scale, out.zero_point));
}

Result<Pooling> check_windows(const OperatorView& op, const model::Pool2dOptions& given) {
    const model::Tensor& input = op.input(0);
    if (input.shape.size() != 4)
        return fail(Cause::bad_input, fmt::format("input 0 is {}, not batch x height x width x "
                                                  "channels",
                                                  model::shape_text(input.shape)));
    if (input.element_count() == 0) return fail(Cause::bad_input, "input 0 has no elements");
    Pooling pooling;
    pooling.batches = input.shape[0];
    pooling.channels = input.shape[3];
    pooling.y = REEF_TRY(
        check_axis(input.shape[1], given.filter_h, given.stride_h, given.padding, "height"));
    pooling.x = REEF_TRY(
        check_axis(input.shape[2], given.filter_w, given.stride_w, given.padding, "width"));
    if (static_cast<std::int64_t>(given.filter_h) * given.filter_w > largest_window)
        return fail(Cause::unsupported,
                    fmt::format("a window of {}x{}, larger than {} elements", given.filter_h,
                                given.filter_w, largest_window));
    REEF_CHECK(
        expect_shape(op.output(0), "output 0",
                     {input.shape[0], pooling.y.output, pooling.x.output, pooling.channels}));
    return pooling;
}

}  // namespace

Result<Pooling> check_pooling(const OperatorView& op) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const auto given = REEF_TRY(op.options<model::Pool2dOptions>());
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0", {ElementType::uint8, ElementType::int8}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    REEF_CHECK(expect_same_quantization(op));
    Pooling pooling = REEF_TRY(check_windows(op, given));
    pooling.clamp = REEF_TRY(quantized_activation_range(given.activation, op.output(0)));
    return pooling;
}

Result<Pooling> check_float_pooling(const OperatorView& op) {
    REEF_CHECK(op.expect_counts(1, 1, 1));
    const auto given = REEF_TRY(op.options<model::Pool2dOptions>());
    REEF_CHECK(expect_type(op.input(0), "input 0", {ElementType::float32}));
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::float32}));
    Pooling pooling = REEF_TRY(check_windows(op, given));
    pooling.float_clamp = REEF_TRY(float_activation_range(given.activation));
    return pooling;
}

}  // namespace reef::cpu

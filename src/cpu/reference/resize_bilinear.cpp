// RESIZE_BILINEAR. TFLite computes uint8 and float32 in float32 and int8 in integers with 10
// fractional bits per axis. Integers are rounded to nearest.
#include "cpu/reference/resize_bilinear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

constexpr std::int32_t one = 1 << 10;

}  // namespace

/// uint8 is rounded to nearest, float32 left as it is.
template <typename T>
T mix(T upper_left, T upper_right, T lower_left, T lower_right, const FloatSample& y,
      const FloatSample& x) {
    constexpr float half = std::is_integral_v<T> ? 0.5F : 0.0F;
    const float weights[] = {(1 - y.fraction) * (1 - x.fraction), (1 - y.fraction) * x.fraction,
                             y.fraction * (1 - x.fraction), y.fraction * x.fraction};
    return static_cast<T>(static_cast<float>(upper_left) * weights[0] +
                          static_cast<float>(upper_right) * weights[1] +
                          static_cast<float>(lower_left) * weights[2] +
                          static_cast<float>(lower_right) * weights[3] + half);
}

template <typename T>
T mix(T upper_left, T upper_right, T lower_left, T lower_right, const FixedSample& y,
      const FixedSample& x) {
    const std::int64_t sum =
        static_cast<std::int64_t>(upper_left) * (one - y.fraction) * (one - x.fraction) +
        static_cast<std::int64_t>(upper_right) * (one - y.fraction) * x.fraction +
        static_cast<std::int64_t>(lower_left) * y.fraction * (one - x.fraction) +
        static_cast<std::int64_t>(lower_right) * y.fraction * x.fraction;
    constexpr std::int64_t half = std::int64_t{1} << 19;
    return static_cast<T>((sum + (sum > 0 ? half : -half)) / (half * 2));
}

namespace {

/// Keeps 1024 * length and every product of it below 2^31.
constexpr std::int32_t longest_axis = 1 << 16;

std::vector<FloatSample> float_samples(const ResizeAxis& axis) {
    const bool corners = axis.align_corners && axis.output > 1;
    const float scale =
        corners ? static_cast<float>(axis.input - 1) / static_cast<float>(axis.output - 1)
                : static_cast<float>(axis.input) / static_cast<float>(axis.output);
    std::vector<FloatSample> samples;
    for (std::int32_t i = 0; i < axis.output; ++i) {
        const auto position = static_cast<float>(i);
        const float at =
            axis.half_pixel_centers ? (position + 0.5F) * scale - 0.5F : position * scale;
        const auto lower = std::clamp(static_cast<std::int32_t>(std::floor(at)), 0, axis.input - 1);
        const auto upper = std::min(static_cast<std::int32_t>(std::ceil(at)), axis.input - 1);
        samples.push_back({lower, upper, at - static_cast<float>(lower)});
    }
    return samples;
}

std::vector<FixedSample> fixed_samples(const ResizeAxis& axis) {
    const std::int32_t scale =
        axis.align_corners && axis.output > 1
            ? (one * (axis.input - 1) + (axis.output - 1) / 2) / (axis.output - 1)
            : (one * axis.input + axis.output / 2) / axis.output;
    std::vector<FixedSample> samples;
    for (std::int32_t i = 0; i < axis.output; ++i) {
        std::int32_t at = i * scale;
        if (axis.half_pixel_centers) at += scale / 2 - one / 2;
        // The rounded scale can lead past the last element; TFLite reads beyond the row there.
        const std::int32_t lower = std::clamp(at / one, 0, axis.input - 1);
        const std::int32_t upper = std::min((at + one - 1) / one, axis.input - 1);
        samples.push_back({lower, upper, at - one * lower});
    }
    return samples;
}

}  // namespace

Result<Resizing> check_resize(const OperatorView& op, std::initializer_list<ElementType> types) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const auto given = REEF_TRY(op.options<model::ResizeBilinearOptions>());
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0", types));
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    if (given.align_corners && given.half_pixel_centers)
        return fail(Cause::bad_input, "both align_corners and half_pixel_centers");
    const auto size = REEF_TRY(constant_int32(op, 1, "the size"));
    if (input.shape.size() != 4 || size.size() != 2)
        return fail(Cause::bad_input,
                    fmt::format("input 0 is {} and the size has {} numbers, not 4 dimensions and 2",
                                model::shape_text(input.shape), size.size()));
    for (const std::int32_t length : {input.shape[1], input.shape[2], size[0], size[1]}) {
        if (length < 1 || length > longest_axis)
            return fail(Cause::unsupported,
                        fmt::format("a height or width of {}, not 1 to {}", length, longest_axis));
    }
    REEF_CHECK(
        expect_shape(op.output(0), "output 0", {input.shape[0], size[0], size[1], input.shape[3]}));
    return Resizing{.shape = {input.shape[0], input.shape[3], input.shape[1], input.shape[2]},
                    .y = {input.shape[1], size[0], given.align_corners, given.half_pixel_centers},
                    .x = {input.shape[2], size[1], given.align_corners, given.half_pixel_centers}};
}

PreparedKernel prepare_resize_bilinear(const OperatorView& op, const PrepareOptions& options) {
    const Resizing checked =
        REEF_TRY(check_resize(op, {ElementType::uint8, ElementType::int8, ElementType::float32}));
    const bool fast = options.kernels == KernelSet::fast;
    if (op.input(0).type == ElementType::int8) {
        auto rows = fixed_samples(checked.y);
        auto columns = fixed_samples(checked.x);
        if (fast && fits_int32(rows) && fits_int32(columns))
            return fast_resize_bilinear(checked.shape, std::move(rows), std::move(columns),
                                        options.threads);
        return std::make_unique<ResizeKernel<std::int8_t, FixedSample>>(
            checked.shape, std::move(rows), std::move(columns));
    }
    auto rows = float_samples(checked.y);
    auto columns = float_samples(checked.x);
    if (op.input(0).type == ElementType::float32) {
        if (fast)
            return fast_float_resize_bilinear(checked.shape, std::move(rows), std::move(columns),
                                              options.threads);
        return std::make_unique<ResizeKernel<float, FloatSample>>(checked.shape, std::move(rows),
                                                                  std::move(columns));
    }
    if (fast)
        return fast_resize_bilinear(checked.shape, std::move(rows), std::move(columns),
                                    options.threads);
    return std::make_unique<ResizeKernel<std::uint8_t, FloatSample>>(checked.shape, std::move(rows),
                                                                     std::move(columns));
}

}  // namespace reef::cpu

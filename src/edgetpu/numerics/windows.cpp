// AVERAGE_POOL_2D, MAX_POOL_2D, MEAN and RESIZE_BILINEAR.
#include <algorithm>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/pooling.h"
#include "cpu/reference/reduction.h"
#include "cpu/reference/resize_bilinear.h"
#include "edgetpu/numerics/kernels.h"
#include "edgetpu/numerics/refusals.h"
#include "edgetpu/numerics/requantisation.h"

namespace reef::edgetpu::numerics {

using namespace cpu;

/// Where a resized pixel lies: fraction in quarters, 0 to 3; at the border lower == upper.
struct QuarterSample {
    std::int32_t lower = 0;
    std::int32_t upper = 0;
    std::int32_t fraction = 0;
};

template <typename T>
T mix(T upper_left, T upper_right, T lower_left, T lower_right, const QuarterSample& y,
      const QuarterSample& x) {
    const std::int32_t sum = upper_left * (4 - y.fraction) * (4 - x.fraction) +
                             upper_right * (4 - y.fraction) * x.fraction +
                             lower_left * y.fraction * (4 - x.fraction) +
                             lower_right * y.fraction * x.fraction;
    return static_cast<T>(round_half_even(static_cast<float>(sum) * 0x1p-4F));
}

namespace {

/// One multiplication of the sum without zero points by scale / count.
struct FloatAverage {
    static constexpr const char* name = "average_pool_2d reference";
    FloatRequantisation requantise;
    float scale = 1;
    std::int32_t zero_point = 0;
    std::int32_t sum = 0;
    void add(std::int32_t value) { sum += value - zero_point; }
    [[nodiscard]] std::int32_t result() const { return requantise(sum, scale); }
};

/// No window reaches over the input's edge.
bool windows_are_whole(const PoolingAxis& axis) {
    return axis.window(0).size() == axis.filter &&
           axis.window(axis.output - 1).size() == axis.filter;
}

PreparedKernel float_average(const OperatorView& op, Pooling pooling) {
    if (!windows_are_whole(pooling.y) || !windows_are_whole(pooling.x))
        return unknown_on_edgetpu("averages of windows that reach over the input's edge");
    const auto given = REEF_TRY(op.options<model::Pool2dOptions>());
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    const float share =
        1.0F / (static_cast<float>(pooling.y.filter) * static_cast<float>(pooling.x.filter));
    FloatAverage average;
    average.requantise = REEF_TRY(float_requantisation(given.activation, op.output(0)));
    average.scale = REEF_TRY(float_scale(in.scale * share, out));
    average.zero_point = in.zero_point;
    pooling.clamp = type_range(op.output(0).type);
    return reference_pooling(pooling, op.input(0).type, average);
}

/// Taken for AVERAGE_POOL_2D's; no compiled MEAN was seen.
struct AverageFinish {
    FloatRequantisation requantise;
    float scale;
    std::int32_t zero_points;  ///< count times the input's
    std::int32_t operator()(std::int32_t sum) const { return requantise(sum - zero_points, scale); }
};

/// Rows and columns of a picture, and nothing else, are reduced.
bool is_average_pooling(const Reduction& reduction) {
    if (reduction.axes.size() != 4) return false;
    const auto kept = [&](std::size_t axis) {
        return reduction.axes[axis].length == 1 || reduction.axes[axis].output_step != 0;
    };
    return kept(0) && kept(3);
}

template <typename T>
PreparedKernel float_sum(const OperatorView& op, Reduction reduction, bool mean) {
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (!is_average_pooling(reduction))
        return unknown_on_edgetpu("the sum over other axes than height and width");
    const float share = mean ? 1.0F / static_cast<float>(reduction.count) : 1.0F;
    const auto count = static_cast<std::int32_t>(reduction.count);
    const AverageFinish finish{
        REEF_TRY(float_requantisation(model::Activation::none, op.output(0))),
        REEF_TRY(float_scale(in.scale * share, out)), in.zero_point * count};
    return sum_kernel<T>(mean ? "mean" : "sum", std::move(reduction), finish);
}

/// Twice as many output pixels, whose centres lie a quarter before and behind the input's.
std::vector<QuarterSample> doubling_samples(const ResizeAxis& axis) {
    std::vector<QuarterSample> samples;
    for (std::int32_t i = 0; i < axis.output; ++i) {
        const std::int32_t quarters = 2 * i - 1;
        const std::int32_t lower = quarters >> 2;
        samples.push_back({std::max(lower, 0), std::min(lower + 1, axis.input - 1), quarters & 3});
    }
    return samples;
}

PreparedKernel quarter_resize(const OperatorView& op, const Resizing& checked) {
    const auto doubles = [](const ResizeAxis& axis) {
        return axis.half_pixel_centers && axis.output == 2 * axis.input;
    };
    if (!doubles(checked.y) || !doubles(checked.x))
        return unknown_on_edgetpu(
            "a resize other than to twice the height and width with half-pixel centres");
    if (REEF_TRY(per_tensor_parameters(op.input(0))) !=
        REEF_TRY(per_tensor_parameters(op.output(0))))
        return unknown_on_edgetpu("a resize to another quantisation");
    auto rows = doubling_samples(checked.y);
    auto columns = doubling_samples(checked.x);
    if (op.input(0).type == ElementType::int8)
        return std::make_unique<ResizeKernel<std::int8_t, QuarterSample>>(
            checked.shape, std::move(rows), std::move(columns));
    return std::make_unique<ResizeKernel<std::uint8_t, QuarterSample>>(
        checked.shape, std::move(rows), std::move(columns));
}

}  // namespace

PreparedKernel average_pool_2d(const OperatorView& op, const PrepareOptions& /*options*/) {
    return float_average(op, REEF_TRY(check_pooling(op)));
}

PreparedKernel max_pool_2d(const OperatorView& op, const PrepareOptions& options) {
    (void)REEF_TRY(check_pooling(op));
    const auto given = REEF_TRY(op.options<model::Pool2dOptions>());
    if (given.activation != model::Activation::none)
        return unknown_on_edgetpu("MAX_POOL_2D with a fused activation");
    return prepare_max_pool_2d(op, options);
}

namespace {

PreparedKernel sum_or_mean(const OperatorView& op, const PrepareOptions& options, bool mean) {
    Reduction reduction = REEF_TRY(
        check_reduction(op, {ElementType::uint8, ElementType::int8, ElementType::float32}));
    if (op.input(0).type == ElementType::uint8)
        return float_sum<std::uint8_t>(op, std::move(reduction), mean);
    if (op.input(0).type == ElementType::int8)
        return float_sum<std::int8_t>(op, std::move(reduction), mean);
    return mean ? prepare_mean(op, options) : prepare_sum(op, options);
}

}  // namespace

PreparedKernel mean(const OperatorView& op, const PrepareOptions& options) {
    return sum_or_mean(op, options, true);
}

PreparedKernel sum(const OperatorView& op, const PrepareOptions& options) {
    if (op.has_input(0) && op.input(0).type == ElementType::int32) return prepare_sum(op, options);
    return sum_or_mean(op, options, false);
}

PreparedKernel resize_bilinear(const OperatorView& op, const PrepareOptions& /*options*/) {
    return quarter_resize(op, REEF_TRY(check_resize(op, {ElementType::uint8, ElementType::int8})));
}

}  // namespace reef::edgetpu::numerics

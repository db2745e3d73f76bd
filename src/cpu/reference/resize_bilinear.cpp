// RESIZE_BILINEAR. TFLite computes uint8 in float32 and int8 in integers with 10 fractional bits
// per axis. Both round to nearest. The Edge TPU weighs four pixels in quarters of a pixel per axis
// and rounds ties to even.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/worker_pool.h"
#include "cpu/float_requantisation.h"
#include "cpu/kernels.h"
#include "cpu/quantized.h"
#include "cpu/resizing.h"

namespace reef::cpu {
namespace {

constexpr std::int32_t one = 1 << 10;
/// Keeps 1024 * length and every product of it below 2^31.
constexpr std::int32_t longest_axis = 1 << 16;

struct Axis {
    std::int32_t input = 0;
    std::int32_t output = 0;
    bool align_corners = false;
    bool half_pixel_centers = false;
};

std::vector<FloatSample> float_samples(const Axis& axis) {
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

std::vector<FixedSample> fixed_samples(const Axis& axis) {
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

/// Twice as many output pixels, whose centres lie a quarter before and behind the input's.
std::vector<QuarterSample> doubling_samples(const Axis& axis) {
    std::vector<QuarterSample> samples;
    for (std::int32_t i = 0; i < axis.output; ++i) {
        const std::int32_t quarters = 2 * i - 1;
        const std::int32_t lower = quarters >> 2;
        samples.push_back({std::max(lower, 0), std::min(lower + 1, axis.input - 1), quarters & 3});
    }
    return samples;
}

template <typename T, typename Sample>
class ResizeKernel final : public Kernel {
  public:
    ResizeKernel(const ResizeShape& shape, std::vector<Sample> rows, std::vector<Sample> columns)
        : shape_(shape), rows_(std::move(rows)), columns_(std::move(columns)) {}

    [[nodiscard]] std::string name() const override { return "resize_bilinear reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto row_count = rows_.size();
        const auto batches = static_cast<std::size_t>(shape_.batches);
        frame.pool.parallel_for(
            batches * row_count, 4, [&](std::size_t begin, std::size_t end, std::size_t) {
                for (std::size_t i = begin; i < end; ++i)
                    resize_row(frame.in<T>(0), frame.out<T>(0), i / row_count, i % row_count);
            });
        return {};
    }

  private:
    void resize_row(const T* in, T* out, std::size_t batch, std::size_t y) const {
        const auto channels = static_cast<std::size_t>(shape_.channels);
        const auto pixel = [&](std::int32_t row, std::int32_t column) {
            const auto r = batch * static_cast<std::size_t>(shape_.input_height) +
                           static_cast<std::size_t>(row);
            return in + (r * static_cast<std::size_t>(shape_.input_width) +
                         static_cast<std::size_t>(column)) *
                            channels;
        };
        out += (batch * rows_.size() + y) * columns_.size() * channels;
        const Sample& row = rows_[y];
        for (const Sample& column : columns_) {
            const T* upper_left = pixel(row.lower, column.lower);
            const T* upper_right = pixel(row.lower, column.upper);
            const T* lower_left = pixel(row.upper, column.lower);
            const T* lower_right = pixel(row.upper, column.upper);
            for (std::size_t c = 0; c < channels; ++c)
                *out++ =
                    mix(upper_left[c], upper_right[c], lower_left[c], lower_right[c], row, column);
        }
    }

    static T mix(T upper_left, T upper_right, T lower_left, T lower_right, const FloatSample& y,
                 const FloatSample& x) {
        const float weights[] = {(1 - y.fraction) * (1 - x.fraction), (1 - y.fraction) * x.fraction,
                                 y.fraction * (1 - x.fraction), y.fraction * x.fraction};
        return static_cast<T>(static_cast<float>(upper_left) * weights[0] +
                              static_cast<float>(upper_right) * weights[1] +
                              static_cast<float>(lower_left) * weights[2] +
                              static_cast<float>(lower_right) * weights[3] + 0.5F);
    }

    static T mix(T upper_left, T upper_right, T lower_left, T lower_right, const FixedSample& y,
                 const FixedSample& x) {
        const std::int64_t sum =
            static_cast<std::int64_t>(upper_left) * (one - y.fraction) * (one - x.fraction) +
            static_cast<std::int64_t>(upper_right) * (one - y.fraction) * x.fraction +
            static_cast<std::int64_t>(lower_left) * y.fraction * (one - x.fraction) +
            static_cast<std::int64_t>(lower_right) * y.fraction * x.fraction;
        constexpr std::int64_t half = std::int64_t{1} << 19;
        return static_cast<T>((sum + (sum > 0 ? half : -half)) / (half * 2));
    }

    static T mix(T upper_left, T upper_right, T lower_left, T lower_right, const QuarterSample& y,
                 const QuarterSample& x) {
        const std::int32_t sum = upper_left * (4 - y.fraction) * (4 - x.fraction) +
                                 upper_right * (4 - y.fraction) * x.fraction +
                                 lower_left * y.fraction * (4 - x.fraction) +
                                 lower_right * y.fraction * x.fraction;
        return static_cast<T>(round_half_even(static_cast<float>(sum) * 0x1p-4F));
    }

    ResizeShape shape_;
    std::vector<Sample> rows_, columns_;
};

struct Checked {
    ResizeShape shape;
    Axis y, x;
};

Result<Checked> check_resize(const OperatorView& op) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    const auto given = REEF_TRY(op.options<model::ResizeBilinearOptions>());
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(input, "input 0", {ElementType::uint8, ElementType::int8}));
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
    return Checked{.shape = {input.shape[0], input.shape[3], input.shape[1], input.shape[2]},
                   .y = {input.shape[1], size[0], given.align_corners, given.half_pixel_centers},
                   .x = {input.shape[2], size[1], given.align_corners, given.half_pixel_centers}};
}

PreparedKernel edgetpu_resize(const OperatorView& op, const Checked& checked) {
    const auto doubles = [](const Axis& axis) {
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

PreparedKernel prepare_resize_bilinear(const OperatorView& op, const PrepareOptions& options) {
    const Checked checked = REEF_TRY(check_resize(op));
    if (options.arithmetic == Arithmetic::edgetpu) return edgetpu_resize(op, checked);
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
    if (fast)
        return fast_resize_bilinear(checked.shape, std::move(rows), std::move(columns),
                                    options.threads);
    return std::make_unique<ResizeKernel<std::uint8_t, FloatSample>>(checked.shape, std::move(rows),
                                                                     std::move(columns));
}

}  // namespace reef::cpu

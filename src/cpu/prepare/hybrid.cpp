#include "cpu/prepare/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

constexpr float most = 127;
constexpr float least = -128;

/// The int8 value that stands for 0: counted from the end of the range that it is nearer to.
float zero_of(const ValueRange& range, double scale) {
    const double from_min = double{least} - range.min / scale;
    const double from_max = double{most} - range.max / scale;
    const bool nearer_to_min =
        -double{least} + std::abs(range.min / scale) < double{most} + std::abs(range.max / scale);
    const double zero = std::round(nearer_to_min ? from_min : from_max);
    return static_cast<float>(std::clamp(zero, double{least}, double{most}));
}

}  // namespace

ValueRange range_of(std::span<const float> values) {
    ValueRange range;
    for (const float value : values) {
        range.min = std::min(range.min, value);
        range.max = std::max(range.max, value);
        range.finite &= std::isfinite(value);
    }
    return range;
}

Result<StepRule> step_rule(const ValueRange& range, bool asymmetric) {
    if (!range.finite)
        return fail(Cause::bad_input, "the input holds values that are no finite numbers");
    if (range.min == range.max) return StepRule{};
    const float magnitude = std::max(-range.min, range.max);
    const double step = (double{range.max} - double{range.min}) / 255.0;
    const StepRule rule{.scale = asymmetric ? static_cast<float>(step) : magnitude / most,
                        .per_step = asymmetric ? 1.0F / static_cast<float>(step) : most / magnitude,
                        .zero = asymmetric ? zero_of(range, step) : 0,
                        .lowest = asymmetric ? least : -most};
    if (!std::isfinite(rule.per_step) || !std::isfinite(rule.scale))
        return fail(Cause::bad_input,
                    "the input's values are too small or too large to be "
                    "quantised");
    return rule;
}

Status expect_steps(std::span<const float> rows, std::size_t row, bool asymmetric) {
    for (; !rows.empty(); rows = rows.subspan(row))
        REEF_CHECK(step_rule(range_of(rows.first(row)), asymmetric));
    return {};
}

Result<float> write_steps(std::span<const float> values, bool asymmetric, std::int16_t* steps) {
    const StepRule rule = REEF_TRY(step_rule(range_of(values), asymmetric));
    std::ranges::transform(values, steps, [&](float value) {
        return static_cast<std::int16_t>(rule.step(value) - rule.zero);
    });
    return rule.scale;
}

Result<float> hybrid_weight_scale(const OperatorView& op, std::size_t position, const char* what) {
    const model::Tensor& weights = op.input(position);
    REEF_CHECK(expect_type(weights, what, {ElementType::int8}));
    if (op.constant(position).empty())
        return fail(
            Cause::unsupported,
            fmt::format("float32 on {} '{}' of int8 that are computed at run time or empty; "
                        "constant ones are needed",
                        what, weights.name));
    if (static_cast<std::int64_t>(op.constant(position).size()) != weights.byte_count())
        return fail(Cause::bad_input,
                    fmt::format("{} '{}' hold {} bytes, not those of {}", what, weights.name,
                                op.constant(position).size(), model::shape_text(weights.shape)));
    if (weights.quantization && weights.quantization->per_channel())
        return fail(Cause::unsupported,
                    fmt::format("float32 on {} of int8 with a scale per channel; TFLite 2.9 reads "
                                "one",
                                what));
    const AffineParameters parameters = REEF_TRY(per_tensor_parameters(weights));
    if (parameters.zero_point != 0)
        return fail(Cause::unsupported, fmt::format("float32 on {} of int8 with zero point {}",
                                                    what, parameters.zero_point));
    return parameters.scale;
}

}  // namespace reef::cpu

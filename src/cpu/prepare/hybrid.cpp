#include "cpu/prepare/hybrid.h"

#include <algorithm>
#include <cmath>

namespace reef::cpu {
namespace {

constexpr float most = 127;
constexpr float least = -128;

struct Range {
    float min = 0;
    float max = 0;
    bool finite = true;
};

/// 0 is in it.
Range range_of(std::span<const float> values) {
    Range range;
    for (const float value : values) {
        range.min = std::min(range.min, value);
        range.max = std::max(range.max, value);
        range.finite &= std::isfinite(value);
    }
    return range;
}

/// The int8 value that stands for 0: counted from the end of the range that it is nearer to.
float zero_of(const Range& range, double scale) {
    const double from_min = double{least} - range.min / scale;
    const double from_max = double{most} - range.max / scale;
    const bool nearer_to_min =
        -double{least} + std::abs(range.min / scale) < double{most} + std::abs(range.max / scale);
    const double zero = std::round(nearer_to_min ? from_min : from_max);
    return static_cast<float>(std::clamp(zero, double{least}, double{most}));
}

}  // namespace

Result<float> quantise_values(std::span<const float> values, bool asymmetric, std::int16_t* steps) {
    const Range range = range_of(values);
    if (!range.finite)
        return fail(Cause::bad_input, "the input holds values that are no finite numbers");
    if (range.min == range.max) {
        std::fill_n(steps, values.size(), std::int16_t{0});
        return 1.0F;
    }
    const float magnitude = std::max(-range.min, range.max);
    const double step = (double{range.max} - double{range.min}) / 255.0;
    const float scale = asymmetric ? static_cast<float>(step) : magnitude / most;
    const float per_step = asymmetric ? 1.0F / scale : most / magnitude;
    if (!std::isfinite(per_step) || !std::isfinite(scale))
        return fail(Cause::bad_input,
                    "the input's values are too small or too large to be "
                    "quantised");
    const float zero = asymmetric ? zero_of(range, step) : 0;
    const float lowest = asymmetric ? least : -most;
    for (const float value : values)
        *steps++ = static_cast<std::int16_t>(
            std::clamp(std::round(zero + value * per_step), lowest, most) - zero);
    return scale;
}

}  // namespace reef::cpu

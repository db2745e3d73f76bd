#include "cpu/plain/hybrid_steps.h"

#include <algorithm>
#include <cmath>

namespace reef::plain {
namespace {

/// A value's place among the steps.
struct Places {
    float factor = 0;
    double zero = 0, lowest = -127;
    bool unsure = false;  ///< the zero itself lies in the middle
};

bool near_middle(double place, double error) {
    return std::abs(place - std::floor(place) - 0.5) <= error;
}

Places places_of(double low, double high, bool asymmetric, double error) {
    if (!asymmetric) return {.factor = 127 / static_cast<float>(std::max(-low, high)), .zero = 0};
    const double step = (high - low) / 255;
    // The end of the range with the smaller sum of magnitudes is kept.
    const bool keeps_low = 128 + std::abs(low / step) < 127 + std::abs(high / step);
    const double zero = keeps_low ? -128 - low / step : 127 - high / step;
    return {.factor = 1 / static_cast<float>(step),
            .zero = std::clamp(std::round(zero), -128.0, 127.0),
            .lowest = -128,
            .unsure = error > 0 && near_middle(zero, error)};
}

}  // namespace

Steps steps_of(std::span<const double> values, bool asymmetric, double error) {
    double low = 0, high = 0;
    for (const double value : values) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    Steps steps{.values = std::vector<double>(values.size()),
                .unsure = std::vector<bool>(values.size())};
    // 127 divided by less is no float32.
    if (std::max(-low, high) < 0x1p-119) return steps;
    steps.scale = asymmetric ? static_cast<double>(static_cast<float>((high - low) / 255))
                             : static_cast<double>(static_cast<float>(std::max(-low, high)) / 127);
    // In steps; the range that they divide has it, too.
    const double off = error / steps.scale * 4;
    const Places places = places_of(low, high, asymmetric, off);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const float place =
            static_cast<float>(places.zero) + static_cast<float>(values[i]) * places.factor;
        steps.values[i] =
            std::clamp(std::round(static_cast<double>(place)), places.lowest, 127.0) - places.zero;
        steps.unsure[i] =
            error > 0 && (places.unsure || near_middle(static_cast<double>(place), off));
    }
    return steps;
}

std::vector<Steps> steps_of_rows(const Values& values, std::size_t length, bool asymmetric) {
    std::vector<Steps> rows;
    for (std::size_t at = 0; at < values.stored.size(); at += length)
        rows.push_back(steps_of(std::span(values.stored).subspan(at, length), asymmetric));
    return rows;
}

Values hybrid_weights(Choices& choices, Shape shape, std::int32_t channels) {
    Values weights = random_values(choices, i8, std::move(shape), Role::constant);
    weights.zero = 0;
    if (channels < 0) return weights;
    weights.axis = channels;
    weights.scales.resize(
        static_cast<std::size_t>(weights.shape[static_cast<std::size_t>(channels)]));
    for (float& scale : weights.scales) scale = static_cast<float>(choices.real(0.003, 0.1));
    return weights;
}

Values hybrid_input(Choices& choices, Shape shape, std::int32_t rows) {
    Values input = raw_values(choices, f32, std::move(shape));
    // Of one sign, of both, and of a range far from 0.
    const double middle = choices.one_of({0.0, 0.0, 4.0, -4.0, 9.0});
    for (double& value : input.stored)
        value = static_cast<double>(static_cast<float>(value + middle));
    const auto row = input.stored.size() / static_cast<std::size_t>(std::max(rows, 1));
    if (choices.one_in(6)) std::fill_n(input.stored.begin(), row, 0.0);
    return input;
}

}  // namespace reef::plain

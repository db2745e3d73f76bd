#include "rk3588/compiler/requantisation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <ranges>
#include <vector>

namespace reef::rk3588::lowering {
namespace {

constexpr std::int32_t scale_bits = 15;
constexpr std::int32_t most_factor = 32767;
constexpr std::int32_t half_scale = 1 << (scale_bits - 1);
constexpr std::int32_t most_shift = 62;

/// A product in BS saturates at 32 bits: harmless while what saturates leaves the int8 range, too.
double saturation_bound(double multiplier) {
    return std::min<double>(most_factor, std::floor(std::ldexp(multiplier, 23)));
}

bool shift_fits(std::int32_t shift) {
    return shift >= 0 && shift <= most_shift;
}

/// multiplier = mantissa * 2^exponent, the mantissa with 15 bits.
struct Mantissa {
    std::int32_t bits = 0, exponent = 0;
};
Mantissa mantissa_of(double multiplier) {
    Mantissa m;
    m.bits = static_cast<std::int32_t>(
        std::nearbyint(std::ldexp(std::frexp(multiplier, &m.exponent), scale_bits)));
    if (m.bits == 1 << scale_bits) {
        m.bits /= 2;
        ++m.exponent;
    }
    return m;
}

/// The share of results that a scale of 2^14 + 1 changes beside the ties: behind a first rounding
/// that left `places` bits, a boundary passes as many of its values as the result's distance from
/// the zero point takes it.
double lost_by_gain(std::int32_t places, const ResultRange& results) {
    double values = 0;
    for (std::int32_t d = results.least; d <= results.most; ++d)
        values += std::floor(std::ldexp(std::abs(d), places - (scale_bits - 1)));
    return std::ldexp(values / (results.most - results.least + 1), -places);
}

/// The share of results that are ties and go to the even one, which is the wrong one of two.
double lost_to_even(std::int32_t places) {
    return places > 0 ? std::ldexp(0.5, -places) : 0;
}

/// The converter that rounds a half away from zero at 2^places, the most of `all`, of each channel.
/// Without CVT_ROUND a scale one too large pushes every tie outwards; where that moves more results
/// than there are ties to mend, they stay even.
void round_away(Requantisation& r, std::span<const std::int32_t> all, const Options& options,
                const ResultRange& results) {
    double gain = 0, even = 0;
    for (const std::int32_t places : all) {
        gain += lost_by_gain(places, results);
        even += lost_to_even(places);
    }
    r.away = options.assume_round;
    r.scale = half_scale + (r.away || gain > even ? 0 : 1);
    r.shift = scale_bits - 1 + std::ranges::max(all);
}

/// Of a multiplier of 1 and more TFLite shifts the accumulator to the left before it rounds: once.
/// BS, which rounds what its factor leaves, would lose the last bits.
std::optional<Requantisation> two_roundings(double multiplier, const Options& options,
                                            const ResultRange& results) {
    Requantisation r;
    const Mantissa m = mantissa_of(multiplier);
    if (m.exponent > 0) return std::nullopt;
    r.multiplies = true;
    r.factor = m.bits;
    r.factor_shift = scale_bits;
    round_away(r, std::array{-m.exponent}, options, results);
    return r;
}

std::optional<Requantisation> two_roundings_by_channel(std::span<const double> multipliers,
                                                       const Options& options,
                                                       const ResultRange& results) {
    constexpr int most_power = 14;
    Requantisation r;
    r.multiplies = true;
    r.factor_shift = scale_bits;
    std::vector<std::int32_t> places;
    for (const double multiplier : multipliers) {
        const Mantissa m = mantissa_of(multiplier);
        if (m.exponent > 0) return std::nullopt;
        r.factors.push_back(static_cast<std::int16_t>(m.bits));
        places.push_back(-m.exponent);
    }
    const auto [least, most] = std::ranges::minmax(places);
    if (most - least > most_power) return std::nullopt;
    for (const auto each : places)
        r.powers.push_back(static_cast<std::int16_t>(1 << (most - each)));
    round_away(r, places, options, results);
    return r;
}

/// The converter that all channels share; a factor of 16 bits for each follows from it.
struct Converter {
    std::int32_t scale = 0, shift = 0;

    [[nodiscard]] double unit() const { return std::ldexp(scale, -shift); }
};

/// Of a multiplier in a converter's units, at most 2^15.
double factor_of(double units) {
    constexpr double to_integer = 0x3p51;  // added and taken away, it leaves the nearest integer
    return std::clamp<double>((units + to_integer) - to_integer, 1, most_factor);
}

double error_of(double units) {
    return std::abs(factor_of(units) / units - 1);
}

double error_by_all(const Converter& converter, std::span<const double> multipliers) {
    const double per_unit = 1 / converter.unit();
    double sum = 0;
    for (const double m : multipliers) sum += error_of(m * per_unit);
    return sum;
}

std::vector<Converter> converters_to_try(double greatest, double top) {
    constexpr int candidates = 2048;
    std::vector<Converter> all(candidates);
    for (int k = 0; k < candidates; ++k) {
        const std::int32_t scale = half_scale + k * (half_scale - 1) / (candidates - 1);
        all[static_cast<std::size_t>(k)] = {
            scale, static_cast<std::int32_t>(std::floor(std::log2(top * scale / greatest)))};
    }
    return all;
}

/// A converter's error by the least multipliers, whose factors have the fewest bits and so most of
/// it, where multipliers differ; each is given in units of the greatest. In float32 without
/// branches: one search computes tens of thousands.
float error_by_some(const Converter& converter, double greatest, std::span<const float> some) {
    constexpr float to_integer = 3 << 22;  // added and taken away, it leaves the nearest integer
    const auto unit = static_cast<float>(converter.unit() / greatest);
    const float per_unit = 1 / unit;
    float sum = 0;
    for (const float m : some) {
        const float exact = m * per_unit;
        const float factor = std::max((exact + to_integer) - to_integer, 1.0F);
        sum += std::abs(factor - exact) / exact;
    }
    return sum;
}

/// Of `all`, those that promise the least error: few enough to compute what each has.
std::vector<Converter> most_promising(const std::vector<Converter>& all, double greatest,
                                      std::span<const double> multipliers) {
    constexpr std::size_t most_multipliers = 32, most_converters = 16;
    std::vector<double> least(multipliers.begin(), multipliers.end());
    const std::size_t count = std::min(most_multipliers, least.size());
    std::ranges::partial_sort(least, least.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<float> some(count);
    std::ranges::transform(least | std::views::take(count), some.begin(), [&](double m) {
        return std::max(static_cast<float>(m / greatest), std::numeric_limits<float>::min());
    });
    struct Promise {
        float error;
        std::size_t which;
        auto operator<=>(const Promise&) const = default;
    };
    std::vector<Promise> promises(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        promises[i] = {error_by_some(all[i], greatest, some), i};
    std::ranges::partial_sort(promises, promises.begin() + most_converters);
    std::vector<Converter> chosen;
    for (std::size_t i = 0; i < most_converters; ++i) chosen.push_back(all[promises[i].which]);
    return chosen;
}

/// One converter for all channels, a factor of 16 bits for each: of the most promising ones, that
/// with the least error in sum.
std::optional<Requantisation> factors_by_channel(std::span<const double> multipliers) {
    const double greatest = std::ranges::max(multipliers);
    const double top = saturation_bound(greatest);
    if (top < 1) return std::nullopt;
    double best = std::numeric_limits<double>::infinity();
    Converter chosen;
    for (const Converter& each :
         most_promising(converters_to_try(greatest, top), greatest, multipliers)) {
        const double error = error_by_all(each, multipliers);
        if (error >= best) continue;
        best = error;
        chosen = each;
    }
    // A multiplier next to 0 beside ordinary ones: no factor says it.
    if (!std::isfinite(best)) return std::nullopt;
    Requantisation r;
    r.multiplies = true;
    r.scale = chosen.scale;
    r.shift = chosen.shift;
    for (const double m : multipliers) {
        const double units = m / chosen.unit();
        r.factors.push_back(static_cast<std::int16_t>(factor_of(units)));
        r.worst_gain_error = std::max(r.worst_gain_error, error_of(units));
    }
    return r;
}

}  // namespace

ScaleAndShift nearest_scale(double multiplier) {
    ScaleAndShift s;
    s.shift = scale_bits - 1 - static_cast<std::int32_t>(std::floor(std::log2(multiplier)));
    s.scale = static_cast<std::int32_t>(std::nearbyint(std::ldexp(multiplier, s.shift)));
    if (s.scale == 1 << scale_bits) {
        s.scale /= 2;
        --s.shift;
    }
    return s;
}

Requantisation two_factors(double multiplier) {
    constexpr int candidates = 200;
    const auto top = static_cast<std::int32_t>(std::max(1.0, saturation_bound(multiplier)));
    Requantisation r;
    r.multiplies = true;
    double best = std::numeric_limits<double>::infinity();
    for (std::int32_t factor = top; factor > std::max(0, top - candidates); --factor) {
        const auto s = nearest_scale(multiplier / factor);
        const double error = std::abs(factor * std::ldexp(s.scale, -s.shift) / multiplier - 1);
        if (error >= best) continue;
        best = error;
        r.factor = factor;
        r.scale = s.scale;
        r.shift = s.shift;
    }
    r.worst_gain_error = best;
    return r;
}

std::optional<Requantisation> requantisation_of(std::span<const double> multipliers,
                                                const Options& options,
                                                const ResultRange& results) {
    const auto usable = [](double m) { return std::isfinite(m) && m > 0; };
    if (multipliers.empty() || !std::ranges::all_of(multipliers, usable)) return std::nullopt;
    const bool same =
        std::ranges::adjacent_find(multipliers, std::not_equal_to{}) == multipliers.end();
    const bool twice = options.requant == Options::Requant::tflite;
    std::optional<Requantisation> r;
    if (same) {
        if (twice) r = two_roundings(multipliers[0], options, results);
        if (!r) r = two_factors(multipliers[0]);
    } else {
        if (twice && options.assume_nrdma)
            r = two_roundings_by_channel(multipliers, options, results);
        if (!r) r = factors_by_channel(multipliers);
    }
    if (!r || !shift_fits(r->shift)) return std::nullopt;
    return r;
}

double largest_error(const Requantisation& r, std::size_t channel, double multiplier,
                     const Reach& reach, const ResultRange& results) {
    const std::int32_t factor = !r.multiplies       ? 1
                                : r.factors.empty() ? r.factor
                                                    : r.factors[channel];
    const double power = r.powers.empty() ? 1 : r.powers[channel];
    const double gain =
        std::ldexp(factor * power * r.scale, -(r.factor_shift + r.shift)) / multiplier;
    // What both cut off at the end of the range is equal.
    const auto most = [&](std::int64_t accumulator, std::int32_t end) {
        return std::min(multiplier * static_cast<double>(std::max<std::int64_t>(accumulator, 0)),
                        std::max(0, end) / std::max(gain, 1.0));
    };
    return std::abs(gain - 1) *
           std::max(most(reach.up, results.most), most(reach.down, -results.least));
}

std::int64_t converted(std::int64_t value, const Requantisation& r) {
    const std::int64_t product = value * r.scale;
    if (r.shift == 0) return product;
    const std::int64_t half = std::int64_t{1} << (r.shift - 1);
    if (!r.away) return (product + half - 1 + (product >> r.shift & 1)) >> r.shift;
    return product >= 0 ? (product + half) >> r.shift : -((-product + half) >> r.shift);
}

void limit(Requantisation& r, std::int32_t low, std::int32_t high) {
    r.relu = low > -128 || high < 127;
    if (high >= 127) return;
    // The greatest value that the converter does not make more than `high`.
    const std::int64_t wanted = high - r.zero;
    auto most = static_cast<std::int64_t>(std::ldexp(static_cast<double>(wanted) + 0.5, r.shift) /
                                          r.scale) +
                2;
    while (most > 0 && converted(most, r) > wanted) --most;
    r.most = static_cast<std::int32_t>(
        std::min<std::int64_t>(most, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace reef::rk3588::lowering

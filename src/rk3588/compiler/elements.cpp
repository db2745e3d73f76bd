#include "rk3588/compiler/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/prepare/fixed_point.h"

namespace reef::rk3588::lowering {
namespace {

constexpr std::int32_t values = 256, least_value = -128;
constexpr std::int32_t most_gain = 32767, half_gain = 16384;

/// TFLite's multiplication by a real number.
class Fraction {
  public:
    explicit Fraction(double real) : by_(cpu::quantize_multiplier(real)) {}
    [[nodiscard]] std::int32_t of(std::int32_t value) const {
        return cpu::multiply_by_quantized_multiplier(value, by_);
    }

  private:
    cpu::Multiplier by_;
};

/// TFLite's results: one for each value of a, times one for each of b.
std::vector<std::int8_t> results_of(const ElementNumbers& n) {
    using enum ElementStep::Operation;
    const auto bounded = [&](std::int64_t value) {
        return static_cast<std::int8_t>(
            std::clamp<std::int64_t>(value + n.out.zero, n.range.low, n.range.high));
    };
    std::vector<std::int8_t> out;
    if (n.operation == rescale) {
        const Fraction factor(n.float_factor ? static_cast<double>(n.a.scale / n.out.scale)
                                             : static_cast<double>(n.a.scale) /
                                                   static_cast<double>(n.out.scale));
        for (std::int32_t a = 0; a < values; ++a)
            out.push_back(bounded(factor.of(a + least_value - n.a.zero)));
        return out;
    }
    out.reserve(std::size_t{values} * values);
    if (n.operation == product) {
        const Fraction factor(static_cast<double>(n.a.scale * n.b.scale / n.out.scale));
        for (std::int32_t a = 0; a < values; ++a)
            for (std::int32_t b = 0; b < values; ++b)
                out.push_back(bounded(
                    factor.of((a + least_value - n.a.zero) * (b + least_value - n.b.zero))));
        return out;
    }
    constexpr int spare_bits = 20;
    const double common = 2.0 * static_cast<double>(std::max(n.a.scale, n.b.scale));
    const Fraction of_a(static_cast<double>(n.a.scale) / common);
    const Fraction of_b(static_cast<double>(n.b.scale) / common);
    const Fraction of_sum(common / std::ldexp(static_cast<double>(n.out.scale), spare_bits));
    std::array<std::int32_t, values> scaled_b{};
    for (std::int32_t b = 0; b < values; ++b) {
        const std::int32_t term = of_b.of((b + least_value - n.b.zero) * (1 << spare_bits));
        scaled_b[static_cast<std::size_t>(b)] = n.subtract ? -term : term;
    }
    for (std::int32_t a = 0; a < values; ++a) {
        const std::int32_t scaled = of_a.of((a + least_value - n.a.zero) * (1 << spare_bits));
        for (const std::int32_t term : scaled_b) out.push_back(bounded(of_sum.of(scaled + term)));
    }
    return out;
}

/// The chip's results for pairs of values.
class Results {
  public:
    Results(const ElementNumbers& n, const SumGains& g)
        : n_(n),
          converter_{.scale = g.converter.scale, .shift = g.converter.shift},
          first_{.scale = g.a, .shift = g.shift_a},
          b_(n.subtract ? -g.b : g.b),
          relu_(n.range.low > least_value) {}

    /// Both from 0 on.
    [[nodiscard]] std::int64_t of(std::int32_t a, std::int32_t b) const {
        using enum ElementStep::Operation;
        const std::int64_t of_a = converted(a + least_value - n_.a.zero, first_);
        const std::int64_t of_b = std::int64_t{b + least_value - n_.b.zero} * b_;
        std::int64_t value = n_.operation == rescale   ? of_a
                             : n_.operation == product ? of_a * of_b
                                                       : of_a + of_b;
        if (relu_) value = std::max<std::int64_t>(value, 0);
        return std::clamp<std::int64_t>(converted(value, converter_) + n_.out.zero, least_value,
                                        n_.range.high);
    }

  private:
    const ElementNumbers& n_;
    Requantisation converter_, first_;
    std::int32_t b_;
    bool relu_;
};

/// How many of the chip's results are not TFLite's, for one choice of gains after the other.
class Others {
  public:
    explicit Others(const ElementNumbers& numbers)
        : n_(numbers),
          wanted_(results_of(numbers)),
          each_(numbers.operation == ElementStep::Operation::rescale ? 1 : values) {}

    /// Counted up to `most`.
    std::size_t count(const SumGains& gains, std::size_t most) {
        const Results results(n_, gains);
        // Pairs that other gains get wrong lie near a half, where these are likely to be wrong,
        // too.
        std::size_t others = 0;
        for (const std::uint32_t pair : hard_)
            if (is_other(results, pair) && ++others >= most) return others;
        others = 0;
        const auto pairs = static_cast<std::uint32_t>(wanted_.size());
        for (std::uint32_t pair = 0; pair < pairs; ++pair) {
            if (!is_other(results, pair)) continue;
            if (hard_.size() < most_hard) hard_.push_back(pair);
            if (++others >= most) break;
        }
        return others;
    }

  private:
    static constexpr std::size_t most_hard = 1024;
    [[nodiscard]] bool is_other(const Results& results, std::uint32_t pair) const {
        return results.of(static_cast<std::int32_t>(pair) / each_,
                          static_cast<std::int32_t>(pair) % each_) != wanted_[pair];
    }

    const ElementNumbers& n_;
    std::vector<std::int8_t> wanted_;
    std::int32_t each_;
    std::vector<std::uint32_t> hard_;
};

/// Gains and their relative error.
struct Candidate {
    double error = 0;
    SumGains gains;
};

Candidate sum_candidate(double a, double b, std::int32_t most) {
    const double unit = most / std::max(a, b);
    const double first = std::nearbyint(a * unit), second = std::nearbyint(b * unit);
    const auto s = nearest_scale(1 / unit);
    const double gain = std::ldexp(s.scale, -s.shift);
    return {std::abs(first * gain / a - 1) + std::abs(second * gain / b - 1),
            {static_cast<std::int32_t>(first), static_cast<std::int32_t>(second), s, 0}};
}

Candidate factor_candidate(double factor, std::int32_t gain, bool of_product) {
    const auto s = nearest_scale(factor / gain);
    const double made = gain * std::ldexp(s.scale, -s.shift);
    return {std::abs(made / factor - 1),
            of_product ? SumGains{1, gain, s, 0} : SumGains{gain, 0, s, 0}};
}

/// Both of TFLite's roundings: the first one at the value's last bit, by a gain of 15 bits, the
/// second one by a power of two that sends halves away from zero.
void add_two_roundings(double factor, std::vector<Candidate>& all) {
    constexpr int gain_bits = 15, scale_bits = 14;
    int exponent = 0;
    const double mantissa = std::frexp(factor, &exponent);
    if (exponent >= 0) return;
    const auto nearest = static_cast<std::int32_t>(std::round(std::ldexp(mantissa, gain_bits)));
    for (const std::int32_t gain : {nearest, nearest - 1, nearest + 1})
        for (const std::int32_t more : {1, 0})
            if (gain <= most_gain)
                all.push_back({0, {gain, 0, {half_gain + more, scale_bits - exponent}, gain_bits}});
}

/// The nearest ones first, of gains so far apart.
std::vector<Candidate> candidates_of(const ElementNumbers& n, std::int32_t step,
                                     std::size_t tried) {
    using enum ElementStep::Operation;
    const double a = static_cast<double>(n.a.scale) / static_cast<double>(n.out.scale);
    const double b = static_cast<double>(n.b.scale) / static_cast<double>(n.out.scale);
    std::vector<Candidate> all;
    for (std::int32_t gain = most_gain; gain > half_gain; gain -= step) {
        if (n.operation == sum)
            all.push_back(sum_candidate(a, b, gain));
        else if (n.operation == product)
            all.push_back(factor_candidate(static_cast<double>(n.a.scale) * b, gain, true));
        else
            all.push_back(factor_candidate(a, gain, false));
    }
    if (n.operation == rescale) add_two_roundings(a, all);
    const std::size_t kept = std::min(tried, all.size());
    std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(kept), {},
                              &Candidate::error);
    all.resize(kept);
    return all;
}

/// Puts those with fewer other results than `best` in its place, until one has none.
void try_each(Others& all, const std::vector<Candidate>& candidates,
              std::optional<ElementGains>& best) {
    constexpr std::int32_t most_shift = 46;  // behind which a product is nothing but its sign
    for (const Candidate& one : candidates) {
        if (best && best->other == 0) return;
        const auto& converter = one.gains.converter;
        if (converter.shift < 0 || converter.shift > most_shift) continue;
        const std::size_t most = best ? best->other : std::numeric_limits<std::size_t>::max();
        const std::size_t others = all.count(one.gains, most);
        if (!best || others < best->other) best = {one.gains, others};
    }
}

}  // namespace

std::optional<ElementGains> best_gains(const ElementNumbers& numbers) {
    constexpr std::int32_t coarse = 7, fine = 1;
    Others all(numbers);
    std::optional<ElementGains> best;
    if (numbers.operation == ElementStep::Operation::product) {
        // Rounded once where TFLite rounds twice: no gain makes all equal.
        try_each(all, candidates_of(numbers, coarse, 8), best);
    } else {
        try_each(all, candidates_of(numbers, coarse, 96), best);
        // Of 65536 pairs a few, whose sums lie near a half: closer gains may be right.
        constexpr std::size_t few = 64;
        if (best && best->other != 0 && best->other < few)
            try_each(all, candidates_of(numbers, fine, 1024), best);
    }
    if (best && numbers.subtract) best->gains.b = -best->gains.b;
    return best;
}

}  // namespace reef::rk3588::lowering

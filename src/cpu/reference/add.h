// The arithmetic of quantised ADD and SUB.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpu/prepare/fixed_point.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

/// Both inputs are brought to twice the larger of their scales with 20 spare bits, added, and the
/// sum is brought to the output's scale. SUB is ADD with the second multiplier negated, which
/// rounds ties the other way than a negated product would.
struct SumParameters {
    static constexpr int spare_bits = 20;
    std::int32_t zero_a = 0, zero_b = 0, zero_out = 0;
    Multiplier a, b, out;  ///< all below one: no left shift
    ClampRange clamp;

    [[nodiscard]] SumParameters with_swapped_inputs() const {
        SumParameters swapped = *this;
        std::swap(swapped.zero_a, swapped.zero_b);
        std::swap(swapped.a, swapped.b);
        return swapped;
    }
};

template <typename T>
struct QuantizedSum {
    SumParameters p;

    T operator()(T a, T b) const {
        const std::int32_t sum = scaled(a, p.zero_a, p.a) + scaled(b, p.zero_b, p.b);
        return static_cast<T>(std::clamp(multiply_by_quantized_multiplier(sum, p.out) + p.zero_out,
                                         p.clamp.min, p.clamp.max));
    }

  private:
    static std::int32_t scaled(std::int32_t value, std::int32_t zero_point, Multiplier multiplier) {
        return multiply_by_quantized_multiplier(
            (value - zero_point) * (1 << SumParameters::spare_bits), multiplier);
    }
};

/// The same sum with one rounding, before the clamp, of elements a and b above the lowest value of
/// their type: bits from `shift` on of start + a * of_a + b * of_b, which fits int32, unless the
/// bits below are less than `doubtful`. Those are the sums whose real value lies closer to the
/// middle between two integers than what it is off by: each rounding of QuantizedSum, by one spare
/// bit at most and of the last by 2^-(1 + right shift), and that of each factor here.
struct SumInFixedPoint {
    std::int32_t of_a = 0, of_b = 0, start = 0;
    std::int32_t doubtful = 0;
    int shift = 0;
    /// Whether there is such a form, the other members mean anything, and few enough sums are
    /// doubtful: scales that are small multiples of each other have many in the middle.
    bool pays = false;
};
[[nodiscard]] SumInFixedPoint in_fixed_point(const SumParameters& p, std::int32_t lowest);

struct FastSum {
    SumParameters exact;
    SumInFixedPoint first;
};

/// QuantizedSum over a run of elements, vectorised; a step is 0 (the first element repeats) or 1.
/// `out` does not overlap the inputs.
void add_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count, const FastSum& sum);
void add_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count, const FastSum& sum);

}  // namespace reef::cpu

// The arithmetic of quantised ADD and SUB.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

/// The same sum in float32, before the clamp: the integer nearest to (a - zero_a) * of_a +
/// zero_out + (b - zero_b) * of_b, unless that lies less than `doubt` from the middle between two.
/// What the real sum is off by: each rounding in integers, by one spare bit at most and of the last
/// by 2^-(1 + right shift); each in float32, of factors, products (where they are rounded) and
/// sums, by 2^-24 of what is rounded. A sum further from 0 than any result is at its limit either
/// way.
struct SumInFloat {
    float of_a = 0, of_b = 0;
    float doubt = 1;
};
[[nodiscard]] SumInFloat in_float(const SumParameters& p);

struct FastSum {
    SumParameters exact;
    SumInFloat first;
};

/// QuantizedSum over a run of elements, vectorised; a step is 0 (the first element repeats) or 1.
/// `out` does not overlap the inputs.
void add_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count, const FastSum& sum);
void add_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count, const FastSum& sum);

}  // namespace reef::cpu

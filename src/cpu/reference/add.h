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

/// QuantizedSum over a run of elements, vectorised; a step is 0 (the first element repeats) or 1.
/// `out` does not overlap the inputs.
void add_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count, const SumParameters& p);
void add_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count, const SumParameters& p);

}  // namespace reef::cpu

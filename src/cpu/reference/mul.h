// The definition of quantised MUL, which its plain and its vectorised kernel share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/prepare/fixed_point.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {

struct ProductParameters {
    std::int32_t zero_a = 0, zero_b = 0, zero_out = 0;
    Multiplier multiplier;
    ClampRange clamp;
};

template <typename T>
struct QuantizedProduct {
    ProductParameters p;

    T operator()(T a, T b) const {
        const std::int32_t product = (a - p.zero_a) * (b - p.zero_b);
        const std::int64_t result =
            std::int64_t{multiply_by_quantized_multiplier(product, p.multiplier)} + p.zero_out;
        return static_cast<T>(std::clamp<std::int64_t>(result, p.clamp.min, p.clamp.max));
    }
};

/// The same product in float32, before the zero point: the integer nearest to product * scale +
/// offset, of a negative product - offset, unless that lies next to the middle between two. The
/// offset is what the first of two roundings adds (StageRow in cpu/fast/channel_blocks.h), half of
/// 2^-shift. It pays where results, and zero points beside them, have 15 bits.
struct ProductInFloat {
    bool pays = false;
    float scale = 0, offset = 0;
    int shift = 0;
};
[[nodiscard]] ProductInFloat in_float(const ProductParameters& p);

struct FastProduct {
    ProductParameters exact;
    ProductInFloat first;
};

/// QuantizedProduct over a run of elements, vectorised; a step is 0 (the first element repeats) or
/// 1. `out` does not overlap the inputs.
void mul_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count, const FastProduct& p);
void mul_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count, const FastProduct& p);

}  // namespace reef::cpu

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/mul.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/fixed_point-inl.h"
#include "cpu/reference/mul.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {

template <typename T>
void mul_run(const T* HWY_RESTRICT a, std::size_t a_step, const T* HWY_RESTRICT b,
             std::size_t b_step, T* HWY_RESTRICT out, std::size_t count,
             const ProductParameters& p) {
    const hn::ScalableTag<std::int32_t> d;
    const hn::Rebind<T, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    if (count < lanes) {
        const QuantizedProduct<T> function{p};
        for (std::size_t i = 0; i < count; ++i) out[i] = function(a[i * a_step], b[i * b_step]);
        return;
    }
    const auto elements = [&](const T* from, std::size_t step, std::size_t i,
                              std::int32_t zero) HWY_ATTR {
        const auto value = step == 0 ? hn::Set(d, static_cast<std::int32_t>(*from))
                                     : hn::PromoteTo(d, hn::LoadU(d8, from + i));
        return hn::Sub(value, hn::Set(d, zero));
    };
    // Clamped before the zero point is added, the sum cannot overflow.
    const auto low = hn::Set(d, p.clamp.min - p.zero_out);
    const auto high = hn::Set(d, p.clamp.max - p.zero_out);
    const auto vector_at = [&](std::size_t i) HWY_ATTR {
        const auto product =
            hn::Mul(elements(a, a_step, i, p.zero_a), elements(b, b_step, i, p.zero_b));
        const auto scaled = multiply_by_quantized_multiplier(d, product, p.multiplier);
        const auto result = hn::Add(hn::Clamp(scaled, low, high), hn::Set(d, p.zero_out));
        hn::StoreU(hn::DemoteTo(d8, result), d8, out + i);
    };
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) vector_at(i);
    // The last vector may compute some elements a second time.
    if (i < count) vector_at(count - lanes);
}

void mul_run_u8(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                std::size_t b_step, std::uint8_t* out, std::size_t count,
                const ProductParameters& p) {
    mul_run(a, a_step, b, b_step, out, count, p);
}
void mul_run_i8(const std::int8_t* a, std::size_t a_step, const std::int8_t* b, std::size_t b_step,
                std::int8_t* out, std::size_t count, const ProductParameters& p) {
    mul_run(a, a_step, b, b_step, out, count, p);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(mul_run_u8);
HWY_EXPORT(mul_run_i8);

void mul_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count,
                  const ProductParameters& p) {
    HWY_DYNAMIC_DISPATCH(mul_run_u8)(a, a_step, b, b_step, out, count, p);
}
void mul_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count,
                  const ProductParameters& p) {
    HWY_DYNAMIC_DISPATCH(mul_run_i8)(a, a_step, b, b_step, out, count, p);
}

}  // namespace reef::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/mul.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/binary_run-inl.h"
#include "cpu/fast/fixed_point-inl.h"
#include "cpu/reference/mul.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {

/// The vector form of QuantizedProduct; `a` and `b` hold the elements as int32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rescaled_product(D d, V a, V b, const ProductParameters& p) {
    const V product = hn::Mul(hn::Sub(a, hn::Set(d, p.zero_a)), hn::Sub(b, hn::Set(d, p.zero_b)));
    const V scaled = multiply_by_quantized_multiplier(d, product, p.multiplier);
    // Clamped before the zero point is added, the sum cannot overflow.
    return hn::Add(hn::Clamp(scaled, hn::Set(d, p.clamp.min - p.zero_out),
                             hn::Set(d, p.clamp.max - p.zero_out)),
                   hn::Set(d, p.zero_out));
}

template <typename T>
void mul_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const ProductParameters& p) {
    const auto vectors = [&p](auto d, auto x, auto y)
                             HWY_ATTR { return rescaled_product(d, x, y, p); };
    binary_run(a, a_step, b, b_step, out, count, QuantizedProduct<T>{p}, vectors);
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

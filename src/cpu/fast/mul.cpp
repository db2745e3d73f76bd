#include "base/vector_targets.h"

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

/// The vector form of QuantizedProduct; `product` is that of the elements less their zero points.
template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V rescaled_product(D d, V product, const ProductParameters& p) {
    const V scaled = multiply_by_quantized_multiplier(d, product, p.multiplier);
    // Clamped before the zero point is added, the sum cannot overflow.
    return hn::Add(hn::Clamp(scaled, hn::Set(d, p.clamp.min - p.zero_out),
                             hn::Set(d, p.clamp.max - p.zero_out)),
                   hn::Set(d, p.zero_out));
}

/// The same: in float32 first, in integers where that may differ.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V quick_product(D d, V a, V b, const FastProduct& p) {
    const hn::Rebind<float, D> df;
    const V product =
        hn::Mul(hn::Sub(a, hn::Set(d, p.exact.zero_a)), hn::Sub(b, hn::Set(d, p.exact.zero_b)));
    const auto real_product = hn::ConvertTo(df, product);
    const auto offset = hn::CopySignToAbs(hn::Set(df, p.first.offset), real_product);
    const std::int32_t zero_out = p.exact.zero_out;
    const auto real =
        beside_limits(df, hn::MulAdd(real_product, hn::Set(df, p.first.scale), offset),
                      p.exact.clamp.min - zero_out, p.exact.clamp.max - zero_out);
    const V value = nearest(real);
    if (HWY_UNLIKELY(is_doubtful(df, real, value, p.first.doubt)))
        return rescaled_product(d, product, p.exact);
    return hn::Add(value, hn::Set(d, zero_out));
}

template <typename T>
void mul_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastProduct& p) {
    // A copy: stores of bytes could change anything held by reference.
    const FastProduct by_value = p;
    const auto vectors = [by_value](auto d, auto x, auto y)
                             HWY_ATTR { return quick_product(d, x, y, by_value); };
    binary_run(a, a_step, b, b_step, out, count, QuantizedProduct<T>{p.exact}, vectors);
}

void mul_run_u8(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                std::size_t b_step, std::uint8_t* out, std::size_t count, const FastProduct& p) {
    mul_run(a, a_step, b, b_step, out, count, p);
}
void mul_run_i8(const std::int8_t* a, std::size_t a_step, const std::int8_t* b, std::size_t b_step,
                std::int8_t* out, std::size_t count, const FastProduct& p) {
    mul_run(a, a_step, b, b_step, out, count, p);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(mul_run_u8);
HWY_EXPORT(mul_run_i8);

void mul_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count, const FastProduct& p) {
    HWY_DYNAMIC_DISPATCH(mul_run_u8)(a, a_step, b, b_step, out, count, p);
}
void mul_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count, const FastProduct& p) {
    HWY_DYNAMIC_DISPATCH(mul_run_i8)(a, a_step, b, b_step, out, count, p);
}

}  // namespace reef::cpu
#endif

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/add.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/binary_run-inl.h"
#include "cpu/fast/fixed_point-inl.h"
#include "cpu/reference/add.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {

/// The vector form of QuantizedSum; `a` and `b` hold the elements as int32.
template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V rescaled_sum(D d, V a, V b, const SumParameters& p) {
    constexpr int spare = SumParameters::spare_bits;
    const V left = multiply_by_quantized_multiplier(
        d, hn::ShiftLeft<spare>(hn::Sub(a, hn::Set(d, p.zero_a))), p.a);
    const V right = multiply_by_quantized_multiplier(
        d, hn::ShiftLeft<spare>(hn::Sub(b, hn::Set(d, p.zero_b))), p.b);
    const V sum = hn::Add(multiply_by_quantized_multiplier(d, hn::Add(left, right), p.out),
                          hn::Set(d, p.zero_out));
    return hn::Clamp(sum, hn::Set(d, p.clamp.min), hn::Set(d, p.clamp.max));
}

/// The same: in float32 first, in integers where that may differ.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V quick_sum(D d, V a, V b, const FastSum& sum) {
    const hn::Rebind<float, D> df;
    const auto steps = [&](V v, std::int32_t zero)
                           HWY_ATTR { return hn::ConvertTo(df, hn::Sub(v, hn::Set(d, zero))); };
    const auto zero_out = hn::Set(df, static_cast<float>(sum.exact.zero_out));
    const auto whole =
        hn::MulAdd(steps(b, sum.exact.zero_b), hn::Set(df, sum.first.of_b),
                   hn::MulAdd(steps(a, sum.exact.zero_a), hn::Set(df, sum.first.of_a), zero_out));
    const auto real = beside_limits(df, whole, sum.exact.clamp.min, sum.exact.clamp.max);
    const V value = nearest(real);
    if (HWY_UNLIKELY(is_doubtful(df, real, value, sum.first.doubt)))
        return rescaled_sum(d, a, b, sum.exact);
    return value;
}

template <typename T>
void add_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
             std::size_t count, const FastSum& sum) {
    // A copy: stores of bytes could change anything held by reference.
    const FastSum by_value = sum;
    const auto vectors = [by_value](auto d, auto x, auto y)
                             HWY_ATTR { return quick_sum(d, x, y, by_value); };
    binary_run(a, a_step, b, b_step, out, count, QuantizedSum<T>{sum.exact}, vectors);
}

void add_run_u8(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                std::size_t b_step, std::uint8_t* out, std::size_t count, const FastSum& sum) {
    add_run(a, a_step, b, b_step, out, count, sum);
}

void add_run_i8(const std::int8_t* a, std::size_t a_step, const std::int8_t* b, std::size_t b_step,
                std::int8_t* out, std::size_t count, const FastSum& sum) {
    add_run(a, a_step, b, b_step, out, count, sum);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(add_run_u8);
HWY_EXPORT(add_run_i8);

void add_run_fast(const std::uint8_t* a, std::size_t a_step, const std::uint8_t* b,
                  std::size_t b_step, std::uint8_t* out, std::size_t count, const FastSum& sum) {
    HWY_DYNAMIC_DISPATCH(add_run_u8)(a, a_step, b, b_step, out, count, sum);
}

void add_run_fast(const std::int8_t* a, std::size_t a_step, const std::int8_t* b,
                  std::size_t b_step, std::int8_t* out, std::size_t count, const FastSum& sum) {
    HWY_DYNAMIC_DISPATCH(add_run_i8)(a, a_step, b, b_step, out, count, sum);
}

}  // namespace reef::cpu
#endif

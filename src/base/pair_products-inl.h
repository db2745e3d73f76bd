// Sums of products of pairs of 16-bit numbers, and of fours of bytes. Include it per target, after
// hwy/highway.h.
#if defined(REEF_BASE_PAIR_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_BASE_PAIR_PRODUCTS_INL_H
#undef REEF_BASE_PAIR_PRODUCTS_INL_H
#else
#define REEF_BASE_PAIR_PRODUCTS_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

/// sum + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] in lane i, modulo 2^32. `d` is the tag of the sums.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>, class V16>
HWY_INLINE V add_pair_products(D d, V16 a, V16 b, V sum) {
    namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_AVX3_DL
    // One instruction with VNNI, which this Highway does not use. Written out because Highway's
    // flags for this target (checked at run time together with VNNI) do not include its intrinsic.
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    (void)d;
    return sum;
#elif HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
    V unused = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, a, b, sum, unused);
#else
    V odd = hn::Zero(d);
    const V even = hn::ReorderWidenMulAccumulate(d, a, b, hn::Zero(d), odd);
    return hn::Add(sum, hn::RearrangeToOddPlusEven(even, odd));
#endif
}

/// Whether add_quad_products() is one instruction: with VNNI.
inline constexpr bool has_quad_products = HWY_TARGET == HWY_AVX3_DL;

/// sum + a[4i] * b[4i] + ... + a[4i + 3] * b[4i + 3] in lane i, modulo 2^32, of bytes: those of `a`
/// are unsigned, those of `b` signed.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V add_quad_products(D d, V a, V b, V sum) {
    namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_AVX3_DL
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    (void)d;
    return sum;
#else
    const hn::Repartition<std::int16_t, D> d16;
    const hn::Repartition<std::uint16_t, D> du16;
    const auto odd_a = hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(du16, a)));
    const auto even_a = hn::And(hn::BitCast(d16, a), hn::Set(d16, 0xFF));
    const auto odd_b = hn::ShiftRight<8>(hn::BitCast(d16, b));
    const auto even_b = hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(d16, b)));
    return add_pair_products(d, odd_a, odd_b, add_pair_products(d, even_a, even_b, sum));
#endif
}

#endif
}  // namespace reef::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

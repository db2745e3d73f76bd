// Sums of products of pairs of 16-bit numbers. Include it per target, after hwy/highway.h.
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

#endif
}  // namespace reef::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// The arithmetic of cpu/prepare/fixed_point.h on vectors of int32. Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_FIXED_POINT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_FIXED_POINT_INL_H
#undef REEF_CPU_FAST_FIXED_POINT_INL_H
#else
#define REEF_CPU_FAST_FIXED_POINT_INL_H
#endif

#include <hwy/highway.h>

#include "cpu/prepare/fixed_point.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// One lane has no neighbour to widen into.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply_by_quantized_multiplier(D d, V x, Multiplier m) {
    return hn::Set(d, cpu::multiply_by_quantized_multiplier(hn::GetLane(x), m));
}

#else

/// Precondition: a and b are not both INT32_MIN (multipliers never are).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V saturating_rounding_doubling_high_mul(D d, V a, V b) {
    const hn::Repartition<std::int64_t, D> d64;
    const hn::Repartition<std::uint64_t, D> du64;
    const auto half = hn::Set(d64, std::int64_t{1} << 30);
    const auto upper = [&](V v) {
        return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(du64, v)));
    };
    const auto even = hn::Add(hn::MulEven(a, b), half);
    const auto odd = hn::Add(hn::MulEven(upper(a), upper(b)), half);
    // Bits 31 to 62 of each sum: at the bottom of the even lanes, at the top of the odd ones.
    return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<1>(odd)),
                       hn::BitCast(d, hn::ShiftRight<31>(hn::BitCast(du64, even))));
}

/// exponent is 0 to 31.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rounding_divide_by_pot(D d, V x, int exponent) {
    const auto mask = static_cast<std::int32_t>((std::int64_t{1} << exponent) - 1);
    const V remainder = hn::And(x, hn::Set(d, mask));
    const V threshold = hn::Sub(hn::Set(d, mask >> 1), hn::ShiftRight<31>(x));
    const V above = hn::VecFromMask(d, hn::Gt(remainder, threshold));
    return hn::Sub(hn::ShiftRightSame(x, exponent), above);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply_by_quantized_multiplier(D d, V x, Multiplier m) {
    const int left = m.shift > 0 ? m.shift : 0;
    const int right = m.shift > 0 ? 0 : -m.shift;
    const V high = saturating_rounding_doubling_high_mul(d, hn::ShiftLeftSame(x, left),
                                                         hn::Set(d, m.multiplier));
    return rounding_divide_by_pot(d, high, right);
}

#endif

// nearest() and truncated(): float32 to int32; any value where it lies beyond 32 bits, without the
// instructions that Highway adds for those.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
HWY_INLINE hn::Vec128<std::int32_t> nearest(hn::Vec128<float> v) {
    return hn::Vec128<std::int32_t>{_mm_cvtps_epi32(v.raw)};
}
HWY_INLINE hn::Vec128<std::int32_t> truncated(hn::Vec128<float> v) {
    return hn::Vec128<std::int32_t>{_mm_cvttps_epi32(v.raw)};
}
#if HWY_MAX_BYTES >= 32
HWY_INLINE hn::Vec256<std::int32_t> nearest(hn::Vec256<float> v) {
    return hn::Vec256<std::int32_t>{_mm256_cvtps_epi32(v.raw)};
}
HWY_INLINE hn::Vec256<std::int32_t> truncated(hn::Vec256<float> v) {
    return hn::Vec256<std::int32_t>{_mm256_cvttps_epi32(v.raw)};
}
#endif
#if HWY_MAX_BYTES >= 64
HWY_INLINE hn::Vec512<std::int32_t> nearest(hn::Vec512<float> v) {
    return hn::Vec512<std::int32_t>{_mm512_cvtps_epi32(v.raw)};
}
HWY_INLINE hn::Vec512<std::int32_t> truncated(hn::Vec512<float> v) {
    return hn::Vec512<std::int32_t>{_mm512_cvttps_epi32(v.raw)};
}
#endif
#else
template <class V>
HWY_INLINE auto nearest(V v) {
    return hn::NearestInt(v);
}
template <class V>
HWY_INLINE auto truncated(V v) {
    return hn::ConvertTo(hn::RebindToSigned<hn::DFromV<V>>(), v);
}
#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

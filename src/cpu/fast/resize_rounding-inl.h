// Bytes of RESIZE_BILINEAR's sums. Include it per target, after hwy/highway.h.
#if defined(REEF_CPU_FAST_RESIZE_ROUNDING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_RESIZE_ROUNDING_INL_H
#undef REEF_CPU_FAST_RESIZE_ROUNDING_INL_H
#else
#define REEF_CPU_FAST_RESIZE_ROUNDING_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The nearest to a sum's 2^-kBits, halves away from zero.
template <int kBits, class D, class V = hn::Vec<D>>
HWY_INLINE V rounded(D d, V sum) {
    const V sign = hn::ShiftRight<8 * sizeof(hn::TFromD<D>) - 1>(sum);
    return hn::ShiftRight<kBits>(hn::Add(hn::Add(sum, sign), hn::Set(d, 1 << (kBits - 1))));
}

template <class D>
HWY_INLINE hn::Vec<D> narrow_rounded(D d, hn::Vec<D> sum, std::int8_t /*of*/) {
    const auto sign = hn::ShiftRight<15>(sum);
    // A product by 2^7 in 15 bits: the nearest to 2^-8, halves up.
    return hn::MulFixedPoint15(hn::SaturatedAdd(sum, sign), hn::Set(d, 1 << 7));
}
/// Sums up to 2^16.
template <class D>
HWY_INLINE hn::Vec<D> narrow_rounded(D d, hn::Vec<D> sum, std::uint8_t /*of*/) {
    const hn::RebindToUnsigned<D> unsigned_d;
    return hn::BitCast(
        d, hn::ShiftRight<8>(hn::BitCast(unsigned_d, hn::Add(sum, hn::Set(d, 1 << 7)))));
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// Bytes of RESIZE_BILINEAR's sums. Include it per target, after hwy/highway.h.
#if defined(REEF_CPU_FAST_RESIZE_ROUNDING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_RESIZE_ROUNDING_INL_H
#undef REEF_CPU_FAST_RESIZE_ROUNDING_INL_H
#else
#define REEF_CPU_FAST_RESIZE_ROUNDING_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu/fast/blended_row.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// store(i, to) writes a vector's results of an output row's elements from i on.
template <typename T, class D, class Store>
HWY_INLINE void each_result(D d, std::size_t count, T* HWY_RESTRICT out, const Store& store) {
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(i, out + i);
    if (i == count) return;
    T last[HWY_MAX_BYTES];
    store(i, last);
    std::copy_n(last, count - i, out + i);
}

/// The nearest to a sum's 2^-kBits, halves away from zero.
template <int kBits, class D, class V = hn::Vec<D>>
HWY_INLINE V rounded(D d, V sum) {
    const V sign = hn::ShiftRight<8 * sizeof(hn::TFromD<D>) - 1>(sum);
    return hn::ShiftRight<kBits>(hn::Add(hn::Add(sum, sign), hn::Set(d, 1 << (kBits - 1))));
}

template <class D>
HWY_INLINE hn::Vec<D> narrow_rounded(D d, hn::Vec<D> sum, std::int8_t /*of*/) {
    return rounded<8>(d, sum);
}
/// Sums up to 2^16.
template <class D>
HWY_INLINE hn::Vec<D> narrow_rounded(D d, hn::Vec<D> sum, std::uint8_t /*of*/) {
    const hn::RebindToUnsigned<D> unsigned_d;
    return hn::BitCast(
        d, hn::ShiftRight<8>(hn::BitCast(unsigned_d, hn::Add(sum, hn::Set(d, 1 << 7)))));
}

/// Words of a row of T between two blended rows, from whole vectors of them on.
template <typename T>
class NarrowMix {
  public:
    explicit NarrowMix(const RowPair<std::int16_t>& rows)
        : lower_(rows.lower),
          upper_(rows.upper),
          above_(hn::Set(D(), static_cast<std::int16_t>((1 << rows.bits) - rows.fraction))),
          below_(hn::Set(D(), static_cast<std::int16_t>(rows.fraction))) {}

    HWY_INLINE hn::Vec<hn::ScalableTag<std::int16_t>> operator()(std::size_t i) const {
        const auto sum = hn::Add(hn::Mul(hn::Load(D(), lower_ + i), above_),
                                 hn::Mul(hn::Load(D(), upper_ + i), below_));
        return narrow_rounded(D(), sum, T{});
    }

  private:
    using D = hn::ScalableTag<std::int16_t>;
    const std::int16_t *lower_, *upper_;
    hn::Vec<D> above_, below_;
};

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

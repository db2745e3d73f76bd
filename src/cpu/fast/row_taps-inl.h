// Vectors of a resized row's neighbours in an input row. Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_ROW_TAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_ROW_TAPS_INL_H
#undef REEF_CPU_FAST_ROW_TAPS_INL_H
#else
#define REEF_CPU_FAST_ROW_TAPS_INL_H
#endif

#include <hwy/highway.h>

#include "cpu/fast/row_taps.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Those of the output's elements from i on, a multiple of the vector's length. `row` is of 32-bit
/// elements.
template <bool kScattered, class D>
HWY_INLINE hn::Vec<D> tapped(D d, const hn::TFromD<D>* HWY_RESTRICT row, const RowTaps& taps,
                             std::size_t i) {
    const hn::Rebind<std::int32_t, D> d32;
    const auto indices = hn::Load(d32, taps.indices.get() + i);
    if constexpr (kScattered) return hn::GatherIndex(d, row, indices);
    return hn::TableLookupLanes(hn::LoadU(d, row + taps.begins[i / hn::Lanes(d)]),
                                hn::IndicesFromVec(d, indices));
}

/// use(i, left, right) for each vector of an output row of `count` elements.
template <class D, class Use>
HWY_INLINE void each_tapped_pair(D d, const hn::TFromD<D>* HWY_RESTRICT row, const RowTaps& left,
                                 const RowTaps& right, std::size_t count, const Use& use) {
    const std::size_t lanes = hn::Lanes(d);
    if (left.scattered || right.scattered) {
        const auto either = [&](const RowTaps& taps, std::size_t i) HWY_ATTR {
            return taps.scattered ? tapped<true>(d, row, taps, i) : tapped<false>(d, row, taps, i);
        };
        for (std::size_t i = 0; i < count; i += lanes) use(i, either(left, i), either(right, i));
        return;
    }
    for (std::size_t i = 0; i < count; i += lanes)
        use(i, tapped<false>(d, row, left, i), tapped<false>(d, row, right, i));
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

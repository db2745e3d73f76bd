// Loops over channels in vectors, and limits of floats. Include it per target, after hwy/highway.h.
#if defined(REEF_CPU_FAST_CHANNEL_RUNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_CHANNEL_RUNS_INL_H
#undef REEF_CPU_FAST_CHANNEL_RUNS_INL_H
#else
#define REEF_CPU_FAST_CHANNEL_RUNS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "base/simd.h"
#include "cpu/prepare/quantized.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls store(d, c) for vectors of T that cover [0, channels): the widest that are no wider than
/// all of them. The last one may begin before the end of the one before it.
template <typename T, std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<T>()), class Store>
HWY_INLINE void each_channel_vector(std::size_t channels, const Store& store) {
    if (channels < kLanes) {
        if constexpr (kLanes > 1) each_channel_vector<T, kLanes / 2>(channels, store);
        return;
    }
    const hn::CappedTag<T, kLanes> d;
    std::size_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) store(d, c);
    if (c < channels) store(d, channels - kLanes);
}

/// The same by store(d, c, vectors) of kVectors vectors side by side while there are as many, then
/// of single ones; `vectors` is a std::integral_constant.
template <typename T, std::size_t kVectors, class Store>
HWY_INLINE void each_channel_vectors(std::size_t channels, const Store& store) {
    constexpr std::integral_constant<std::size_t, kVectors> several;
    constexpr std::integral_constant<std::size_t, 1> one;
    const hn::ScalableTag<T> d;
    const std::size_t lanes = hn::Lanes(d);
    if (channels < lanes)
        return each_channel_vector<T>(
            channels, [&](auto narrow, std::size_t c) HWY_ATTR { store(narrow, c, one); });
    std::size_t c = 0;
    for (; c + kVectors * lanes <= channels; c += kVectors * lanes) store(d, c, several);
    for (; c + lanes <= channels; c += lanes) store(d, c, one);
    if (c < channels) store(d, channels - lanes, one);
}

/// What is no number stays none, and a zero keeps its sign, as with std::clamp.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V clamp_floats(D d, V values, Limits<float> limits) {
    const V least = hn::Set(d, limits.min), most = hn::Set(d, limits.max);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    return hn::Min(most, hn::Max(least, values));
#else
    const V low = hn::IfThenElse(hn::Lt(values, least), least, values);
    return hn::IfThenElse(hn::Gt(low, most), most, low);
#endif
}

/// Stores the first `valid` of some vectors' values.
template <class D, class V, std::size_t kVectors>
HWY_INLINE void store_floats(D d, const V (&values)[kVectors], std::size_t valid,
                             float* HWY_RESTRICT out) {
    const std::size_t lanes = hn::Lanes(d);
    if (valid == kVectors * lanes) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
            hn::StoreU(values[v], d, out + v * lanes);
        return;
    }
    alignas(64) float buffer[kVectors * hn::MaxLanes(d)];
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
        hn::Store(values[v], d, buffer + v * lanes);
    std::copy_n(buffer, valid, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

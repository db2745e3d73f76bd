// The loop that vectorised functions of float32 elements share. Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_FLOAT_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_FLOAT_VECTORS_INL_H
#undef REEF_CPU_FAST_FLOAT_VECTORS_INL_H
#else
#define REEF_CPU_FAST_FLOAT_VECTORS_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls vectors(d, i) for [0, count): whole vectors, then single elements.
template <class Vectors>
HWY_INLINE void each_vector(std::size_t count, const Vectors& vectors) {
    const hn::ScalableTag<float> d;
    const hn::CappedTag<float, 1> one;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) vectors(d, i);
    for (; i < count; ++i) vectors(one, i);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

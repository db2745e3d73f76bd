// The loop that vectorised functions of two 8-bit elements share. Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_BINARY_RUN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_BINARY_RUN_INL_H
#undef REEF_CPU_FAST_BINARY_RUN_INL_H
#else
#define REEF_CPU_FAST_BINARY_RUN_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// out[i] = function(a[i * a_step], b[i * b_step]); a step is 0 or 1. `vectors(d, x, y)` is the
/// same on vectors of int32 that hold elements; its results fit T.
template <typename T, class Function, class Vectors>
HWY_INLINE void binary_run(const T* HWY_RESTRICT a, std::size_t a_step, const T* HWY_RESTRICT b,
                           std::size_t b_step, T* HWY_RESTRICT out, std::size_t count,
                           const Function& function, const Vectors& vectors) {
    const hn::ScalableTag<std::int32_t> d;
    const hn::Rebind<T, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    if (count < lanes) {
        for (std::size_t i = 0; i < count; ++i) out[i] = function(a[i * a_step], b[i * b_step]);
        return;
    }
    const auto elements = [&](const T* from, std::size_t step, std::size_t i) HWY_ATTR {
        return step == 0 ? hn::Set(d, static_cast<std::int32_t>(*from))
                         : hn::PromoteTo(d, hn::LoadU(d8, from + i));
    };
    const auto vector_at = [&](std::size_t i) HWY_ATTR {
        const auto result = vectors(d, elements(a, a_step, i), elements(b, b_step, i));
        hn::StoreU(hn::DemoteTo(d8, result), d8, out + i);
    };
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) vector_at(i);
    // The last vector may compute some elements a second time.
    if (i < count) vector_at(count - lanes);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

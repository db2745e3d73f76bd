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
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

/// out[i] is of a[i * a_step] and b[i * b_step]; a step is 0 or 1. `vectors(x, y)` takes and gives
/// vectors of bytes, T's bit patterns. A run shorter than one is copied.
template <typename T, class Vectors>
HWY_INLINE void byte_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
                         std::size_t count, const Vectors& vectors) {
    if (count == 0) return;
    const hn::ScalableTag<std::uint8_t> d8;
    const std::size_t lanes = hn::Lanes(d8);
    const auto* a8 = reinterpret_cast<const std::uint8_t*>(a);
    const auto* b8 = reinterpret_cast<const std::uint8_t*>(b);
    auto* out8 = reinterpret_cast<std::uint8_t*>(out);
    const auto first_a = hn::Set(d8, *a8), first_b = hn::Set(d8, *b8);
    const auto vector_at = [&](const std::uint8_t* x, const std::uint8_t* y, std::uint8_t* to)
                               HWY_ATTR {
                                   hn::StoreU(vectors(a_step == 0 ? first_a : hn::LoadU(d8, x),
                                                      b_step == 0 ? first_b : hn::LoadU(d8, y)),
                                              d8, to);
                               };
    if (count < lanes) {
        alignas(HWY_MAX_BYTES) std::uint8_t x[HWY_MAX_BYTES] = {}, y[HWY_MAX_BYTES] = {},
                                            results[HWY_MAX_BYTES];
        if (a_step != 0) std::memcpy(x, a8, count);
        if (b_step != 0) std::memcpy(y, b8, count);
        vector_at(x, y, results);
        std::memcpy(out8, results, count);
        return;
    }
    std::size_t i = 0;
    const auto elements_at = [&](std::size_t from) HWY_ATTR {
        vector_at(a8 + from * a_step, b8 + from * b_step, out8 + from);
    };
    for (; i + lanes <= count; i += lanes) elements_at(i);
    // The last vector may compute some elements a second time.
    if (i < count) elements_at(count - lanes);
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

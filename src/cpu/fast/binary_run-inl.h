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

#if HWY_TARGET == HWY_SCALAR

/// out[i] = function(a[i * a_step], b[i * b_step]); a step is 0 or 1.
template <typename T, class Function>
void element_run(const T* a, std::size_t a_step, const T* b, std::size_t b_step, T* out,
                 std::size_t count, const Function& function) {
    for (std::size_t i = 0; i < count; ++i) out[i] = function(a[i * a_step], b[i * b_step]);
}

#else

/// Of fewer bytes than a vector has, the results.
template <class D, class V, class Vectors>
HWY_NOINLINE void short_byte_run(D d, const std::uint8_t* a, std::size_t a_step, V first_a,
                                 const std::uint8_t* b, std::size_t b_step, V first_b,
                                 std::uint8_t* out, std::size_t count, Vectors vectors) {
#if HWY_TARGET <= HWY_AVX3
    const auto mask = hn::FirstN(d, count);
    const V x = a_step == 0 ? first_a : hn::MaskedLoad(mask, d, a);
    const V y = b_step == 0 ? first_b : hn::MaskedLoad(mask, d, b);
    hn::BlendedStore(vectors(x, y), mask, d, out);
#else
    const hn::Half<D> half;
    const std::size_t lanes = hn::Lanes(half);
    if (count >= lanes) {
        // The upper half may compute some elements of the lower one a second time.
        const std::size_t last = count - lanes;
        const auto both = [&](const std::uint8_t* from) HWY_ATTR {
            return hn::Combine(d, hn::LoadU(half, from + last), hn::LoadU(half, from));
        };
        const V results = vectors(a_step == 0 ? first_a : both(a), b_step == 0 ? first_b : both(b));
        hn::StoreU(hn::LowerHalf(half, results), half, out);
        hn::StoreU(hn::UpperHalf(half, results), half, out + last);
        return;
    }
    alignas(HWY_MAX_BYTES) std::uint8_t x[HWY_MAX_BYTES] = {}, y[HWY_MAX_BYTES] = {};
    if (a_step != 0) std::memcpy(x, a, count);
    if (b_step != 0) std::memcpy(y, b, count);
    hn::Store(
        vectors(a_step == 0 ? first_a : hn::Load(d, x), b_step == 0 ? first_b : hn::Load(d, y)), d,
        x);
    std::memcpy(out, x, count);
#endif
}

/// out[i] is of a[i * a_step] and b[i * b_step]; a step is 0 or 1. `vectors(x, y)` takes and gives
/// vectors of bytes, T's bit patterns.
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
    if (count < lanes)
        return short_byte_run(d8, a8, a_step, first_a, b8, b_step, first_b, out8, count, vectors);
    const auto vector_at = [&](std::size_t i) HWY_ATTR {
        const auto x = a_step == 0 ? first_a : hn::LoadU(d8, a8 + i);
        const auto y = b_step == 0 ? first_b : hn::LoadU(d8, b8 + i);
        hn::StoreU(vectors(x, y), d8, out8 + i);
    };
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) vector_at(i);
    // The last vector may compute some elements a second time.
    if (i < count) vector_at(count - lanes);
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

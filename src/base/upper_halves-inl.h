// The upper halves of vector registers. Include it per target, after hwy/highway.h.
#if defined(REEF_BASE_UPPER_HALVES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_BASE_UPPER_HALVES_INL_H
#undef REEF_BASE_UPPER_HALVES_INL_H
#else
#define REEF_BASE_UPPER_HALVES_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::HWY_NAMESPACE {

/// For the end of a kernel that calls functions which are not inlined: g++ 12 leaves the upper
/// halves as they are on some ways out of it, and Intel's processors then let the baseline's next
/// vector instruction wait for the whole register (25 ns on Emerald Rapids).
HWY_INLINE void clear_upper_halves() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    _mm256_zeroupper();
#endif
}

}  // namespace reef::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

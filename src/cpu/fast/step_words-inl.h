// Steps that float32 has computed with 16 bits behind the point, as words. Include it per target,
// after hwy/highway.h.
#if defined(REEF_CPU_FAST_STEP_WORDS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_STEP_WORDS_INL_H
#undef REEF_CPU_FAST_STEP_WORDS_INL_H
#else
#define REEF_CPU_FAST_STEP_WORDS_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/fixed_point-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

/// Whole steps below numbers with 16 bits behind the point, which float32 has computed. Wherever a
/// byte has room for it, a number is off by less than `most_off` of its last bit, as who computes
/// it says; numbers that start as much higher are sure unless less than twice that is behind their
/// point.
struct StepWords {
    using BehindTag = hn::RebindToUnsigned<WordTag>;
    using Behind = hn::Vec<BehindTag>;

    static constexpr float one = 0x1p16F;

    /// Of numbers that may have any value, or none: nothing is behind the point of those beyond 16
    /// bits. x86 converts them all to the lowest int32. Others saturate, above to 0x7FFFFFFF, whose
    /// lower half would look sure.
    template <class V>
    static HWY_INLINE Quarter of_any(V numbers) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
        return nearest(numbers);
#else
        return nearest(hn::Min(numbers, hn::Set(hn::DFromV<V>(), 0x7FFFp16F)));
#endif
    }

    /// Elements of words[0] are those of fixed[0] and fixed[1] by turns, from fixed[0] on.
    HWY_INLINE explicit StepWords(const Quarter (&fixed)[4]) {
        const WordTag d16;
        const BehindTag du16;
        Behind behind[2];
        REEF_UNROLL for (std::size_t k = 0; k < 2; ++k) {
            const Quarter even = fixed[2 * k], odd = fixed[2 * k + 1];
            words[k] =
                hn::OddEven(hn::BitCast(d16, odd), hn::BitCast(d16, hn::ShiftRight<16>(even)));
            behind[k] =
                hn::OddEven(hn::BitCast(du16, hn::ShiftLeft<16>(odd)), hn::BitCast(du16, even));
        }
        least_behind = hn::Min(behind[0], behind[1]);
    }

    /// Of several words, the least of each lane.
    static HWY_INLINE bool are_sure(Behind least_behind, std::uint16_t most_off) {
        const BehindTag d;
        const auto doubtful = hn::Set(d, static_cast<std::uint16_t>(2 * most_off));
        return hn::AllFalse(d, hn::Eq(hn::SaturatedSub(least_behind, doubtful), hn::Zero(d)));
    }
    [[nodiscard]] HWY_INLINE bool are_sure(std::uint16_t most_off) const {
        return are_sure(least_behind, most_off);
    }

    hn::Vec<WordTag> words[2];
    Behind least_behind;
};

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

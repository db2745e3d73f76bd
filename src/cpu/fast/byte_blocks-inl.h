// Bytes of either sign from 0, and a vector of them as four of int32, and back. Include it per
// target, after hwy/highway.h.
#if defined(REEF_CPU_FAST_BYTE_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_BYTE_BLOCKS_INL_H
#undef REEF_CPU_FAST_BYTE_BLOCKS_INL_H
#else
#define REEF_CPU_FAST_BYTE_BLOCKS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "cpu/prepare/quantized.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What bytes of T are above its least value, or back.
template <typename T, class D, class V = hn::Vec<D>>
HWY_INLINE V from_least(D d, V bytes) {
    if constexpr (std::is_signed_v<T>) return hn::Xor(bytes, hn::Set(d, 0x80));
    return bytes;
}

#if HWY_TARGET != HWY_SCALAR

using ByteTag = hn::ScalableTag<std::uint8_t>;
using WordTag = hn::ScalableTag<std::int16_t>;
using QuarterTag = hn::ScalableTag<std::int32_t>;
using Quarter = hn::Vec<QuarterTag>;

/// The blocks of 16 bytes that block(b) gives, one behind the other.
template <class Block>
HWY_INLINE hn::Vec<ByteTag> joined_blocks(const Block& block) {
    if constexpr (HWY_MAX_BYTES == 16) {
        return block(0);
    } else if constexpr (HWY_MAX_BYTES == 32) {
        return hn::Combine(ByteTag(), block(1), block(0));
    } else {
        const hn::Half<ByteTag> half;
        return hn::Combine(ByteTag(), hn::Combine(half, block(3), block(2)),
                           hn::Combine(half, block(1), block(0)));
    }
}

/// Instructions that widen and narrow do so within 16 bytes of a vector: words and quarters hold
/// the elements in orders of their own, which narrowed_words() and narrowed_bytes() undo.
HWY_INLINE void widen_bytes(hn::Vec<ByteTag> bytes, hn::Vec<WordTag> (&words)[2]) {
    const ByteTag d8;
    const WordTag d16;
    words[0] = hn::BitCast(d16, hn::InterleaveLower(d8, bytes, hn::Zero(d8)));
    words[1] = hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, hn::Zero(d8)));
}

/// Words that are the lower and the upper halves of int32.
HWY_INLINE void join_words(const hn::Vec<WordTag> (&lower)[2], const hn::Vec<WordTag> (&upper)[2],
                           Quarter (&quarters)[4]) {
    const WordTag d16;
    const QuarterTag d32;
    REEF_UNROLL for (std::size_t k = 0; k < 2; ++k) {
        quarters[2 * k] = hn::BitCast(d32, hn::InterleaveLower(d16, lower[k], upper[k]));
        quarters[2 * k + 1] = hn::BitCast(d32, hn::InterleaveUpper(d16, lower[k], upper[k]));
    }
}

HWY_INLINE void widen_bytes(hn::Vec<ByteTag> bytes, Quarter (&quarters)[4]) {
    const hn::Vec<WordTag> none[2] = {hn::Zero(WordTag()), hn::Zero(WordTag())};
    hn::Vec<WordTag> words[2];
    widen_bytes(bytes, words);
    join_words(words, none, quarters);
}

/// Two vectors of int16, saturated to T: within 16 bytes those of `lo` first. Highway (1.0) narrows
/// to bytes one vector at a time, in the order of elements, which takes three instructions on x86.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
template <typename T>
HWY_INLINE hn::Vec128<std::uint8_t> narrowed_words(hn::Vec128<std::int16_t> lo,
                                                   hn::Vec128<std::int16_t> hi) {
    return {std::is_signed_v<T> ? _mm_packs_epi16(lo.raw, hi.raw)
                                : _mm_packus_epi16(lo.raw, hi.raw)};
}
#if HWY_MAX_BYTES >= 32
template <typename T>
HWY_INLINE hn::Vec256<std::uint8_t> narrowed_words(hn::Vec256<std::int16_t> lo,
                                                   hn::Vec256<std::int16_t> hi) {
    return {std::is_signed_v<T> ? _mm256_packs_epi16(lo.raw, hi.raw)
                                : _mm256_packus_epi16(lo.raw, hi.raw)};
}
#endif
#if HWY_MAX_BYTES >= 64
template <typename T>
HWY_INLINE hn::Vec512<std::uint8_t> narrowed_words(hn::Vec512<std::int16_t> lo,
                                                   hn::Vec512<std::int16_t> hi) {
    return {std::is_signed_v<T> ? _mm512_packs_epi16(lo.raw, hi.raw)
                                : _mm512_packus_epi16(lo.raw, hi.raw)};
}
#endif
#else
template <typename T, class V>
HWY_INLINE auto narrowed_words(V lo, V hi) {
    const hn::Repartition<T, hn::DFromV<V>> d;
    const hn::Half<decltype(d)> half;
    return hn::BitCast(hn::RebindToUnsigned<decltype(d)>(),
                       hn::Combine(d, hn::DemoteTo(half, hi), hn::DemoteTo(half, lo)));
}
#endif

/// Saturated to T.
template <typename T>
HWY_INLINE hn::Vec<ByteTag> narrowed_bytes(const Quarter (&quarters)[4]) {
    const WordTag d16;
    return narrowed_words<T>(hn::ReorderDemote2To(d16, quarters[0], quarters[1]),
                             hn::ReorderDemote2To(d16, quarters[2], quarters[3]));
}

/// T's bytes, in its range. The range's ends are values of T, so that saturation cannot show.
template <typename T>
HWY_INLINE hn::Vec<ByteTag> in_range(hn::Vec<ByteTag> saturated, ClampRange range) {
    const hn::ScalableTag<T> d;
    return hn::BitCast(ByteTag(),
                       hn::Clamp(hn::BitCast(d, saturated), hn::Set(d, static_cast<T>(range.min)),
                                 hn::Set(d, static_cast<T>(range.max))));
}

template <typename T>
HWY_INLINE hn::Vec<ByteTag> clamped_bytes(const Quarter (&quarters)[4], ClampRange range) {
    return in_range<T>(narrowed_bytes<T>(quarters), range);
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

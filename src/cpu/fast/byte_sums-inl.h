// Sums of bytes over windows of pixels, channel by channel, and their means. Include it per target,
// after hwy/highway.h.
//
// Bytes count from the smallest value of their type, so that sums are not negative. Those of even
// and of odd channels are in vectors of their own: no element moves to another lane.
#if defined(REEF_CPU_FAST_BYTE_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_BYTE_SUMS_INL_H
#undef REEF_CPU_FAST_BYTE_SUMS_INL_H
#else
#define REEF_CPU_FAST_BYTE_SUMS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/simd.h"
#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/prepare/exact_quotient.h"
#include "cpu/prepare/reducing.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// rows x columns pixels of `channels` elements; rows lie `row_pitch` elements apart.
struct Window {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t row_pitch = 0;
    std::size_t channels = 0;
};

/// Fewer bytes than fill two lanes of 32 bits are summed one by one.
inline constexpr std::size_t least_byte_lanes = 8;

template <typename T>
inline constexpr std::int32_t least_value = std::is_signed_v<T> ? -128 : 0;

template <typename T, class D>
HWY_INLINE hn::Vec<D> load_from_least(D d, const T* in) {
    return from_least<T>(d, hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(in)));
}
template <typename T, class D, class V>
HWY_INLINE void store_from_least(D d, V bytes, T* out) {
    hn::StoreU(from_least<T>(d, bytes), d, reinterpret_cast<std::uint8_t*>(out));
}

/// D: of uint16.
template <class D>
struct PairSums {
    // One that the compiler makes is not for the target's instructions, which those of Highway's
    // vectors for ARM are: g++ cannot inline them there.
    HWY_INLINE PairSums() {}
    HWY_INLINE PairSums(hn::Vec<D> of_even, hn::Vec<D> of_odd) : even(of_even), odd(of_odd) {}

    hn::Vec<D> even, odd;
};

template <class D, class D8 = hn::Repartition<std::uint8_t, D>>
HWY_INLINE hn::Vec<D8> bytes_of(D /*d*/, const PairSums<D>& pairs) {
    return hn::BitCast(D8(), hn::Or(pairs.even, hn::ShiftLeft<8>(pairs.odd)));
}

/// Of kVectors vectors of uint8 side by side. Precondition: a window of at most 256 pixels.
template <std::size_t kVectors, typename T, class D, class D16 = hn::Repartition<std::uint16_t, D>>
HWY_INLINE void sum_pairs(D d, const T* HWY_RESTRICT in, const Window& window,
                          PairSums<D16> (&sums)[kVectors]) {
    const D16 d16;
    const std::size_t lanes = hn::Lanes(d);
    // 256 times the odd channels' sums plus the even ones', modulo 2^16.
    hn::Vec<D16> both[kVectors], odd[kVectors];
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) both[v] = odd[v] = hn::Zero(d16);
    for (std::size_t y = 0; y < window.rows; ++y) {
        const T* HWY_RESTRICT pixel = in + y * window.row_pitch;
        for (std::size_t x = 0; x < window.columns; ++x, pixel += window.channels)
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
                const auto pairs = hn::BitCast(d16, load_from_least(d, pixel + v * lanes));
                both[v] = hn::Add(both[v], pairs);
                odd[v] = hn::Add(odd[v], hn::ShiftRight<8>(pairs));
            }
    }
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
        sums[v] = {hn::Sub(both[v], hn::ShiftLeft<8>(odd[v])), odd[v]};
}

/// ByteMean on vectors of T's sums. D: of uint16.
template <typename T, class D, class V = hn::Vec<D>>
class RoundedMean {
  public:
    HWY_INLINE RoundedMean(D d, const ByteMean& mean)
        : bias_(hn::Set(d, mean.bias)),
          factor_(hn::Set(d, mean.factor)),
          negative_below_(hn::Set(d, mean.negative_below)),
          shift_(mean.shift) {}

    HWY_INLINE V operator()(V sum) const {
        V dividend = hn::Add(sum, bias_);
        if constexpr (std::is_signed_v<T>) {
            const V below = hn::SaturatedSub(negative_below_, sum);
            dividend = hn::Sub(dividend, hn::Min(below, hn::Set(D(), std::uint16_t{1})));
        }
        return hn::ShiftRightSame(hn::MulHigh(dividend, factor_), shift_);
    }

  private:
    V bias_, factor_, negative_below_;
    int shift_;
};

/// Sums of the channels 4i + k, for k from 0 to 3. D: of int32.
template <class D>
struct QuadSums {
    HWY_INLINE QuadSums() {}

    hn::Vec<D> of[4];
};

/// Elements from 0 to 255.
template <class D, class D8 = hn::Repartition<std::uint8_t, D>>
HWY_INLINE hn::Vec<D8> bytes_of(D /*d*/, const QuadSums<D>& quads) {
    const auto low = hn::Or(quads.of[0], hn::ShiftLeft<8>(quads.of[1]));
    const auto high = hn::Or(quads.of[2], hn::ShiftLeft<8>(quads.of[3]));
    return hn::BitCast(D8(), hn::Or(low, hn::ShiftLeft<16>(high)));
}

/// Adds words of 16 bits: the lower ones of `even` and `odd` to the first two sums, the upper ones
/// to the others.
template <class D32, class DU32 = hn::RebindToUnsigned<D32>>
HWY_INLINE void add_words(D32 d32, hn::Vec<DU32> even, hn::Vec<DU32> odd, QuadSums<D32>& sum) {
    const auto low = hn::Set(DU32(), 0xFFFF);
    sum.of[0] = hn::Add(sum.of[0], hn::BitCast(d32, hn::And(even, low)));
    sum.of[1] = hn::Add(sum.of[1], hn::BitCast(d32, hn::And(odd, low)));
    sum.of[2] = hn::Add(sum.of[2], hn::BitCast(d32, hn::ShiftRight<16>(even)));
    sum.of[3] = hn::Add(sum.of[3], hn::BitCast(d32, hn::ShiftRight<16>(odd)));
}

/// Of windows of any size, of the elements themselves.
template <std::size_t kVectors, typename T, class D, class D32 = hn::Repartition<std::int32_t, D>>
HWY_INLINE void sum_quads(D d, const T* HWY_RESTRICT in, const Window& window,
                          QuadSums<D32> (&sums)[kVectors]) {
    constexpr std::size_t most = ByteMean::most;
    const D32 d32;
    const hn::Repartition<std::uint32_t, D> du32;
    const auto start = static_cast<std::int64_t>(window.rows * window.columns) * -least_value<T>;
    for (auto& sum : sums)
        for (auto& lane : sum.of) lane = hn::Set(d32, static_cast<std::int32_t>(-start));
    const std::size_t columns = std::min(window.columns, most), rows = most / columns;
    for (std::size_t y = 0; y < window.rows; y += rows) {
        for (std::size_t x = 0; x < window.columns; x += columns) {
            PairSums<hn::Repartition<std::uint16_t, D>> pairs[kVectors];
            sum_pairs(d, in + y * window.row_pitch + x * window.channels,
                      Window{std::min(rows, window.rows - y), std::min(columns, window.columns - x),
                             window.row_pitch, window.channels},
                      pairs);
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) add_words(
                d32, hn::BitCast(du32, pairs[v].even), hn::BitCast(du32, pairs[v].odd), sums[v]);
        }
    }
}

/// floor(x / divisor), of unsigned x up to 2^31. D: of int32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V quotients(D d, V x, const Quotient& by) {
    const hn::Repartition<std::uint32_t, D> du32;
    const hn::Repartition<std::uint64_t, D> du64;
    const auto dividend = hn::BitCast(du32, x);
    const auto upper = hn::BitCast(du32, hn::ShiftRight<32>(hn::BitCast(du64, dividend)));
    const auto factor = hn::Set(du32, by.factor);
    const auto even = hn::ShiftRightSame(hn::MulEven(dividend, factor), by.shift);
    const auto odd = hn::ShiftRightSame(hn::MulEven(upper, factor), by.shift);
    return hn::BitCast(
        d, hn::OddEven(hn::BitCast(du32, hn::ShiftLeft<32>(odd)), hn::BitCast(du32, even)));
}

/// x / divisor in C: the fraction is dropped.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V truncated_quotients(D d, V x, const Quotient& by) {
    const V sign = hn::ShiftRight<31>(x);
    return hn::Sub(hn::Xor(quotients(d, hn::Sub(hn::Xor(x, sign), sign), by), sign), sign);
}

/// x / divisor, half a divisor further from 0 beforehand, modulo 2^32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rounded_quotients(D d, V x, std::int32_t half, const Quotient& by) {
    const V away = hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, half), hn::Set(d, -half));
    return truncated_quotients(d, hn::Add(x, away), by);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

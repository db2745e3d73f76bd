#include <bit>
#include <cmath>
#include <type_traits>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/quantize.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/reference/quantize.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The vector form of steps_from_float, of so many values as D has lanes; far from 0 other steps
/// that the clamp to the type makes equal.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> rounded_steps(D d, const float* values,
                                                        AffineParameters to) {
    const hn::RebindToSigned<D> d32;
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, decltype(dd)> few;
    const hn::Rebind<std::int32_t, decltype(dd)> few32;
    constexpr double far = 1024;  // beyond all 8-bit values, within what narrows to them
    const auto scale = hn::Set(dd, static_cast<double>(to.scale));
    HWY_ALIGN std::int32_t steps[HWY_MAX_BYTES / sizeof(std::int32_t)];
    // The zero point leaves 32 bits of none of them.
    bool has_30_bits = true;
    for (std::size_t i = 0; i < hn::Lanes(d); i += hn::Lanes(dd)) {
        const auto quotient = hn::Div(hn::PromoteTo(dd, hn::LoadU(few, values + i)), scale);
        // What is no number is not below it either.
        has_30_bits =
            has_30_bits && hn::AllTrue(dd, hn::Lt(hn::Abs(quotient), hn::Set(dd, 0x1p30)));
        const auto limited = hn::Min(hn::Max(quotient, hn::Set(dd, -far)), hn::Set(dd, far));
        const auto whole = hn::PromoteTo(dd, hn::DemoteTo(few32, limited));
        const auto is_half = hn::Ge(hn::Abs(hn::Sub(limited, whole)), hn::Set(dd, 0.5));
        const auto away = hn::CopySign(hn::Set(dd, 1.0), limited);
        const auto rounded = hn::Add(whole, hn::IfThenElseZero(is_half, away));
        hn::StoreU(hn::DemoteTo(few32, rounded), few32, steps + i);
    }
    if (HWY_UNLIKELY(!has_30_bits)) {
        for (std::size_t i = 0; i < hn::Lanes(d); ++i) steps[i] = steps_from_float(values[i], to);
        return hn::Load(d32, steps);
    }
    return hn::Add(hn::Load(d32, steps), hn::Set(d32, to.zero_point));
}

/// Clamped to the type. Highway's x86 form of it (1.0) takes steps of 2^15 to 2^15 + 255 for their
/// lowest byte where the type is unsigned.
template <class D8, class V>
HWY_INLINE hn::Vec<D8> clamped(D8 d8, V steps) {
    if constexpr (std::is_signed_v<hn::TFromD<D8>>)
        return hn::DemoteTo(d8, steps);
    else
        return hn::DemoteTo(d8, hn::Min(steps, hn::Set(hn::Rebind<std::int32_t, D8>(), 255)));
}

/// Of so many values; gives how many of the first whole vectors of float32 held.
template <typename T>
HWY_NOINLINE std::size_t rounded_run(const float* in, T* out, std::size_t count,
                                     AffineParameters to) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<T, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(clamped(d8, rounded_steps(d, in + i, to)), d8, out + i);
    return i;
}

#if HWY_TARGET != HWY_SCALAR

/// By the scale's reciprocal, of as many values as a vector has bytes, as bits of T. A sum with
/// `rounder` is a number of steps of 12 bits behind the point, and a half: where products are
/// rounded before they are added, too, it is off by less than its last bit, up to 2^9 steps, beyond
/// which results are at their limits. So its whole steps are right unless the bits behind the point
/// are all 0, where the value may lie in the middle of two steps: what it is above the middle
/// decides there.
class ByteSteps {
  public:
    /// Whether the reciprocal is as exact as that, and no difference rounds to 0.
    static bool serves(AffineParameters to) {
        return to.scale >= 0x1p-100F && to.scale <= 0x1p100F && std::abs(to.zero_point) <= 256;
    }

    /// Precondition: it serves.
    explicit ByteSteps(AffineParameters to)
        : scale_(to.scale), reciprocal_(1 / to.scale), zero_(static_cast<float>(to.zero_point)) {
        const hn::Repartition<std::uint32_t, ByteTag> d32;
        constexpr std::size_t in_block = 4;
        const std::size_t blocks = hn::Lanes(d32) / in_block;
        for (std::size_t i = 0; i < hn::Lanes(d32); ++i)
            order_[i] = static_cast<std::int32_t>(i % blocks * in_block + i / blocks);
    }

    /// `sure` is false where some may be wrong: of what lies next to a middle, and of results
    /// beyond 16 bits.
    template <typename T>
    HWY_INLINE hn::Vec<ByteTag> of(const float* HWY_RESTRICT from, bool& sure) const {
        Quarter steps[4], behind[4];
        sums_of(from, steps, behind);
        const auto least = hn::Min(hn::Min(behind[0], behind[1]), hn::Min(behind[2], behind[3]));
        const auto is_middle = hn::Eq(least, hn::Zero(QuarterTag()));
        const Words words(steps);
        // Both, for one branch is less than two.
        const bool is_apart = hn::AllFalse(QuarterTag(), is_middle);
        const bool is_within = hn::AllFalse(WordTag(), words.beyond());
        sure = (static_cast<int>(is_apart) & static_cast<int>(is_within)) != 0;
        return in_order(narrowed_words<T>(words.lo, words.hi));
    }

    /// The same with middles settled, which takes twice as long; `known` is false of results beyond
    /// 16 bits. Only for machines that round the difference from a product once.
    template <typename T>
    HWY_NOINLINE hn::Vec<ByteTag> settled(const float* HWY_RESTRICT from, bool& known) const {
        const hn::ScalableTag<float> d;
        Quarter steps[4], behind[4];
        sums_of(from, steps, behind);
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) steps[k] =
            less_below_middles(hn::LoadU(d, from + k * hn::Lanes(d)), steps[k], behind[k]);
        const Words words(steps);
        known = hn::AllFalse(WordTag(), words.beyond());
        return in_order(narrowed_words<T>(words.lo, words.hi));
    }

  private:
    // Of sums from 2^11 to 2^12 the last bit is 2^-12. Floats are ordered as their bits are, so
    // that those of others, less the bits of `rounder`, are beyond every result's limits on the
    // same side; and of sums below 2^-5, from 2^27 on, or that are no numbers, beyond 16 bits.
    static constexpr int point = 12;
    static constexpr float rounder = 0x1.8p11F;

    struct Words {
        HWY_INLINE explicit Words(const Quarter (&steps)[4])
            : lo(hn::ReorderDemote2To(WordTag(), steps[0], steps[1])),
              hi(hn::ReorderDemote2To(WordTag(), steps[2], steps[3])) {}
        [[nodiscard]] HWY_INLINE hn::Mask<WordTag> beyond() const {
            const WordTag d16;
            return hn::Or(hn::Eq(hn::Max(lo, hi), hn::Set(d16, INT16_MAX)),
                          hn::Eq(hn::Min(lo, hi), hn::Set(d16, INT16_MIN)));
        }

        hn::Vec<WordTag> lo, hi;
    };

    /// Whole steps, and what is behind the point.
    HWY_INLINE void sums_of(const float* HWY_RESTRICT from, Quarter (&steps)[4],
                            Quarter (&behind)[4]) const {
        const hn::ScalableTag<float> d;
        const QuarterTag d32;
        const auto origin = hn::Set(d, rounder + 0.5F + zero_);
        const auto zero = hn::Set(d32, std::bit_cast<std::int32_t>(rounder));
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            const auto values = hn::LoadU(d, from + k * hn::Lanes(d));
            const auto sum = hn::MulAdd(values, hn::Set(d, reciprocal_), origin);
            const auto fixed = hn::Sub(hn::BitCast(d32, sum), zero);
            steps[k] = hn::ShiftRight<point>(fixed);
            behind[k] = hn::And(fixed, hn::Set(d32, (1 << point) - 1));
        }
    }

    /// One step less where the value is below the middle, or in it and below 0: away from 0.
    template <class V>
    HWY_INLINE Quarter less_below_middles(V values, Quarter steps, Quarter behind) const {
        const hn::DFromV<V> d;
        const QuarterTag d32;
        const auto middle = hn::Sub(hn::ConvertTo(d, steps), hn::Set(d, zero_ + 0.5F));
        const auto above = hn::NegMulAdd(middle, hn::Set(d, scale_), values);
        const auto none = hn::Zero(d);
        const auto is_less =
            hn::Or(hn::Lt(above, none), hn::And(hn::Eq(above, none), hn::Lt(values, none)));
        const auto less = hn::VecFromMask(d32, hn::RebindMask(d32, is_less));
        return hn::Add(steps, hn::IfThenElseZero(hn::Eq(behind, hn::Zero(d32)), less));
    }

    HWY_INLINE hn::Vec<ByteTag> in_order(hn::Vec<ByteTag> bytes) const {
        if constexpr (HWY_MAX_BYTES == 16) return bytes;
        const auto as_steps = hn::BitCast(QuarterTag(), bytes);
        const auto order = hn::SetTableIndices(QuarterTag(), order_);
        return hn::BitCast(ByteTag(), hn::TableLookupLanes(as_steps, order));
    }

    float scale_, reciprocal_, zero_;
    std::int32_t order_[HWY_MAX_BYTES / sizeof(std::int32_t)] = {};
};

/// How many of the first values are done.
template <typename T>
HWY_INLINE std::size_t whole_vectors(const float* in, T* out, std::size_t count,
                                     AffineParameters to) {
    if (!ByteSteps::serves(to)) return 0;
    const ByteTag bytes;
    const ByteSteps steps(to);
    const std::size_t lanes = hn::Lanes(bytes);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        auto* const bytes_out = reinterpret_cast<std::uint8_t*>(out + i);
        bool known = false;
        hn::StoreU(steps.of<T>(in + i, known), bytes, bytes_out);
        if (HWY_LIKELY(known)) continue;
        if (HWY_NATIVE_FMA) hn::StoreU(steps.settled<T>(in + i, known), bytes, bytes_out);
        if (!known) rounded_run(in + i, out + i, lanes, to);
    }
    return i;
}

#else

template <typename T>
HWY_INLINE std::size_t whole_vectors(const float* /*in*/, T* /*out*/, std::size_t /*count*/,
                                     AffineParameters /*to*/) {
    return 0;
}

#endif

template <typename T>
void quantize_run(const float* in, T* out, std::size_t count, AffineParameters to) {
    std::size_t i = whole_vectors(in, out, count, to);
    i += rounded_run(in + i, out + i, count - i, to);
    const FromFloat<T> one{to};
    for (; i < count; ++i) out[i] = one(in[i]);
}

/// A difference of two elements and its product with a scale have 41 bits at most, which float64
/// holds: the product of float32 is rounded once, too.
template <typename T>
void dequantize_run(const T* in, float* out, std::size_t count, AffineParameters from) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> d32;
    const hn::Rebind<T, decltype(d)> few;
    const auto zero = hn::Set(d32, from.zero_point);
    const auto scale = hn::Set(d, from.scale);
    const std::size_t lanes = hn::Lanes(d);
    const auto vector_at = [&](std::size_t i) HWY_ATTR {
        const auto steps = hn::Sub(hn::PromoteTo(d32, hn::LoadU(few, in + i)), zero);
        hn::StoreU(hn::Mul(hn::ConvertTo(d, steps), scale), d, out + i);
    };
    std::size_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes)
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) vector_at(i + k * lanes);
    for (; i + lanes <= count; i += lanes) vector_at(i);
    for (; i < count; ++i) out[i] = static_cast<float>(in[i] - from.zero_point) * from.scale;
}

void quantize_u8(const float* in, std::uint8_t* out, std::size_t count, AffineParameters to) {
    quantize_run(in, out, count, to);
}

void quantize_i8(const float* in, std::int8_t* out, std::size_t count, AffineParameters to) {
    quantize_run(in, out, count, to);
}

void dequantize_u8(const std::uint8_t* in, float* out, std::size_t count, AffineParameters from) {
    dequantize_run(in, out, count, from);
}
void dequantize_i8(const std::int8_t* in, float* out, std::size_t count, AffineParameters from) {
    dequantize_run(in, out, count, from);
}
void dequantize_i16(const std::int16_t* in, float* out, std::size_t count, AffineParameters from) {
    dequantize_run(in, out, count, from);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(quantize_u8);
HWY_EXPORT(quantize_i8);
HWY_EXPORT(dequantize_u8);
HWY_EXPORT(dequantize_i8);
HWY_EXPORT(dequantize_i16);

void quantize_fast(const float* in, std::uint8_t* out, std::size_t count, AffineParameters to) {
    HWY_DYNAMIC_DISPATCH(quantize_u8)(in, out, count, to);
}

void quantize_fast(const float* in, std::int8_t* out, std::size_t count, AffineParameters to) {
    HWY_DYNAMIC_DISPATCH(quantize_i8)(in, out, count, to);
}

void dequantize_fast(const std::uint8_t* in, float* out, std::size_t count, AffineParameters from) {
    HWY_DYNAMIC_DISPATCH(dequantize_u8)(in, out, count, from);
}

void dequantize_fast(const std::int8_t* in, float* out, std::size_t count, AffineParameters from) {
    HWY_DYNAMIC_DISPATCH(dequantize_i8)(in, out, count, from);
}

void dequantize_fast(const std::int16_t* in, float* out, std::size_t count, AffineParameters from) {
    HWY_DYNAMIC_DISPATCH(dequantize_i16)(in, out, count, from);
}

}  // namespace reef::cpu
#endif

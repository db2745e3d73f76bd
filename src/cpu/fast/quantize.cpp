#include <cmath>
#include <type_traits>
#include <utility>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/quantize.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/fixed_point-inl.h"
#include "cpu/fast/step_words-inl.h"
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

/// By the scale's reciprocal, of as many values as a vector has bytes, as bits of T (StepWords).
class ByteSteps {
  public:
    /// Of up to 256 steps, 2^24 last bits: 1 for the factor, half each for the product, the sum and
    /// the number.
    static constexpr std::uint16_t most_off = 3;

    /// Whether the reciprocal is as exact as that, and no difference rounds to 0.
    static bool serves(AffineParameters to) {
        return to.scale >= 0x1p-100F && to.scale <= 0x1p100F && to.zero_point >= -128 &&
               to.zero_point <= 255;
    }

    /// Precondition: it serves. Vectors hold what scalars side by side would have to be broadcast
    /// from with every use.
    explicit ByteSteps(AffineParameters to)
        : scale_(hn::Set(FloatTag(), to.scale)),
          factor_(hn::Set(FloatTag(), 1 / to.scale * StepWords::one)),
          zero_(static_cast<float>(to.zero_point)),
          start_(hn::Set(FloatTag(), (zero_ + 0.5F) * StepWords::one + most_off)),
          turns_(hn::LoadDup128(ByteTag(), turns)),
          order_(order_of_blocks()) {}

    /// Some may be wrong where `least_behind` says so: of what lies next to a middle, and of
    /// results beyond 16 bits.
    template <typename T>
    HWY_INLINE hn::Vec<ByteTag> of(const float* HWY_RESTRICT from,
                                   StepWords::Behind& least_behind) const {
        const FloatTag d;
        Quarter fixed[4];
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) fixed[k] =
            StepWords::of_any(sums_of(hn::LoadU(d, from + k * hn::Lanes(d))));
        const StepWords steps(fixed);
        least_behind = steps.least_behind;
        const auto by_turns = narrowed_words<T>(steps.words[0], steps.words[1]);
        return in_order(hn::TableLookupBytes(by_turns, turns_));
    }

    /// The same with middles settled, which takes twice as long; `known` is false of results beyond
    /// 14 bits. Only for machines that round the difference from a product once.
    template <typename T>
    HWY_INLINE hn::Vec<ByteTag> settled(const float* HWY_RESTRICT from, bool& known) const {
        const FloatTag d;
        Quarter steps[4];
        known = true;
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            const auto values = hn::LoadU(d, from + k * hn::Lanes(d));
            const auto sums = sums_of(values);
            // What is no number is not below it either.
            known = known && hn::AllTrue(d, hn::Lt(hn::Abs(sums), hn::Set(d, 0x1p30F)));
            steps[k] = steps_by_middles(values, StepWords::of_any(sums));
        }
        return in_order(narrowed_bytes<T>(steps));
    }

  private:
    using FloatTag = hn::ScalableTag<float>;
    using Floats = hn::Vec<FloatTag>;
    using Order = decltype(hn::SetTableIndices(QuarterTag(), std::declval<std::int32_t*>()));
    static constexpr std::size_t in_block = 16 / sizeof(std::int32_t);

    /// Of four vectors, two of which come by turns within 16 bytes: one behind the other there.
    alignas(16) static constexpr std::uint8_t turns[16] = {0, 2,  4,  6,  1, 3,  5,  7,
                                                           8, 10, 12, 14, 9, 11, 13, 15};

    /// Blocks of 16 bytes hold four values of each vector: those of one vector side by side.
    static Order order_of_blocks() {
        std::int32_t order[HWY_MAX_BYTES / sizeof(std::int32_t)] = {};
        const std::size_t blocks = hn::Lanes(QuarterTag()) / in_block;
        for (std::size_t i = 0; i < hn::Lanes(QuarterTag()); ++i)
            order[i] = static_cast<std::int32_t>(i % blocks * in_block + i / blocks);
        return hn::SetTableIndices(QuarterTag(), order);
    }

    /// StepWords's numbers.
    HWY_INLINE Floats sums_of(Floats values) const { return hn::MulAdd(values, factor_, start_); }

    /// Of a doubtful number one step less where the value is below the middle, or in it and below
    /// 0: away from 0.
    HWY_INLINE Quarter steps_by_middles(Floats values, Quarter fixed) const {
        const FloatTag d;
        const QuarterTag d32;
        const Quarter steps = hn::ShiftRight<16>(fixed);
        const Quarter behind = hn::And(fixed, hn::Set(d32, 0xFFFF));
        const auto is_sure = hn::Gt(behind, hn::Set(d32, 2 * most_off));
        const auto middle = hn::Sub(hn::ConvertTo(d, steps), hn::Set(d, zero_ + 0.5F));
        const auto above = hn::NegMulAdd(middle, scale_, values);
        const auto none = hn::Zero(d);
        const auto is_less =
            hn::Or(hn::Lt(above, none), hn::And(hn::Eq(above, none), hn::Lt(values, none)));
        const auto less = hn::VecFromMask(d32, hn::RebindMask(d32, is_less));
        return hn::Add(steps, hn::IfThenZeroElse(is_sure, less));
    }

    HWY_INLINE hn::Vec<ByteTag> in_order(hn::Vec<ByteTag> bytes) const {
        if constexpr (HWY_MAX_BYTES == 16) return bytes;
        return hn::BitCast(ByteTag(),
                           hn::TableLookupLanes(hn::BitCast(QuarterTag(), bytes), order_));
    }

    Floats scale_, factor_;
    float zero_;
    Floats start_;
    hn::Vec<ByteTag> turns_;
    Order order_;
};

/// Of as many values as a vector has bytes, some of which ByteSteps does not know: apart, so that
/// the others keep nothing for them in memory.
template <typename T>
HWY_NOINLINE void settle(const float* in, T* out, AffineParameters to) {
    const ByteTag bytes;
    bool known = false;
    if (HWY_NATIVE_FMA)
        hn::StoreU(ByteSteps(to).settled<T>(in, known), bytes,
                   reinterpret_cast<std::uint8_t*>(out));
    if (!known) rounded_run(in, out, hn::Lanes(bytes), to);
}

/// How many of the first values are done.
template <typename T>
HWY_INLINE std::size_t whole_vectors(const float* in, T* out, std::size_t count,
                                     AffineParameters to) {
    if (!ByteSteps::serves(to)) return 0;
    const ByteTag bytes;
    const ByteSteps steps(to);
    const std::size_t lanes = hn::Lanes(bytes);
    StepWords::Behind behind[2];
    const auto vector_at = [&](std::size_t i, StepWords::Behind& least_behind) HWY_ATTR {
        hn::StoreU(steps.of<T>(in + i, least_behind), bytes,
                   reinterpret_cast<std::uint8_t*>(out + i));
    };
    std::size_t i = 0;
    // One branch for two.
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        vector_at(i, behind[0]);
        vector_at(i + lanes, behind[1]);
        if (HWY_LIKELY(StepWords::are_sure(hn::Min(behind[0], behind[1]), ByteSteps::most_off)))
            continue;
        for (std::size_t v = 0; v < 2; ++v)
            if (!StepWords::are_sure(behind[v], ByteSteps::most_off))
                settle(in + i + v * lanes, out + i + v * lanes, to);
    }
    for (; i + lanes <= count; i += lanes) {
        vector_at(i, behind[0]);
        if (HWY_UNLIKELY(!StepWords::are_sure(behind[0], ByteSteps::most_off)))
            settle(in + i, out + i, to);
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

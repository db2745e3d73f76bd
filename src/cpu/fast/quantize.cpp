#include <bit>
#include <cmath>
#include <limits>
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

/// By the scale's reciprocal first, where that cannot round another way: of as many values as a
/// vector has bytes, as bits of T. `sure` is false where one of them may be
/// wrong, or would have a result beyond 16 bits. A value less the steps that its product
/// with the reciprocal rounds to has 24 bits, and they are right where that is less than half a
/// step. Where products are rounded before they are added it is off by 2^-15 of a step up to 2^9
/// steps, beyond which results are at their limits.
class ByteSteps {
  public:
    ByteSteps(AffineParameters to, float reciprocal)
        : scale_(to.scale),
          reciprocal_(reciprocal),
          half_(to.scale * (0.5F - (HWY_NATIVE_FMA ? 0.0F : 0x1p-13F))),
          zero_(std::bit_cast<std::int32_t>(rounder) - to.zero_point) {
        const hn::Repartition<std::uint32_t, ByteTag> d32;
        constexpr std::size_t in_block = 4;
        const std::size_t blocks = hn::Lanes(d32) / in_block;
        for (std::size_t i = 0; i < hn::Lanes(d32); ++i)
            order_[i] = static_cast<std::int32_t>(i % blocks * in_block + i / blocks);
    }

    template <typename T>
    HWY_INLINE hn::Vec<ByteTag> of(const float* HWY_RESTRICT from, bool& sure) const {
        const hn::ScalableTag<float> d;
        const QuarterTag d32;
        const WordTag d16;
        const auto scale = hn::Set(d, scale_), per_step = hn::Set(d, reciprocal_);
        const auto high = hn::Set(d, rounder);
        hn::Vec<decltype(d)> off[4];
        Quarter steps[4];
        REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
            const auto values = hn::LoadU(d, from + k * hn::Lanes(d));
            const auto rounded = hn::MulAdd(values, per_step, high);
            off[k] = hn::Abs(hn::NegMulAdd(hn::Sub(rounded, high), scale, values));
            steps[k] = hn::Sub(hn::BitCast(d32, rounded), hn::Set(d32, zero_));
        }
        const auto most = hn::Max(hn::Max(off[0], off[1]), hn::Max(off[2], off[3]));
        const auto lo = hn::ReorderDemote2To(d16, steps[0], steps[1]);
        const auto hi = hn::ReorderDemote2To(d16, steps[2], steps[3]);
        const auto in_range = hn::And(hn::Lt(hn::Max(lo, hi), hn::Set(d16, INT16_MAX)),
                                      hn::Gt(hn::Min(lo, hi), hn::Set(d16, INT16_MIN)));
        sure = hn::AllTrue(d16, in_range) && hn::AllTrue(d, hn::Lt(most, hn::Set(d, half_)));
        return in_order(narrowed_words<T>(lo, hi));
    }

  private:
    // Added to it, a number of up to 2^22 steps is rounded into the lowest bits and leaves the
    // exponent as it is; of others, and of what is no number, it leaves bits that are 2^15 or more
    // from its own, as 32 bits wrap, too.
    static constexpr float rounder = 0x1.8p23F;

    HWY_INLINE hn::Vec<ByteTag> in_order(hn::Vec<ByteTag> bytes) const {
        if constexpr (HWY_MAX_BYTES == 16) return bytes;
        const auto as_steps = hn::BitCast(QuarterTag(), bytes);
        const auto order = hn::SetTableIndices(QuarterTag(), order_);
        return hn::BitCast(ByteTag(), hn::TableLookupLanes(as_steps, order));
    }

    float scale_, reciprocal_, half_;
    std::int32_t zero_;
    std::int32_t order_[HWY_MAX_BYTES / sizeof(std::int32_t)] = {};
};

/// How many of the first values are done.
template <typename T>
HWY_INLINE std::size_t whole_vectors(const float* in, T* out, std::size_t count,
                                     AffineParameters to, float reciprocal) {
    const ByteTag bytes;
    const ByteSteps steps(to, reciprocal);
    const std::size_t lanes = hn::Lanes(bytes);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        bool sure = false;
        hn::StoreU(steps.of<T>(in + i, sure), bytes, reinterpret_cast<std::uint8_t*>(out + i));
        if (HWY_UNLIKELY(!sure)) rounded_run(in + i, out + i, lanes, to);
    }
    return i;
}

#else

template <typename T>
HWY_INLINE std::size_t whole_vectors(const float* /*in*/, T* /*out*/, std::size_t /*count*/,
                                     AffineParameters /*to*/, float /*reciprocal*/) {
    return 0;
}

#endif

template <typename T>
void quantize_run(const float* in, T* out, std::size_t count, AffineParameters to) {
    std::size_t i = 0;
    const float reciprocal = 1 / to.scale;
    // Of a denormal scale it is not as exact as that.
    if (to.scale >= std::numeric_limits<float>::min() && std::isfinite(reciprocal))
        i = whole_vectors(in, out, count, to, reciprocal);
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
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto steps = hn::Sub(hn::PromoteTo(d32, hn::LoadU(few, in + i)), zero);
        hn::StoreU(hn::Mul(hn::ConvertTo(d, steps), scale), d, out + i);
    }
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

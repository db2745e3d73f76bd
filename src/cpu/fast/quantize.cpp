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

/// The same: by the scale's reciprocal first, where that cannot round another way. Up to 2^10 steps
/// the product is off by 3 * 2^-24 of itself at most; beyond, the result is at its limit either
/// way.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> quick_steps(D d, const float* from, AffineParameters to,
                                                      float reciprocal) {
    const hn::RebindToSigned<D> d32;
    constexpr float far = 1024, doubtful = 0x1p-12F;
    const auto product = hn::Mul(hn::LoadU(d, from), hn::Set(d, reciprocal));
    const auto steps = hn::Min(hn::Max(product, hn::Set(d, -far)), hn::Set(d, far));
    const auto whole = hn::NearestInt(steps);
    const auto distance = hn::Abs(hn::Sub(steps, hn::ConvertTo(d, whole)));
    const auto sure = hn::Lt(distance, hn::Set(d, 0.5F - doubtful));
    // What is no number, and what 32 bits may not hold, is lost in the limits.
    const auto known = hn::And(sure, hn::Lt(hn::Abs(product), hn::Set(d, 0x1p30F)));
    if (HWY_UNLIKELY(!hn::AllTrue(d, known))) return rounded_steps(d, from, to);
    return hn::Add(whole, hn::Set(d32, to.zero_point));
}

/// The same of several vectors; false where one of them is not sure, or has 2^22 steps. Beyond 2^9
/// results are at their limits, up to there products are off by 2 * 2^-24 of themselves at most.
template <class D, class V = hn::Vec<hn::RebindToSigned<D>>>
HWY_INLINE bool sure_steps(D d, const float* HWY_RESTRICT from, AffineParameters to,
                           float reciprocal, V (&steps)[4]) {
    const hn::RebindToSigned<D> d32;
    // Added to it, a number of up to 2^22 steps is rounded into the lowest bits and leaves the
    // exponent as it is; others, and what is no number, have another exponent or sign.
    constexpr float rounder = 0x1.8p23F, doubtful = 0x1p-13F;
    constexpr std::int32_t above_exponent = 1 << 23;
    const auto exponent = hn::Set(d32, std::bit_cast<std::int32_t>(0x1p23F));
    const auto per_step = hn::Set(d, reciprocal), high = hn::Set(d, rounder);
    const auto zero = hn::Set(d32, std::bit_cast<std::int32_t>(rounder) - to.zero_point);
    hn::Vec<D> off[4];
    V others = hn::Zero(d32);
    REEF_UNROLL
    for (std::size_t k = 0; k < 4; ++k) {
        const auto values = hn::LoadU(d, from + k * hn::Lanes(d));
        const auto rounded = hn::MulAdd(values, per_step, high);
        off[k] = hn::MulSub(values, per_step, hn::Sub(rounded, high));
        const auto bits = hn::BitCast(d32, rounded);
        others = hn::Or(others, hn::Xor(bits, exponent));
        steps[k] = hn::Sub(bits, zero);
    }
    const auto most = hn::Max(hn::Max(hn::Abs(off[0]), hn::Abs(off[1])),
                              hn::Max(hn::Abs(off[2]), hn::Abs(off[3])));
    const auto in_range =
        hn::And(hn::Gt(others, hn::Set(d32, -1)), hn::Lt(others, hn::Set(d32, above_exponent)));
    return hn::AllTrue(
        d, hn::And(hn::Lt(most, hn::Set(d, 0.5F - doubtful)), hn::RebindMask(d, in_range)));
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

template <typename T>
void quantize_run(const float* in, T* out, std::size_t count, AffineParameters to) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> d32;
    const hn::Rebind<T, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    const float reciprocal = 1 / to.scale;
    // Of a denormal scale it is not as exact as that.
    if (to.scale >= std::numeric_limits<float>::min() && std::isfinite(reciprocal)) {
        for (; i + 4 * lanes <= count; i += 4 * lanes) {
            hn::Vec<decltype(d32)> steps[4];
            const bool sure = sure_steps(d, in + i, to, reciprocal, steps);
            REEF_UNROLL
            for (std::size_t k = 0; k < 4; ++k)
                hn::StoreU(clamped(d8, steps[k]), d8, out + i + k * lanes);
            if (HWY_LIKELY(sure)) continue;
            for (std::size_t k = i; k < i + 4 * lanes; k += lanes)
                hn::StoreU(clamped(d8, quick_steps(d, in + k, to, reciprocal)), d8, out + k);
        }
        for (; i + lanes <= count; i += lanes)
            hn::StoreU(clamped(d8, quick_steps(d, in + i, to, reciprocal)), d8, out + i);
    }
    for (; i + lanes <= count; i += lanes)
        hn::StoreU(clamped(d8, rounded_steps(d, in + i, to)), d8, out + i);
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

#include "cpu/fast/hybrid_input.h"

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/hybrid_input.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Adds all lanes, one by one: once per call.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void add_lanes(D d, V least, V most, bool finite, ValueRange& range) {
    alignas(64) float lows[hn::MaxLanes(d)], highs[hn::MaxLanes(d)];
    hn::Store(least, d, lows);
    hn::Store(most, d, highs);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) range.add({lows[i], highs[i], finite});
}

ValueRange vector_range(std::span<const float> values) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> d32;
    const std::size_t lanes = hn::Lanes(d);
    auto least = hn::Zero(d), most = hn::Zero(d);
    // As integers magnitudes are in the same order, and what is not finite is above all others.
    const auto magnitude = hn::Set(d32, 0x7FFFFFFF);
    auto largest = hn::Zero(d32);
    std::size_t i = 0;
    for (; i + lanes <= values.size(); i += lanes) {
        const auto some = hn::LoadU(d, values.data() + i);
        least = hn::Min(least, some);
        most = hn::Max(most, some);
        largest = hn::Max(largest, hn::And(hn::BitCast(d32, some), magnitude));
    }
    const bool finite = hn::AllFalse(d32, hn::Gt(largest, hn::Set(d32, 0x7F7FFFFF)));
    ValueRange range = range_of(values.subspan(i));
    add_lanes(d, least, most, finite, range);
    return range;
}

/// StepRule::step() of a vector; not yet integers, but whole.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V steps_of(D d, V values, const StepRule& rule) {
    const V place = hn::Add(hn::Set(d, rule.zero), hn::Mul(values, hn::Set(d, rule.per_step)));
    const V whole = hn::Trunc(place);
    const V away = hn::CopySign(hn::Set(d, 1.0F), place);
    const auto is_half = hn::Ge(hn::Abs(hn::Sub(place, whole)), hn::Set(d, 0.5F));
    const V rounded = hn::Add(whole, hn::IfThenElseZero(is_half, away));
    return hn::Min(hn::Max(rounded, hn::Set(d, rule.lowest)), hn::Set(d, 127.0F));
}

void vector_bytes(std::span<const float> values, const StepRule& rule, std::uint8_t flip,
                  std::uint8_t* out) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> d32;
    const hn::Rebind<std::int8_t, decltype(d)> d8;
    const hn::Rebind<std::uint8_t, decltype(d)> to;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= values.size(); i += lanes) {
        const auto steps = hn::ConvertTo(d32, steps_of(d, hn::LoadU(d, values.data() + i), rule));
        const auto bytes = hn::BitCast(to, hn::DemoteTo(d8, steps));
        hn::StoreU(hn::Xor(bytes, hn::Set(to, flip)), to, out + i);
    }
    for (; i < values.size(); ++i)
        out[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(rule.step(values[i])) ^ flip);
}

void vector_steps(std::span<const float> values, const StepRule& rule, std::int16_t* out) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> d32;
    const hn::Rebind<std::int16_t, decltype(d)> d16;
    const std::size_t lanes = hn::Lanes(d);
    const auto zero = hn::Set(d, rule.zero);
    std::size_t i = 0;
    for (; i + lanes <= values.size(); i += lanes) {
        const auto steps = steps_of(d, hn::LoadU(d, values.data() + i), rule);
        hn::StoreU(hn::DemoteTo(d16, hn::ConvertTo(d32, hn::Sub(steps, zero))), d16, out + i);
    }
    for (; i < values.size(); ++i)
        out[i] = static_cast<std::int16_t>(rule.step(values[i]) - rule.zero);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(vector_range);
HWY_EXPORT(vector_bytes);
HWY_EXPORT(vector_steps);

ValueRange range_fast(std::span<const float> values) {
    return HWY_DYNAMIC_DISPATCH(vector_range)(values);
}
void quantise_to_bytes(std::span<const float> values, const StepRule& rule, std::uint8_t flip,
                       std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(vector_bytes)(values, rule, flip, out);
}
void quantise_to_steps(std::span<const float> values, const StepRule& rule, std::int16_t* out) {
    HWY_DYNAMIC_DISPATCH(vector_steps)(values, rule, out);
}

}  // namespace reef::cpu
#endif

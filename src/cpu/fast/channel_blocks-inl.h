// Products and output stage of a channel block (channel_blocks.h). Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_CHANNEL_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_CHANNEL_BLOCKS_INL_H
#undef REEF_CPU_FAST_CHANNEL_BLOCKS_INL_H
#else
#define REEF_CPU_FAST_CHANNEL_BLOCKS_INL_H
#endif

#include <hwy/highway.h>

#include "base/pair_products-inl.h"
#include "cpu/fast/channel_blocks.h"
#include "cpu/fast/fixed_point-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR

/// Tags of a block's vectors: Block<16> is a block of 16 channels.
template <std::size_t kWidth>
using Sums = hn::CappedTag<std::int32_t, kWidth / 2>;
template <std::size_t kWidth>
using Values = hn::Repartition<std::int16_t, Sums<kWidth>>;
template <std::size_t kWidth>
using SumVector = hn::Vec<Sums<kWidth>>;

inline constexpr std::size_t widest_block = HWY_MAX_BYTES / 2;

using reef::HWY_NAMESPACE::add_pair_products;

/// Both roundings of TFLite's scheme (fixed_point.h). `rows` are the stage's from the vector's
/// first lane on.
template <std::size_t kWidth, Ties kTies>
HWY_NOINLINE SumVector<kWidth> rescale_exactly(SumVector<kWidth> x,
                                               const std::int32_t* HWY_RESTRICT rows) {
    const Sums<kWidth> d;
    const auto row = [&](StageRow which) HWY_ATTR {
        return hn::Load(d, rows + static_cast<std::size_t>(which) * kWidth);
    };
    const auto high = saturating_rounding_doubling_high_mul(d, x, row(StageRow::multiplier));
    const auto right = row(StageRow::right_shift);
    const auto mask = hn::Sub(hn::Shl(hn::Set(d, 1), right), hn::Set(d, 1));
    auto threshold = hn::ShiftRight<1>(mask);
    if constexpr (kTies == Ties::away_from_zero)
        threshold = hn::Sub(threshold, hn::BroadcastSignBit(high));
    const auto above = hn::VecFromMask(d, hn::Gt(hn::And(high, mask), threshold));
    return hn::Sub(hn::Shr(high, right), above);
}

/// Sums to values less the zero point, in place; `rows` are the stage's from the first vector's
/// first lane on. In float32, exactly wherever the product is far enough from where the result
/// would step (StageRow says how far); in the other case all of them once more in integers.
template <std::size_t kWidth, Ties kTies, std::size_t kVectors>
HWY_INLINE void rescale(SumVector<kWidth> (&sums)[kVectors],
                        const std::int32_t* HWY_RESTRICT rows) {
    const Sums<kWidth> d;
    const hn::Rebind<float, Sums<kWidth>> df;
    const std::size_t lanes = hn::Lanes(d);
    SumVector<kWidth> values[kVectors];
    auto farthest = hn::Zero(df);
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
        const auto row = [&](StageRow which) HWY_ATTR {
            return hn::BitCast(
                df, hn::Load(d, rows + v * lanes + static_cast<std::size_t>(which) * kWidth));
        };
        auto offset = row(StageRow::offset);
        if constexpr (kTies == Ties::away_from_zero)
            offset = hn::IfThenElse(hn::MaskFromVec(hn::BitCast(df, hn::BroadcastSignBit(sums[v]))),
                                    row(StageRow::negative_offset), offset);
        const auto scaled = hn::MulAdd(hn::ConvertTo(df, sums[v]), row(StageRow::scale), offset);
        values[v] = nearest(scaled);
        farthest = hn::Max(farthest, hn::Abs(hn::Sub(scaled, hn::ConvertTo(df, values[v]))));
    }
    if (HWY_UNLIKELY(!hn::AllFalse(df, hn::Gt(farthest, hn::Set(df, 0.5F - doubtful_distance))))) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) values[v] =
            rescale_exactly<kWidth, kTies>(sums[v], rows + v * lanes);
    }
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] = values[v];
}

/// FloatRequantisation without the zero point; `rows` as in rescale_exactly().
template <std::size_t kWidth>
HWY_INLINE SumVector<kWidth> rescale_in_float(SumVector<kWidth> x,
                                              const std::int32_t* HWY_RESTRICT rows,
                                              const OutputStage& stage) {
    const Sums<kWidth> d;
    const hn::Rebind<float, Sums<kWidth>> df;
    const auto scale =
        hn::BitCast(df, hn::Load(d, rows + static_cast<std::size_t>(StageRow::scale) * kWidth));
    const auto scaled = hn::Mul(hn::ConvertTo(df, x), scale);
    return hn::NearestInt(
        hn::Min(hn::Max(scaled, hn::Set(df, stage.float_min)), hn::Set(df, stage.float_max)));
}

/// Sums as values less the zero point, in place; `rows` as in rescale().
template <std::size_t kWidth, Ties kTies, std::size_t kVectors>
HWY_INLINE void output_values(SumVector<kWidth> (&sums)[kVectors],
                              const std::int32_t* HWY_RESTRICT rows, const OutputStage& stage) {
    const Sums<kWidth> d;
    const std::size_t lanes = hn::Lanes(d);
    if (HWY_UNLIKELY(stage.left_shifts)) {
        const auto* shifts = rows + static_cast<std::size_t>(StageRow::left_shift) * kWidth;
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
            hn::Shl(sums[v], hn::Load(d, shifts + v * lanes));
    }
    if (HWY_UNLIKELY(stage.in_float)) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
            rescale_in_float<kWidth>(sums[v], rows + v * lanes, stage);
        return;
    }
    rescale<kWidth, kTies>(sums, rows);
}

/// Two vectors of them as 16-bit values of the output's type.
template <class D16, class V32>
HWY_INLINE hn::Vec<D16> clamped_values(D16 d16, V32 lo, V32 hi, const OutputStage& stage) {
    // Saturation on the way to 16 bits cannot show: the clamp's ends are 8-bit values.
    const auto value =
        hn::SaturatedAdd(hn::ReorderDemote2To(d16, lo, hi), hn::Set(d16, stage.zero));
    return hn::Clamp(value, hn::Set(d16, stage.min), hn::Set(d16, stage.max));
}

/// The block's output bytes in channel order: uint8, or int8 as its bit pattern.
template <std::size_t kWidth, Ties kTies>
HWY_INLINE hn::Vec<hn::Rebind<std::uint8_t, Values<kWidth>>> output_bytes(
    SumVector<kWidth> lo, SumVector<kWidth> hi, const std::int32_t* HWY_RESTRICT rows,
    const OutputStage& stage) {
    const Values<kWidth> d16;
    const hn::Rebind<std::uint8_t, Values<kWidth>> d8;
    SumVector<kWidth> values[2] = {lo, hi};
    output_values<kWidth, kTies>(values, rows, stage);
    const auto value = clamped_values(d16, values[0], values[1], stage);
    return hn::DemoteTo(d8, hn::And(value, hn::Set(d16, 0xFF)));
}

/// Stores the first `valid` bytes of a block.
template <std::size_t kWidth, class V8>
HWY_INLINE void store_bytes(V8 bytes, std::size_t valid, std::uint8_t* HWY_RESTRICT out) {
    const hn::Rebind<std::uint8_t, Values<kWidth>> d8;
    if (valid == kWidth) {
        hn::StoreU(bytes, d8, out);
        return;
    }
    alignas(64) std::uint8_t buffer[kWidth];
    hn::StoreU(bytes, d8, buffer);
    for (std::size_t i = 0; i < valid; ++i) out[i] = buffer[i];
}

#endif
}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

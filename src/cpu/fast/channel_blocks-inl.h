// Products and output stage of a channel block (channel_blocks.h). Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_CHANNEL_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_CHANNEL_BLOCKS_INL_H
#undef REEF_CPU_FAST_CHANNEL_BLOCKS_INL_H
#else
#define REEF_CPU_FAST_CHANNEL_BLOCKS_INL_H
#endif

#include <hwy/highway.h>

#include "base/sums_of_products-inl.h"
#include "cpu/fast/channel_blocks.h"
#include "cpu/fast/fixed_point-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR

/// Tags of a block's vectors, by their lanes.
template <std::size_t kLanes>
using Sums = hn::CappedTag<std::int32_t, kLanes>;
template <std::size_t kLanes>
using Values = hn::Repartition<std::int16_t, Sums<kLanes>>;
template <std::size_t kLanes>
using SumVector = hn::Vec<Sums<kLanes>>;

inline constexpr std::size_t widest_block = HWY_MAX_BYTES / 2;

using reef::HWY_NAMESPACE::add_pair_products;

/// The stage's rows of a block's v-th vector.
template <std::size_t kLanes>
HWY_INLINE const std::int32_t* rows_of(const std::int32_t* block, std::size_t v) {
    return block + v * stage_rows * kLanes;
}
template <std::size_t kLanes, class D>
HWY_INLINE hn::Vec<D> stage_row(D d, const std::int32_t* rows, StageRow which) {
    const Sums<kLanes> d32;
    return hn::BitCast(d, hn::Load(d32, rows + static_cast<std::size_t>(which) * kLanes));
}
/// What the sums of a block's v-th vector start from.
template <std::size_t kLanes>
HWY_INLINE SumVector<kLanes> bias_of(const OutputStage& stage, const ChannelBlock& block,
                                     std::size_t v) {
    return hn::Load(Sums<kLanes>(), stage.rows.get() + block.bias + v * kLanes);
}

/// Both roundings of TFLite's scheme (fixed_point.h). `rows` are the stage's of the vector.
template <std::size_t kLanes, Ties kTies>
HWY_NOINLINE SumVector<kLanes> rescale_exactly(SumVector<kLanes> x,
                                               const std::int32_t* HWY_RESTRICT rows) {
    const Sums<kLanes> d;
    const auto row = [&](StageRow which) HWY_ATTR { return stage_row<kLanes>(d, rows, which); };
    const auto high = saturating_rounding_doubling_high_mul(d, x, row(StageRow::multiplier));
    const auto right = row(StageRow::right_shift);
    const auto mask = hn::Sub(hn::Shl(hn::Set(d, 1), right), hn::Set(d, 1));
    auto threshold = hn::ShiftRight<1>(mask);
    if constexpr (kTies == Ties::away_from_zero)
        threshold = hn::Sub(threshold, hn::BroadcastSignBit(high));
    const auto above = hn::VecFromMask(d, hn::Gt(hn::And(high, mask), threshold));
    return hn::Sub(hn::Shr(high, right), above);
}

/// Sums of a block to values less the zero point, in place; `stage` is the block's, of kBlock
/// vectors, so that these may be of several rows. In float32, exactly wherever the product is far
/// enough from where the result would step (StageRow says how far); in the other case all of them
/// once more in integers.
template <std::size_t kLanes, Ties kTies, std::size_t kVectors, std::size_t kBlock = kVectors>
HWY_INLINE void rescale(SumVector<kLanes> (&sums)[kVectors],
                        const std::int32_t* HWY_RESTRICT stage) {
    const hn::Rebind<float, Sums<kLanes>> df;
    SumVector<kLanes> values[kVectors];
    auto farthest = hn::Zero(df);
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
        const auto row = [&](StageRow which) HWY_ATTR {
            return stage_row<kLanes>(df, rows_of<kLanes>(stage, v % kBlock), which);
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
            rescale_exactly<kLanes, kTies>(sums[v], rows_of<kLanes>(stage, v % kBlock));
    }
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] = values[v];
}

/// FloatRequantisation without the zero point; `rows` as in rescale_exactly().
template <std::size_t kLanes>
HWY_INLINE SumVector<kLanes> rescale_in_float(SumVector<kLanes> x,
                                              const std::int32_t* HWY_RESTRICT rows,
                                              const OutputStage& stage) {
    const hn::Rebind<float, Sums<kLanes>> df;
    const auto scaled = hn::Mul(hn::ConvertTo(df, x), stage_row<kLanes>(df, rows, StageRow::scale));
    return hn::NearestInt(
        hn::Min(hn::Max(scaled, hn::Set(df, stage.float_min)), hn::Set(df, stage.float_max)));
}

/// Sums of a block as values less the zero point, in place; `rows` are the block's.
template <std::size_t kLanes, Ties kTies, std::size_t kVectors>
HWY_INLINE void output_values(SumVector<kLanes> (&sums)[kVectors],
                              const std::int32_t* HWY_RESTRICT rows, const OutputStage& stage) {
    const Sums<kLanes> d;
    if (HWY_UNLIKELY(stage.left_shifts)) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
            hn::Shl(sums[v], stage_row<kLanes>(d, rows_of<kLanes>(rows, v), StageRow::left_shift));
    }
    if (HWY_UNLIKELY(stage.in_float)) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
            rescale_in_float<kLanes>(sums[v], rows_of<kLanes>(rows, v), stage);
        return;
    }
    rescale<kLanes, kTies>(sums, rows);
}

/// Two vectors of them as 16-bit values of the output's type.
template <class D16, class V32>
HWY_INLINE hn::Vec<D16> clamped_values(D16 d16, V32 lo, V32 hi, const OutputStage& stage) {
    // Saturation on the way to 16 bits cannot show: the clamp's ends are 8-bit values.
    const auto value =
        hn::SaturatedAdd(hn::ReorderDemote2To(d16, lo, hi), hn::Set(d16, stage.zero));
    return hn::Clamp(value, hn::Set(d16, stage.min), hn::Set(d16, stage.max));
}

/// The output bytes of a block of two vectors in channel order: uint8, or int8 as its bit pattern.
template <std::size_t kLanes, Ties kTies>
HWY_INLINE hn::Vec<hn::Rebind<std::uint8_t, Values<kLanes>>> output_bytes(
    SumVector<kLanes> lo, SumVector<kLanes> hi, const std::int32_t* HWY_RESTRICT rows,
    const OutputStage& stage) {
    const Values<kLanes> d16;
    const hn::Rebind<std::uint8_t, Values<kLanes>> d8;
    SumVector<kLanes> values[2] = {lo, hi};
    output_values<kLanes, kTies>(values, rows, stage);
    const auto value = clamped_values(d16, values[0], values[1], stage);
    return hn::DemoteTo(d8, hn::And(value, hn::Set(d16, 0xFF)));
}

/// The same of a block of one vector.
template <std::size_t kLanes, Ties kTies>
HWY_INLINE hn::Vec<hn::Rebind<std::uint8_t, Sums<kLanes>>> output_bytes(
    SumVector<kLanes> sums, const std::int32_t* HWY_RESTRICT rows, const OutputStage& stage) {
    const hn::Rebind<std::int16_t, Sums<kLanes>> d16;
    const hn::Rebind<std::uint8_t, Sums<kLanes>> d8;
    SumVector<kLanes> values[1] = {sums};
    output_values<kLanes, kTies>(values, rows, stage);
    const auto value = hn::SaturatedAdd(hn::DemoteTo(d16, values[0]), hn::Set(d16, stage.zero));
    const auto clamped = hn::Clamp(value, hn::Set(d16, stage.min), hn::Set(d16, stage.max));
    return hn::DemoteTo(d8, hn::And(clamped, hn::Set(d16, 0xFF)));
}

/// Stores the first `valid` bytes of less than all.
template <class D, class V8 = hn::Vec<D>>
HWY_INLINE void store_some(D d8, V8 bytes, std::size_t valid, std::uint8_t* HWY_RESTRICT out) {
    constexpr std::size_t all = hn::MaxLanes(D());
    if constexpr (all <= 8) {
        alignas(8) std::uint8_t buffer[all];
        hn::Store(bytes, d8, buffer);
        for (std::size_t i = 0; i < valid; ++i) out[i] = buffer[i];
    } else {
        const hn::Half<D> half;
        const auto lower = hn::LowerHalf(half, bytes);
        if (valid < all / 2) return store_some(half, lower, valid, out);
        hn::StoreU(lower, half, out);
        if (valid > all / 2)
            store_some(half, hn::UpperHalf(half, bytes), valid - all / 2, out + all / 2);
    }
}

/// Stores the first `valid` bytes of a block's kWidth.
template <std::size_t kWidth, class V8>
HWY_INLINE void store_bytes(V8 bytes, std::size_t valid, std::uint8_t* HWY_RESTRICT out) {
    const hn::CappedTag<std::uint8_t, kWidth> d8;
    if (valid == kWidth)
        hn::StoreU(bytes, d8, out);
    else
        store_some(d8, bytes, valid, out);
}

#endif
}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

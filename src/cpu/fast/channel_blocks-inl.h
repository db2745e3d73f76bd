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

/// `half` are the stage's rows from the first lane of this vector on.
template <std::size_t kWidth, Ties kTies>
HWY_INLINE SumVector<kWidth> rescale(SumVector<kWidth> x, const std::int32_t* HWY_RESTRICT half) {
    const Sums<kWidth> d;
    const hn::Repartition<std::uint64_t, Sums<kWidth>> du64;
    const auto row = [&](StageRow which) HWY_ATTR {
        return hn::Load(d, half + static_cast<std::size_t>(which) * kWidth);
    };
    const auto wide = [&](StageRow which) HWY_ATTR { return hn::BitCast(du64, row(which)); };
    const auto odd_x = hn::ShiftRight<32>(hn::BitCast(du64, x));
    auto even = hn::BitCast(du64, hn::MulEven(x, row(StageRow::multiplier)));
    auto odd = hn::BitCast(du64, hn::MulEven(hn::BitCast(d, odd_x), row(StageRow::odd_multiplier)));
    even = hn::Add(even, wide(StageRow::even_rounding));
    odd = hn::Add(odd, wide(StageRow::odd_rounding));
    if constexpr (kTies == Ties::away_from_zero) {
        even = hn::Sub(even, hn::And(hn::BitCast(du64, x), wide(StageRow::even_tie)));
        odd = hn::Sub(odd, hn::And(odd_x, wide(StageRow::odd_tie)));
    }
    even = hn::Shr(even, wide(StageRow::even_shift));
    odd = hn::ShiftLeft<32>(hn::Shr(odd, wide(StageRow::odd_shift)));
    return hn::Sub(hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, even)), row(StageRow::offset));
}

/// FloatRequantisation without the zero point; `half` as in rescale().
template <std::size_t kWidth>
HWY_INLINE SumVector<kWidth> rescale_in_float(SumVector<kWidth> x,
                                              const std::int32_t* HWY_RESTRICT half,
                                              const OutputStage& stage) {
    const Sums<kWidth> d;
    const hn::Repartition<float, Sums<kWidth>> df;
    const auto scale =
        hn::BitCast(df, hn::Load(d, half + static_cast<std::size_t>(StageRow::scale) * kWidth));
    const auto scaled = hn::Mul(hn::ConvertTo(df, x), scale);
    return hn::NearestInt(
        hn::Min(hn::Max(scaled, hn::Set(df, stage.float_min)), hn::Set(df, stage.float_max)));
}

/// Sums as values less the zero point; `rows` are the stage's from the vector's first lane on.
template <std::size_t kWidth, Ties kTies>
HWY_INLINE SumVector<kWidth> output_values(SumVector<kWidth> sums,
                                           const std::int32_t* HWY_RESTRICT rows,
                                           const OutputStage& stage) {
    const Sums<kWidth> d;
    if (HWY_UNLIKELY(stage.left_shifts))
        sums = hn::Shl(sums,
                       hn::Load(d, rows + static_cast<std::size_t>(StageRow::left_shift) * kWidth));
    if (HWY_UNLIKELY(stage.in_float)) return rescale_in_float<kWidth>(sums, rows, stage);
    return rescale<kWidth, kTies>(sums, rows);
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
    const auto value =
        clamped_values(d16, output_values<kWidth, kTies>(lo, rows, stage),
                       output_values<kWidth, kTies>(hi, rows + kWidth / 2, stage), stage);
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

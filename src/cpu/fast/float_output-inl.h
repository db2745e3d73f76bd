// Stores sums of a channel block as float32 (float_output.h). Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_FLOAT_OUTPUT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_FLOAT_OUTPUT_INL_H
#undef REEF_CPU_FAST_FLOAT_OUTPUT_INL_H
#else
#define REEF_CPU_FAST_FLOAT_OUTPUT_INL_H
#endif

#include <hwy/highway.h>

#include "cpu/fast/channel_blocks-inl.h"
#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/float_output.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR

/// The vectors of a block, whose lanes become those of consecutive channels.
template <std::size_t kLanes>
HWY_INLINE void order_channels(SumVector<kLanes> (&/*sums*/)[1]) {}
template <std::size_t kLanes>
HWY_INLINE void order_channels([[maybe_unused]] SumVector<kLanes> (&sums)[2]) {
    if constexpr (kLanes > 4) {
        const Sums<kLanes> d;
        const auto lo = hn::ConcatLowerLower(d, sums[1], sums[0]);
        const auto hi = hn::ConcatUpperUpper(d, sums[1], sums[0]);
        if constexpr (kLanes == 8) {
            sums[0] = lo;
            sums[1] = hi;
        } else {
            // The parts of both are 0 and 1 of the first vector, then of the second.
            alignas(64) static constexpr std::int32_t lanes[16] = {0, 1, 2, 3, 8,  9,  10, 11,
                                                                   4, 5, 6, 7, 12, 13, 14, 15};
            const auto by = hn::SetTableIndices(d, lanes);
            sums[0] = hn::TableLookupLanes(lo, by);
            sums[1] = hn::TableLookupLanes(hi, by);
        }
    }
}

/// The first `valid` channels of a block, whose first is `first`. Its sums are given back changed.
/// `kProduct`: the product of the scales is rounded, not that of the sum with the row's scale.
template <std::size_t kLanes, bool kProduct, std::size_t kVectors>
HWY_INLINE void store_as_floats(SumVector<kLanes> (&sums)[kVectors], const FloatOutput& how,
                                std::size_t first, std::size_t valid, RowScale row,
                                float* HWY_RESTRICT out) {
    const Sums<kLanes> d;
    const hn::Rebind<float, Sums<kLanes>> df;
    order_channels<kLanes>(sums);
    hn::Vec<decltype(df)> values[kVectors];
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
        const std::size_t c = first + v * kLanes;
        const auto more = hn::Mul(hn::Set(d, row.zero), hn::LoadU(d, how.weight_sums.data() + c));
        const auto sum = hn::ConvertTo(df, hn::Sub(sums[v], more));
        const auto of_row = hn::Set(df, row.scale);
        const auto of_weights = hn::LoadU(df, how.scales.data() + c);
        const auto product = kProduct ? hn::Mul(sum, hn::Mul(of_row, of_weights))
                                      : hn::Mul(hn::Mul(sum, of_row), of_weights);
        values[v] =
            clamp_floats(df, hn::Add(product, hn::LoadU(df, how.bias.data() + c)), how.clamp);
    }
    store_floats(df, values, valid, out);
}

#endif
}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

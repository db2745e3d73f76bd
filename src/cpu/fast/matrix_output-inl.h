// Where a matrix product stores its sums (packed_matrix.h). Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_MATRIX_OUTPUT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_MATRIX_OUTPUT_INL_H
#undef REEF_CPU_FAST_MATRIX_OUTPUT_INL_H
#else
#define REEF_CPU_FAST_MATRIX_OUTPUT_INL_H
#endif

#include <hwy/highway.h>

#include <span>

#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/channel_blocks-inl.h"
#include "cpu/fast/float_output-inl.h"
#include "cpu/fast/packed_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

template <std::size_t kLanes, Ties kTies, std::size_t kVectors>
HWY_INLINE void store_sums(const SumVector<kLanes> (&sums)[kVectors],
                           const std::int32_t* HWY_RESTRICT stage, const OutputStage& how,
                           std::size_t valid, std::uint8_t* HWY_RESTRICT out) {
    if constexpr (kVectors == 1)
        store_bytes<kLanes>(output_bytes<kLanes, kTies>(sums[0], stage, how), valid, out);
    else
        store_bytes<2 * kLanes>(output_bytes<kLanes, kTies>(sums[0], sums[1], stage, how), valid,
                                out);
}

/// TRANSPOSE_CONV alone rounds this way; hybrid operators do not round.
template <std::size_t kLanes, std::size_t kVectors>
HWY_NOINLINE void store_otherwise(SumVector<kLanes> (&sums)[kVectors], const PackedMatrix& matrix,
                                  const ChannelBlock& block, const RowScale* scale,
                                  std::uint8_t* out) {
    if (scale != nullptr)
        return store_as_floats<kLanes, true>(sums, matrix.float_output, block.first, block.valid,
                                             *scale, reinterpret_cast<float*>(out));
    store_sums<kLanes, Ties::away_from_zero>(sums, matrix.stage.rows.get() + block.stage,
                                             matrix.stage, block.valid, out);
}

/// `scales`: of the rows, or null; `row` is one of them.
template <std::size_t kLanes, std::size_t kVectors>
HWY_INLINE void store_row(const SumVector<kLanes> (&sums)[kVectors], const PackedMatrix& matrix,
                          const ChannelBlock& block, const RowScale* scales, std::size_t row,
                          std::uint8_t* out) {
    if (HWY_LIKELY(matrix.stage.ties == Ties::upwards))
        return store_sums<kLanes, Ties::upwards>(sums, matrix.stage.rows.get() + block.stage,
                                                 matrix.stage, block.valid, out);
    // A copy: what a call can reach is no register.
    SumVector<kLanes> reachable[kVectors];
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) reachable[v] = sums[v];
    store_otherwise<kLanes>(reachable, matrix, block, scales == nullptr ? nullptr : scales + row,
                            out);
}

/// Several rows of a block: as many as have four vectors of sums, and then one of bytes.
template <std::size_t kVectors>
inline constexpr std::size_t rows_together = 4 / kVectors;

/// Where the 32-bit parts of such rows' bytes stand after two narrowings, which take 16 bytes of
/// each vector at a time.
template <std::size_t kLanes, std::size_t kVectors>
struct RowsOrder {
    alignas(64) std::int32_t of[kLanes] = {};
    constexpr RowsOrder() {
        constexpr std::size_t in_row = kLanes * kVectors / 4;
        for (std::size_t i = 0; i < kLanes; ++i) {
            const std::size_t row = i / in_row, within = i % in_row;
            of[i] = static_cast<std::int32_t>(within / kVectors * 4 + row * kVectors +
                                              within % kVectors);
        }
    }
};

/// The output bytes of rows_together rows, one row behind the other. They share what one row alone
/// spends most of its time on: the question whether a sum is in doubt, and narrowing.
template <std::size_t kLanes, std::size_t kVectors>
HWY_INLINE hn::Vec<hn::Repartition<std::uint8_t, Sums<kLanes>>> bytes_of_rows(
    SumVector<kLanes> (&sums)[4], const std::int32_t* HWY_RESTRICT stage, const OutputStage& how) {
    const Sums<kLanes> d;
    const Values<kLanes> d16;
    const hn::Repartition<std::uint8_t, decltype(d)> d8;
    if (HWY_UNLIKELY(how.in_float)) {
        REEF_UNROLL for (std::size_t v = 0; v < 4; ++v) sums[v] =
            rescale_in_float<kLanes>(sums[v], rows_of<kLanes>(stage, v % kVectors), how);
    } else {
        rescale<kLanes, Ties::upwards, 4, kVectors>(sums, stage);
    }
    // What is above the least value, which is 0 to 255 for both types of bytes.
    const auto above_least = hn::Set(d16, static_cast<std::int16_t>(how.zero - how.min));
    const auto words = [&](auto lo, auto hi) HWY_ATTR {
        return hn::SaturatedAdd(hn::ReorderDemote2To(d16, lo, hi), above_least);
    };
    const auto above =
        narrowed_words<std::uint8_t>(words(sums[0], sums[1]), words(sums[2], sums[3]));
    const auto bytes =
        hn::Add(hn::Min(above, hn::Set(d8, static_cast<std::uint8_t>(how.max - how.min))),
                hn::Set(d8, static_cast<std::uint8_t>(how.min)));
    if constexpr (kLanes == 4) return bytes;
    static constexpr RowsOrder<kLanes, kVectors> order;
    return hn::BitCast(
        d8, hn::TableLookupLanes(hn::BitCast(d, bytes), hn::SetTableIndices(d, order.of)));
}

/// Rows of kWidth bytes each, one behind the other, to such as are `stride` apart.
template <std::size_t kWidth, class D, class V8 = hn::Vec<D>>
HWY_INLINE void store_rows(D /*d8*/, V8 bytes, std::size_t valid, std::uint8_t* HWY_RESTRICT out,
                           std::size_t stride) {
    constexpr std::size_t all = hn::MaxLanes(D());
    if constexpr (all == kWidth) {
        store_bytes<kWidth>(bytes, valid, out);
    } else {
        const hn::Half<D> half;
        store_rows<kWidth>(half, hn::LowerHalf(half, bytes), valid, out, stride);
        store_rows<kWidth>(half, hn::UpperHalf(half, bytes), valid, out + all / 2 / kWidth * stride,
                           stride);
    }
}

/// Where the product of some rows and a block goes.
struct Target {
    const PackedMatrix& matrix;
    const ChannelBlock& block;
    const std::byte* weights;                ///< of the block
    std::span<const std::uint32_t> divided;  ///< groups that have further weights behind all
    Rows rows;
    std::uint8_t* out;
    std::size_t out_stride;

    [[nodiscard]] Target from(std::size_t row) const {
        return {matrix,
                block,
                weights,
                divided,
                {rows.values + row * matrix.row_bytes(),
                 rows.sums == nullptr ? nullptr : rows.sums + row,
                 rows.scales == nullptr ? nullptr : rows.scales + row},
                out + row * out_stride,
                out_stride};
    }
};

/// Row by row: of hybrid operators, of TRANSPOSE_CONV, and with left shifts.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kRows>
HWY_NOINLINE void store_rows_alone(const SumVector<kLanes> (&sums)[kRows][kVectors],
                                   const Target& to) {
    for (std::size_t r = 0; r < kRows; ++r)
        store_row<kLanes>(sums[r], to.matrix, to.block, to.rows.scales, r,
                          to.out + r * to.out_stride);
}

/// rows_together rows from `first` on.
template <std::size_t kLanes, std::size_t kVectors>
HWY_INLINE void store_together(SumVector<kLanes> (&sums)[4], const Target& to, std::size_t first) {
    constexpr std::size_t width = kLanes * kVectors;
    const hn::Repartition<std::uint8_t, Sums<kLanes>> d8;
    const OutputStage& how = to.matrix.stage;
    const auto bytes = bytes_of_rows<kLanes, kVectors>(sums, how.rows.get() + to.block.stage, how);
    std::uint8_t* out = to.out + first * to.out_stride;
    if (to.out_stride == width && to.block.valid == width)
        hn::StoreU(bytes, d8, out);
    else
        store_rows<width>(d8, bytes, to.block.valid, out, to.out_stride);
}

/// Rows [0, kRows) of the target.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kRows>
HWY_INLINE void store_tile(const SumVector<kLanes> (&sums)[kRows][kVectors], const Target& to) {
    constexpr std::size_t together = rows_together<kVectors>;
    constexpr std::size_t whole = kRows / together * together;
    const OutputStage& how = to.matrix.stage;
    if (HWY_UNLIKELY(how.ties != Ties::upwards || how.left_shifts)) {
        // A copy: what a call can reach is no register.
        SumVector<kLanes> reachable[kRows][kVectors];
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) reachable[r][v] = sums[r][v];
        }
        return store_rows_alone<kLanes>(reachable, to);
    }
    REEF_UNROLL for (std::size_t r = 0; r < whole; r += together) {
        SumVector<kLanes> some[4];
        REEF_UNROLL for (std::size_t v = 0; v < 4; ++v) some[v] =
            sums[r + v / kVectors][v % kVectors];
        store_together<kLanes, kVectors>(some, to, r);
    }
    REEF_UNROLL for (std::size_t r = whole; r < kRows; ++r) store_sums<kLanes, Ties::upwards>(
        sums[r], how.rows.get() + to.block.stage, how, to.block.valid, to.out + r * to.out_stride);
}

#endif
}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

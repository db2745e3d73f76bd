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

#endif
}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

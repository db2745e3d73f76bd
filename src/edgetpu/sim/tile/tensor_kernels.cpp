#include "tensor_kernels.h"

#include <algorithm>
#include <cstring>

#include "base/simd.h"
#include "edgetpu/sim/program/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "edgetpu/sim/tile/tensor_kernels.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "base/sums_of_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::edgetpu::sim::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const TensorKernels* target_kernels() {
    return nullptr;
}

#else
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of sums that are as wide as the lanes, where there are few.
template <std::size_t kLanes>
using Sums = hn::CappedTag<std::int32_t, (kLanes < 16 ? kLanes : 16)>;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr std::size_t most_sums = 16;
constexpr std::size_t most_vectors = 4;
#elif HWY_TARGET == HWY_EMU128
constexpr std::size_t most_sums = 4;
constexpr std::size_t most_vectors = 2;
#else
constexpr std::size_t most_sums = 8;
constexpr std::size_t most_vectors = 2;
#endif

using reef::HWY_NAMESPACE::add_pair_products;

template <class D>
HWY_INLINE hn::Vec<hn::Repartition<std::int16_t, D> > broadcast_pair(D d, const std::int16_t* at) {
    std::int32_t pair = 0;
    std::memcpy(&pair, at, sizeof pair);
    return hn::BitCast(hn::Repartition<std::int16_t, D>(), hn::Set(d, pair));
}

/// kRows rows x kVectors vectors of sums stay in registers.
template <class D, std::size_t kRows, std::size_t kVectors>
HWY_INLINE void multiply_tile(D d, const std::int16_t* HWY_RESTRICT rows, std::size_t row_size,
                              const std::int16_t* HWY_RESTRICT weights, std::size_t pairs,
                              std::size_t lanes, bool add, std::int32_t* HWY_RESTRICT sums) {
    const hn::Repartition<std::int16_t, D> d16;
    const std::size_t width = hn::Lanes(d);
    hn::Vec<D> sum[kRows][kVectors];
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] =
            add ? hn::LoadU(d, sums + r * lanes + v * width) : hn::Zero(d);
    }
    for (std::size_t k = 0; k < pairs; ++k, weights += 2 * lanes) {
        hn::Vec<decltype(d16)> weight[kVectors];
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) weight[v] =
            hn::LoadU(d16, weights + 2 * v * width);
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            const auto pair = broadcast_pair(d, rows + r * row_size + 2 * k);
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] =
                add_pair_products(d, pair, weight[v], sum[r][v]);
        }
    }
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
            hn::StoreU(sum[r][v], d, sums + r * lanes + v * width);
    }
}

struct Product {
    const std::int16_t* rows;
    std::size_t row_size;
    std::size_t count;
    const std::int16_t* weights;
    std::size_t pairs;
    std::size_t lanes;
    bool add;
    std::int32_t* sums;
};

/// As many rows at once as fit, then half as many.
template <std::size_t kRows, std::size_t kVectors, class D>
HWY_INLINE void multiply_rows(D d, const Product& p, std::size_t vector, std::size_t row) {
    const std::size_t lane = vector * hn::Lanes(d);
    for (; row + kRows <= p.count; row += kRows)
        multiply_tile<D, kRows, kVectors>(d, p.rows + row * p.row_size, p.row_size,
                                          p.weights + 2 * lane, p.pairs, p.lanes, p.add,
                                          p.sums + row * p.lanes + lane);
    if constexpr (kRows > 1)
        if (row < p.count) multiply_rows<kRows / 2, kVectors>(d, p, vector, row);
}

template <std::size_t kVectors, class D>
HWY_NOINLINE void multiply_vectors(D d, const Product& p, std::size_t vector) {
    constexpr std::size_t rows = most_sums / kVectors < 8 ? most_sums / kVectors : 8;
    multiply_rows<rows, kVectors>(d, p, vector, 0);
}

template <std::size_t kLanes>
void multiply_lanes(const Product& p) {
    const Sums<kLanes> d;
    const std::size_t vectors = p.lanes / hn::Lanes(d);
    std::size_t v = 0;
    if constexpr (kLanes >= 16) {
        if constexpr (most_vectors >= 4)
            for (; v + 4 <= vectors; v += 4) multiply_vectors<4>(d, p, v);
        for (; v + 2 <= vectors; v += 2) multiply_vectors<2>(d, p, v);
    }
    for (; v < vectors; ++v) multiply_vectors<1>(d, p, v);
}

void multiply(const std::int16_t* rows, std::size_t row_size, std::size_t count,
              const std::int16_t* weights, std::size_t pairs, unsigned lanes, bool add,
              std::int32_t* sums) {
    const Product p{rows, row_size, count, weights, pairs, lanes, add, sums};
    if (lanes == 4)
        multiply_lanes<4>(p);
    else if (lanes == 8)
        multiply_lanes<8>(p);
    else
        multiply_lanes<16>(p);
}

// Values of a run are whole vectors. What they write behind its end, the next run writes again, or
// the next row.

/// Bytes to 16-bit values without their zero point.
HWY_INLINE std::int16_t* widen(const std::uint8_t* HWY_RESTRICT from, std::size_t count,
                               std::int32_t zero, std::int16_t* HWY_RESTRICT to) {
    const hn::CappedTag<std::int16_t, gathered_bytes> d16;
    const hn::Rebind<std::uint8_t, decltype(d16)> d8;
    const auto offset = hn::Set(d16, static_cast<std::int16_t>(zero));
    for (std::size_t i = 0; i < count; i += hn::Lanes(d16))
        hn::StoreU(hn::Sub(hn::PromoteTo(d16, hn::LoadU(d8, from + i)), offset), d16, to + i);
    return to + count;
}

/// Pairs of which the second is 0.
HWY_INLINE std::int16_t* widen_to_pairs(const std::uint8_t* HWY_RESTRICT from, std::size_t count,
                                        std::int32_t zero, std::int16_t* HWY_RESTRICT to) {
    const hn::CappedTag<std::int32_t, 8> d;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    const hn::Repartition<std::int16_t, decltype(d)> d16;
    const auto offset = hn::Set(d, zero), low = hn::Set(d, 0xFFFF);
    for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
        const auto value = hn::Sub(hn::PromoteTo(d, hn::LoadU(d8, from + i)), offset);
        hn::StoreU(hn::BitCast(d16, hn::And(value, low)), d16, to + 2 * i);
    }
    return to + 2 * count;
}

void gather(const std::uint8_t* narrow, std::span<const std::uint32_t> positions,
            std::span<const InputRun> runs, StepForm form, std::int32_t zero, std::size_t row_size,
            std::int16_t* rows) {
    const bool singles = form == StepForm::single_byte;
    const std::size_t step = 2UL * pairs_of(form);
    for (const std::uint32_t position : positions) {
        std::int16_t* to = rows;
        for (const InputRun& run : runs) {
            const std::uint8_t* from = narrow + position + run.offset;
            to = singles ? widen_to_pairs(from, run.steps, zero, to)
                         : widen(from, run.steps * step, zero, to);
        }
        rows += row_size;
    }
}

/// Four lanes of one step. `zeros` are those of pairs, or of single values.
template <StepForm kForm>
HWY_INLINE void pack_lanes(const std::uint8_t* words, unsigned quarter,
                           hn::Vec<hn::FixedTag<std::int16_t, 8> > zeros, std::size_t lanes,
                           std::int16_t* to) {
    const hn::FixedTag<std::int32_t, 4> d;
    const hn::FixedTag<std::int16_t, 8> d16;
    const auto store = [&](auto pairs, std::size_t pair) HWY_ATTR {
        hn::StoreU(hn::Sub(hn::BitCast(d16, pairs), zeros), d16, to + 2 * pair * lanes);
    };
    const auto low = hn::Set(d, 0xFFFF), byte = hn::Set(d, 0xFF);
    const auto bytes = hn::BitCast(d, hn::LoadU(hn::FixedTag<std::uint8_t, 16>(), words));
    if constexpr (kForm == StepForm::four_bytes) {
        const auto in_pairs = [&](auto two) HWY_ATTR {
            return hn::Or(hn::And(two, byte), hn::And(hn::ShiftLeft<8>(two), hn::Set(d, 0xFF0000)));
        };
        store(in_pairs(bytes), 0);
        store(in_pairs(hn::And(hn::ShiftRight<16>(bytes), low)), 1);
    } else if constexpr (kForm == StepForm::two_halfwords) {
        store(bytes, 0);
    } else {
        store(hn::And(hn::ShiftRightSame(bytes, static_cast<int>(8 * quarter)), byte), 0);
    }
}

template <StepForm kForm>
void pack_steps(const std::uint8_t* wide, std::uint32_t base,
                std::span<const std::uint32_t> parameters, std::size_t lanes,
                const std::int32_t* zero, std::int16_t* weights) {
    const hn::FixedTag<std::int32_t, 4> d;
    for (std::size_t lane = 0; lane < lanes; lane += hn::Lanes(d)) {
        const auto z = hn::And(hn::LoadU(d, zero + lane), hn::Set(d, 0xFFFF));
        const auto both = kForm == StepForm::single_byte ? z : hn::Or(z, hn::ShiftLeft<16>(z));
        const auto zeros = hn::BitCast(hn::FixedTag<std::int16_t, 8>(), both);
        std::int16_t* to = weights + 2 * lane;
        for (const std::uint32_t offset : parameters) {
            const std::uint32_t at = base + offset;
            pack_lanes<kForm>(wide + (at >> 2U) * row_bytes + 4 * lane, at & 3U, zeros, lanes, to);
            to += 2 * pairs_of(kForm) * lanes;
        }
    }
}

void pack(const std::uint8_t* wide, std::uint32_t base, std::span<const std::uint32_t> parameters,
          StepForm form, unsigned lanes, const std::int32_t* zero, std::int16_t* weights) {
    switch (form) {
        case StepForm::four_bytes:
            return pack_steps<StepForm::four_bytes>(wide, base, parameters, lanes, zero, weights);
        case StepForm::two_halfwords:
            return pack_steps<StepForm::two_halfwords>(wide, base, parameters, lanes, zero,
                                                       weights);
        case StepForm::single_byte:
            return pack_steps<StepForm::single_byte>(wide, base, parameters, lanes, zero, weights);
    }
}

/// The values of one vector, still 32 bits wide.
template <class D>
HWY_INLINE hn::Vec<D> output_values(D d, const std::int32_t* sums, const OutputRows& stage,
                                    std::size_t at) {
    const hn::Repartition<float, D> df;
    const auto sum = hn::Add(hn::LoadU(d, sums), hn::LoadU(d, stage.bias + at));
    auto y = hn::Mul(hn::ConvertTo(df, sum), hn::LoadU(df, stage.scale + at));
    const float least = stage.halfwords ? -32768.0F : 0.0F;
    const float most = stage.halfwords ? 65535.0F : 255.0F;
    const auto zero = static_cast<float>(stage.zero);
    const auto clamp_min = hn::Set(df, stage.clamp_min);
    // What is no number becomes the lower clamp. Integers clamp before rounding as behind it.
    y = hn::IfThenElse(hn::Eq(y, y), y, clamp_min);
    y = hn::Min(hn::Max(y, clamp_min), hn::Set(df, stage.clamp_max));
    y = hn::Min(hn::Max(y, hn::Set(df, least - zero)), hn::Set(df, most - zero));
    return hn::Add(hn::NearestInt(y), hn::Set(d, stage.zero));
}

void requantise(const std::int32_t* sums, std::size_t count, unsigned lanes,
                const OutputRows& stage, std::uint8_t* out) {
    const hn::CappedTag<std::int32_t, 16> d;
    const hn::Repartition<std::uint32_t, decltype(d)> du;
    const std::size_t width = hn::Lanes(d);
    const std::size_t all = count * lanes;
    const std::size_t last_entry = std::max<std::size_t>(lanes, 16) - 1;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    const hn::Rebind<std::int16_t, decltype(d)> d16;
    for (std::size_t i = 0; i < all; i += width) {
        const auto z = output_values(d, sums + i, stage, i & last_entry);
        if (stage.halfwords) {
            // Modulo 2^16 into the signed range, which the narrowing keeps.
            const auto low = hn::ShiftRight<16>(hn::ShiftLeft<16>(z));
            hn::StoreU(hn::DemoteTo(d16, low), d16, reinterpret_cast<std::int16_t*>(out + 2 * i));
        } else {
            hn::StoreU(hn::U8FromU32(hn::BitCast(du, z)), d8, out + i);
        }
    }
}

}  // namespace

const TensorKernels* target_kernels() {
    static constexpr TensorKernels kernels{gather, pack, multiply, requantise};
    return &kernels;
}

#endif
}  // namespace reef::edgetpu::sim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::edgetpu::sim {

static_assert(narrow_slack >= narrow_word_bytes + gathered_bytes);

HWY_EXPORT(target_kernels);

const TensorKernels* tensor_kernels() {
    apply_simd_choice();
    return HWY_DYNAMIC_DISPATCH(target_kernels)();
}

}  // namespace reef::edgetpu::sim
#endif

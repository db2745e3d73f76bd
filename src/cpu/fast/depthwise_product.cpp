#include "cpu/fast/depthwise_product.h"

#include <algorithm>
#include <span>
#include <type_traits>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/depthwise_product.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "base/sums_of_products-inl.h"
#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/channel_blocks-inl.h"
#include "cpu/fast/float_output-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const DepthwiseFunctions* target_depthwise() {
    return nullptr;
}

#else
namespace {

template <std::size_t kLanes>
struct SumPair {
    SumVector<kLanes> lo;
    SumVector<kLanes> hi;
};

/// Whether each tap's products are added by themselves, and weights are not in pairs.
constexpr bool adds_single_taps = reef::HWY_NAMESPACE::has_widening_products;

/// sums + a * (a's weights) + b * (b's), as widen_block() lays these out.
template <std::size_t kLanes, class V16>
HWY_INLINE void add_tap_pair(V16 a, V16 b, const std::int16_t* HWY_RESTRICT weights,
                             SumPair<kLanes>& sums) {
    const Sums<kLanes> d;
    const Values<kLanes> d16;
    const auto first = hn::Load(d16, weights), second = hn::Load(d16, weights + 2 * kLanes);
    if constexpr (adds_single_taps) {
        reef::HWY_NAMESPACE::add_widening_products(a, first, sums.lo, sums.hi);
        reef::HWY_NAMESPACE::add_widening_products(b, second, sums.lo, sums.hi);
    } else {
        sums.lo = add_pair_products(d, hn::InterleaveLower(d16, a, b), first, sums.lo);
        sums.hi = add_pair_products(d, hn::InterleaveUpper(d16, a, b), second, sums.hi);
    }
}

template <std::size_t kLanes, typename T>
HWY_INLINE hn::Vec<Values<kLanes> > values_at(const std::byte* at) {
    const Values<kLanes> d16;
    const hn::Rebind<T, Values<kLanes> > from;
    const auto values = hn::LoadU(from, reinterpret_cast<const T*>(at));
    if constexpr (std::is_same_v<T, std::int16_t>)
        return values;
    else
        return hn::PromoteTo(d16, values);
}

/// The sums of a block at one pixel. kTaps taps, or any number when it is 0.
template <std::size_t kLanes, typename T, std::size_t kTaps>
HWY_INLINE SumPair<kLanes> sums_of(const PackedDepthwise& packed, const ChannelBlock& block,
                                   const DepthwiseRun& run, std::size_t offset) {
    const std::size_t taps = kTaps == 0 ? packed.taps : kTaps;
    const auto* HWY_RESTRICT weights =
        reinterpret_cast<const std::int16_t*>(run.widened + block.widened);
    SumPair<kLanes> sums{bias_of<kLanes>(packed.stage, block, 0),
                         bias_of<kLanes>(packed.stage, block, 1)};
    std::size_t t = 0;
    for (; t + 2 <= taps; t += 2, weights += 4 * kLanes)
        add_tap_pair<kLanes>(values_at<kLanes, T>(run.taps[t] + offset),
                             values_at<kLanes, T>(run.taps[t + 1] + offset), weights, sums);
    if (t < taps) {
        const auto last = values_at<kLanes, T>(run.taps[t] + offset);
        if constexpr (adds_single_taps)
            reef::HWY_NAMESPACE::add_widening_products(last, hn::Load(Values<kLanes>(), weights),
                                                       sums.lo, sums.hi);
        else
            add_tap_pair<kLanes>(last, hn::Zero(Values<kLanes>()), weights, sums);
    }
    return sums;
}

template <std::size_t kLanes, typename T, std::size_t kTaps>
HWY_INLINE void run_block(const PackedDepthwise& packed, const ChannelBlock& block,
                          const DepthwiseRun& run) {
    const std::int32_t* HWY_RESTRICT stage = packed.stage.rows.get() + block.stage;
    std::uint8_t* HWY_RESTRICT out = run.out + block.first;
    std::size_t offset = block.first;
    for (std::size_t p = 0; p < run.pixels; ++p, offset += run.step, out += run.out_stride) {
        const auto sums = sums_of<kLanes, T, kTaps>(packed, block, run, offset);
        store_bytes<2 * kLanes>(
            output_bytes<kLanes, Ties::away_from_zero>(sums.lo, sums.hi, stage, packed.stage),
            block.valid, out);
    }
}

template <std::size_t kLanes, std::size_t kTaps>
HWY_INLINE void run_steps_block(const PackedDepthwise& packed, const ChannelBlock& block,
                                const DepthwiseRun& run) {
    std::uint8_t* out = run.out + block.first * sizeof(float);
    std::size_t offset = block.first * sizeof(std::int16_t);
    for (std::size_t p = 0; p < run.pixels; ++p, offset += run.step, out += run.out_stride) {
        const auto pair = sums_of<kLanes, std::int16_t, kTaps>(packed, block, run, offset);
        SumVector<kLanes> sums[2] = {pair.lo, pair.hi};
        store_as_floats<kLanes, false>(sums, packed.float_output, block.first, block.valid,
                                       {.scale = run.scale, .zero = 0},
                                       reinterpret_cast<float*>(out));
    }
}

template <std::size_t kLanes, typename T>
void run_block_of(const PackedDepthwise& packed, const ChannelBlock& block,
                  const DepthwiseRun& run) {
    if constexpr (std::is_same_v<T, std::int16_t>) {
        if (packed.taps == 9)
            run_steps_block<kLanes, 9>(packed, block, run);
        else
            run_steps_block<kLanes, 0>(packed, block, run);
    } else {
        if (packed.taps == 9)
            run_block<kLanes, T, 9>(packed, block, run);
        else
            run_block<kLanes, T, 0>(packed, block, run);
    }
}

constexpr bool signed_quads = reef::HWY_NAMESPACE::may_have_signed_quad_products;
constexpr bool may_have_quads = reef::HWY_NAMESPACE::may_have_quad_products || signed_quads;
/// Channels of a block of four of the target's vectors.
constexpr std::size_t widest_quads = HWY_MAX_BYTES;

constexpr std::size_t columns_of_kernel = 3;

/// Of a block of four vectors: four bytes for each channel.
template <std::size_t kLanes>
struct Fours {
    SumVector<kLanes> groups[4];
};

template <std::size_t kLanes>
using InputBytes = hn::Repartition<std::uint8_t, Sums<kLanes> >;

/// Of one tap.
template <std::size_t kLanes, typename T>
HWY_INLINE hn::Vec<InputBytes<kLanes> > bytes_at(const std::byte* at) {
    const InputBytes<kLanes> d8;
    const auto values = hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(at));
    return std::is_signed_v<T> == signed_quads ? values : hn::Xor(values, hn::Set(d8, 0x80));
}

template <std::size_t kLanes, class V>
HWY_INLINE Fours<kLanes> fours_of(V first, V second, V third, V fourth) {
    const Sums<kLanes> d;
    const InputBytes<kLanes> d8;
    const hn::Repartition<std::uint16_t, Sums<kLanes> > d16;
    const auto lower = hn::BitCast(d16, hn::InterleaveLower(d8, first, second));
    const auto upper = hn::BitCast(d16, hn::InterleaveUpper(d8, first, second));
    const auto lower_rest = hn::BitCast(d16, hn::InterleaveLower(d8, third, fourth));
    const auto upper_rest = hn::BitCast(d16, hn::InterleaveUpper(d8, third, fourth));
    return {{hn::BitCast(d, hn::InterleaveLower(d16, lower, lower_rest)),
             hn::BitCast(d, hn::InterleaveUpper(d16, lower, lower_rest)),
             hn::BitCast(d, hn::InterleaveLower(d16, upper, upper_rest)),
             hn::BitCast(d, hn::InterleaveUpper(d16, upper, upper_rest))}};
}

/// The three bytes of a column of taps, and a zero.
template <std::size_t kLanes, typename T>
HWY_INLINE Fours<kLanes> column_at(const std::byte* const* taps, std::size_t offset) {
    const auto row = [&](std::size_t ky) HWY_ATTR {
        return bytes_at<kLanes, T>(taps[ky * columns_of_kernel] + offset);
    };
    return fours_of<kLanes>(row(0), row(1), row(2), hn::Zero(InputBytes<kLanes>()));
}

template <class D, class V = hn::Vec<D> >
HWY_INLINE V add_quads(D d, V values, V weights, V sum) {
    if constexpr (signed_quads)
        return reef::HWY_NAMESPACE::add_signed_quad_products(d, values, weights, sum);
    else
        return reef::HWY_NAMESPACE::add_quad_products(d, values, weights, sum);
}

/// `groups`: of the kernel.
template <std::size_t kLanes, std::size_t kPlanes>
HWY_INLINE void add_fours(const Fours<kLanes>& fours, const std::int32_t* HWY_RESTRICT weights,
                          std::size_t groups, SumVector<kLanes> (&sums)[4]) {
    const Sums<kLanes> d;
    const std::size_t plane = groups * 4 * kLanes;
    REEF_UNROLL for (std::size_t v = 0; v < 4; ++v) {
        REEF_UNROLL for (std::size_t p = 0; p < kPlanes; ++p) sums[v] =
            add_quads(d, fours.groups[v], hn::Load(d, weights + p * plane + v * kLanes), sums[v]);
    }
}

template <std::size_t kLanes, typename T>
HWY_INLINE void store_quads(SumVector<kLanes> (&sums)[4], const std::int32_t* HWY_RESTRICT stage,
                            const OutputStage& how, std::uint8_t* HWY_RESTRICT out) {
    const hn::Repartition<std::int16_t, Sums<kLanes> > d16;
    const hn::Repartition<T, Sums<kLanes> > d8;
    output_values<kLanes, Ties::away_from_zero>(sums, stage, how);
    const auto words = [&](auto lo, auto hi) HWY_ATTR {
        return hn::SaturatedAdd(hn::ReorderDemote2To(d16, lo, hi), hn::Set(d16, how.zero));
    };
    // Saturation cannot show: the clamp's ends are values of T, for the output has the input's
    // type.
    const auto bytes =
        hn::BitCast(d8, narrowed_words<T>(words(sums[0], sums[1]), words(sums[2], sums[3])));
    const auto clamped = hn::Clamp(bytes, hn::Set(d8, static_cast<T>(how.min)),
                                   hn::Set(d8, static_cast<T>(how.max)));
    hn::StoreU(clamped, d8, reinterpret_cast<T*>(out));
}

/// Columns that the next pixel shares are kept.
template <std::size_t kLanes, typename T, std::size_t kPlanes>
void run_columns(const PackedDepthwise& packed, const ChannelBlock& block,
                 const DepthwiseRun& run) {
    constexpr std::size_t width = 4 * kLanes;
    const std::int32_t* HWY_RESTRICT stage = packed.stage.rows.get() + block.stage;
    const auto* HWY_RESTRICT weights =
        reinterpret_cast<const std::int32_t*>(packed.weights.get() + block.weights);
    const std::byte* const* taps = run.taps.data();
    std::uint8_t* HWY_RESTRICT out = run.out + block.first;
    std::size_t offset = block.first;
    auto left = column_at<kLanes, T>(taps, offset);
    auto middle = column_at<kLanes, T>(taps + 1, offset);
    for (std::size_t p = 0; p < run.pixels; ++p, out += run.out_stride) {
        const auto right = column_at<kLanes, T>(taps + 2, offset);
        SumVector<kLanes> sums[4];
        REEF_UNROLL for (std::size_t v = 0; v < 4; ++v) sums[v] =
            bias_of<kLanes>(packed.stage, block, v);
        add_fours<kLanes, kPlanes>(left, weights, columns_of_kernel, sums);
        add_fours<kLanes, kPlanes>(middle, weights + width, columns_of_kernel, sums);
        add_fours<kLanes, kPlanes>(right, weights + 2 * width, columns_of_kernel, sums);
        store_quads<kLanes, T>(sums, stage, packed.stage, out);
        if (p + 1 == run.pixels) break;
        offset += run.step;
        left = run.columns == 1   ? middle
               : run.columns == 2 ? right
                                  : column_at<kLanes, T>(taps, offset);
        middle = run.columns == 1 ? right : column_at<kLanes, T>(taps + 1, offset);
    }
}

/// Kernels of any size, four taps at a time; weights behind the last tap are 0.
template <std::size_t kLanes, typename T, std::size_t kPlanes>
void run_groups(const PackedDepthwise& packed, const ChannelBlock& block, const DepthwiseRun& run) {
    constexpr std::size_t width = 4 * kLanes;
    const std::int32_t* HWY_RESTRICT stage = packed.stage.rows.get() + block.stage;
    const auto* HWY_RESTRICT weights =
        reinterpret_cast<const std::int32_t*>(packed.weights.get() + block.weights);
    const std::size_t groups = packed.groups, last = packed.taps - 1;
    std::uint8_t* HWY_RESTRICT out = run.out + block.first;
    std::size_t offset = block.first;
    for (std::size_t p = 0; p < run.pixels; ++p, offset += run.step, out += run.out_stride) {
        SumVector<kLanes> sums[4];
        REEF_UNROLL for (std::size_t v = 0; v < 4; ++v) sums[v] =
            bias_of<kLanes>(packed.stage, block, v);
        for (std::size_t g = 0; g < groups; ++g) {
            const auto tap = [&](std::size_t i) HWY_ATTR {
                return bytes_at<kLanes, T>(run.taps[std::min(4 * g + i, last)] + offset);
            };
            add_fours<kLanes, kPlanes>(fours_of<kLanes>(tap(0), tap(1), tap(2), tap(3)),
                                       weights + g * width, groups, sums);
        }
        store_quads<kLanes, T>(sums, stage, packed.stage, out);
    }
}

template <std::size_t kLanes, typename T, std::size_t kPlanes>
void run_fours(const PackedDepthwise& packed, const ChannelBlock& block, const DepthwiseRun& run) {
    if (packed.by_columns)
        run_columns<kLanes, T, kPlanes>(packed, block, run);
    else
        run_groups<kLanes, T, kPlanes>(packed, block, run);
}

template <std::size_t kLanes, typename T>
void run_fours_of(const PackedDepthwise& packed, const ChannelBlock& block,
                  const DepthwiseRun& run) {
    if (packed.planes == 1)
        run_fours<kLanes, T, 1>(packed, block, run);
    else if (packed.planes == 2)
        run_fours<kLanes, T, 2>(packed, block, run);
    else
        run_fours<kLanes, T, 3>(packed, block, run);
}

/// A run of pixels as one row of bytes, a whole vector at a time; the last one may compute some a
/// second time.
template <typename T, std::size_t kPlanes>
void run_flat(const PackedDepthwise& packed, const DepthwiseRun& run) {
    constexpr std::size_t width = widest_quads, lanes = width / 4;
    const std::byte* const* taps = run.taps.data();
    const std::size_t bytes = run.pixels * run.step;
    const ChannelBlock* const first = packed.blocks.data() + packed.pixel_blocks;
    const ChannelBlock* const last = packed.blocks.data() + packed.blocks.size() - 1;
    const ChannelBlock* block = first;
    for (std::size_t offset = 0;; offset += width, block = block == last ? first : block + 1) {
        if (offset + width > bytes) {
            offset = bytes - width;
            block = last;
        }
        const std::int32_t* HWY_RESTRICT stage = packed.stage.rows.get() + block->stage;
        const auto* HWY_RESTRICT weights =
            reinterpret_cast<const std::int32_t*>(packed.weights.get() + block->weights);
        SumVector<lanes> sums[4];
        REEF_UNROLL for (std::size_t v = 0; v < 4; ++v) sums[v] =
            bias_of<lanes>(packed.stage, *block, v);
        add_fours<lanes, kPlanes>(column_at<lanes, T>(taps, offset), weights, columns_of_kernel,
                                  sums);
        add_fours<lanes, kPlanes>(column_at<lanes, T>(taps + 1, offset), weights + width,
                                  columns_of_kernel, sums);
        add_fours<lanes, kPlanes>(column_at<lanes, T>(taps + 2, offset), weights + 2 * width,
                                  columns_of_kernel, sums);
        store_quads<lanes, T>(sums, stage, packed.stage, run.out + offset);
        if (offset + width == bytes) return;
    }
}

template <typename T>
void run_flat_of(const PackedDepthwise& packed, const DepthwiseRun& run) {
    if (packed.planes == 1)
        run_flat<T, 1>(packed, run);
    else if (packed.planes == 2)
        run_flat<T, 2>(packed, run);
    else
        run_flat<T, 3>(packed, run);
}

template <typename T>
void run_four_vectors([[maybe_unused]] const PackedDepthwise& packed, const ChannelBlock& block,
                      [[maybe_unused]] const DepthwiseRun& run) {
    if constexpr (may_have_quads) {
#if HWY_MAX_BYTES >= 64
        if (block.width == 64) return run_fours_of<16, T>(packed, block, run);
#endif
#if HWY_MAX_BYTES >= 32
        if (block.width == 32) return run_fours_of<8, T>(packed, block, run);
#endif
        run_fours_of<4, T>(packed, block, run);
    } else {
        HWY_ABORT("a block of %d vectors for a target that has none",
                  static_cast<int>(block.vectors));
    }
}

template <std::size_t kLanes>
void widen_block(const PackedDepthwise& packed, const ChannelBlock& block, std::byte* widened) {
    const Values<kLanes> d16;
    const std::byte* from = packed.weights.get() + block.weights;
    auto* to = reinterpret_cast<std::int16_t*>(widened + block.widened);
    const auto zero = hn::Set(d16, packed.zero);
    for (std::size_t t = 0; t < packed.taps; t += 2, from += 4 * kLanes, to += 4 * kLanes) {
        const auto a = hn::Sub(values_at<kLanes, std::int8_t>(from), zero);
        const auto b = t + 1 == packed.taps
                           ? hn::Zero(d16)
                           : hn::Sub(values_at<kLanes, std::int8_t>(from + 2 * kLanes), zero);
        hn::Store(adds_single_taps ? a : hn::InterleaveLower(d16, a, b), d16, to);
        hn::Store(adds_single_taps ? b : hn::InterleaveUpper(d16, a, b), d16, to + 2 * kLanes);
    }
}

void widen(const PackedDepthwise& packed, std::byte* to) {
    for (const ChannelBlock& block : packed.blocks) {
        if (block.vectors != 2) continue;
        if (HWY_MAX_BYTES >= 64 && block.width == 32)
            widen_block<(HWY_MAX_BYTES >= 64 ? 16 : 4)>(packed, block, to);
        else if (HWY_MAX_BYTES >= 32 && block.width == 16)
            widen_block<(HWY_MAX_BYTES >= 32 ? 8 : 4)>(packed, block, to);
        else
            widen_block<4>(packed, block, to);
    }
}

/// Blocks of two vectors.
template <typename T>
HWY_INLINE void run_pairs(const PackedDepthwise& packed, const ChannelBlock& block,
                          const DepthwiseRun& run) {
#if HWY_MAX_BYTES >= 64
    if (block.width == 32) return run_block_of<16, T>(packed, block, run);
#endif
#if HWY_MAX_BYTES >= 32
    if (block.width == 16) return run_block_of<8, T>(packed, block, run);
#endif
    run_block_of<4, T>(packed, block, run);
}

void run_steps(const PackedDepthwise& packed, const DepthwiseRun& run) {
    for (const ChannelBlock& block : packed.blocks) run_pairs<std::int16_t>(packed, block, run);
}

template <typename T>
void run_blocks(const PackedDepthwise& packed, const DepthwiseRun& run) {
    if constexpr (may_have_quads)
        if (packed.pixel_blocks < packed.blocks.size() && run.pixels * run.step >= widest_quads)
            return run_flat_of<T>(packed, run);
    for (const ChannelBlock& block : std::span(packed.blocks).first(packed.pixel_blocks)) {
        if (block.vectors == 4) {
            run_four_vectors<T>(packed, block, run);
            continue;
        }
        run_pairs<T>(packed, block, run);
    }
}

}  // namespace

/// `kProducts`: beside the target's own.
template <ByteProducts kProducts>
const DepthwiseFunctions* depthwise_beside() {
    constexpr bool has_quads =
        reef::HWY_NAMESPACE::has_quad_products || kProducts != ByteProducts::none;
    static const DepthwiseFunctions functions{
        .target = simd_target_name().data(),
        .blocks = {.widest = widest_block,
                   .widest_quads = has_quads ? widest_quads : 0,
                   .signed_quads = signed_quads},
        .widen = widen,
        .run_uint8 = run_blocks<std::uint8_t>,
        .run_int8 = run_blocks<std::int8_t>,
        .run_steps = run_steps};
    return &functions;
}

const DepthwiseFunctions* target_depthwise() {
    if constexpr (may_have_quads) {
        if (byte_products() == ByteProducts::dot) return depthwise_beside<ByteProducts::dot>();
        if (byte_products() == ByteProducts::matrix)
            return depthwise_beside<ByteProducts::matrix>();
    }
    return depthwise_beside<ByteProducts::none>();
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(target_depthwise);

const DepthwiseFunctions* depthwise_functions() {
    return HWY_DYNAMIC_DISPATCH(target_depthwise)();
}

}  // namespace reef::cpu
#endif

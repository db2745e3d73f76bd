#include "cpu/fast/depthwise_product.h"

#include <algorithm>
#include <numeric>
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
#include "reef/base/file.h"

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

/// Of a block of four vectors: for each channel the three bytes of a column of taps, and a zero.
template <std::size_t kLanes>
struct Column {
    SumVector<kLanes> groups[4];
};

template <std::size_t kLanes, typename T>
HWY_INLINE Column<kLanes> column_at(const std::byte* const* taps, std::size_t offset) {
    const Sums<kLanes> d;
    const hn::Repartition<std::uint8_t, Sums<kLanes> > d8;
    const hn::Repartition<std::uint16_t, Sums<kLanes> > d16;
    const auto row = [&](std::size_t ky) HWY_ATTR {
        const auto* from =
            reinterpret_cast<const std::uint8_t*>(taps[ky * columns_of_kernel] + offset);
        const auto values = hn::LoadU(d8, from);
        return std::is_signed_v<T> == signed_quads ? values : hn::Xor(values, hn::Set(d8, 0x80));
    };
    const auto first = row(0), second = row(1), third = row(2), zero = hn::Zero(d8);
    const auto lower = hn::BitCast(d16, hn::InterleaveLower(d8, first, second));
    const auto upper = hn::BitCast(d16, hn::InterleaveUpper(d8, first, second));
    const auto lower_rest = hn::BitCast(d16, hn::InterleaveLower(d8, third, zero));
    const auto upper_rest = hn::BitCast(d16, hn::InterleaveUpper(d8, third, zero));
    return {{hn::BitCast(d, hn::InterleaveLower(d16, lower, lower_rest)),
             hn::BitCast(d, hn::InterleaveUpper(d16, lower, lower_rest)),
             hn::BitCast(d, hn::InterleaveLower(d16, upper, upper_rest)),
             hn::BitCast(d, hn::InterleaveUpper(d16, upper, upper_rest))}};
}

template <class D, class V = hn::Vec<D> >
HWY_INLINE V add_quads(D d, V values, V weights, V sum) {
    if constexpr (signed_quads)
        return reef::HWY_NAMESPACE::add_signed_quad_products(d, values, weights, sum);
    else
        return reef::HWY_NAMESPACE::add_quad_products(d, values, weights, sum);
}

template <std::size_t kLanes, std::size_t kPlanes>
HWY_INLINE void add_column(const Column<kLanes>& column, const std::int32_t* HWY_RESTRICT weights,
                           SumVector<kLanes> (&sums)[4]) {
    const Sums<kLanes> d;
    constexpr std::size_t plane = columns_of_kernel * 4 * kLanes;
    REEF_UNROLL for (std::size_t v = 0; v < 4; ++v) {
        REEF_UNROLL for (std::size_t p = 0; p < kPlanes; ++p) sums[v] =
            add_quads(d, column.groups[v], hn::Load(d, weights + p * plane + v * kLanes), sums[v]);
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
        add_column<kLanes, kPlanes>(left, weights, sums);
        add_column<kLanes, kPlanes>(middle, weights + width, sums);
        add_column<kLanes, kPlanes>(right, weights + 2 * width, sums);
        store_quads<kLanes, T>(sums, stage, packed.stage, out);
        if (p + 1 == run.pixels) break;
        offset += run.step;
        left = run.columns == 1   ? middle
               : run.columns == 2 ? right
                                  : column_at<kLanes, T>(taps, offset);
        middle = run.columns == 1 ? right : column_at<kLanes, T>(taps + 1, offset);
    }
}

template <std::size_t kLanes, typename T>
void run_columns_of(const PackedDepthwise& packed, const ChannelBlock& block,
                    const DepthwiseRun& run) {
    if (packed.planes == 1)
        run_columns<kLanes, T, 1>(packed, block, run);
    else if (packed.planes == 2)
        run_columns<kLanes, T, 2>(packed, block, run);
    else
        run_columns<kLanes, T, 3>(packed, block, run);
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
        add_column<lanes, kPlanes>(column_at<lanes, T>(taps, offset), weights, sums);
        add_column<lanes, kPlanes>(column_at<lanes, T>(taps + 1, offset), weights + width, sums);
        add_column<lanes, kPlanes>(column_at<lanes, T>(taps + 2, offset), weights + 2 * width,
                                   sums);
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
        if (block.width == 64) return run_columns_of<16, T>(packed, block, run);
#endif
#if HWY_MAX_BYTES >= 32
        if (block.width == 32) return run_columns_of<8, T>(packed, block, run);
#endif
        run_columns_of<4, T>(packed, block, run);
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
    static const DepthwiseFunctions functions{.target = simd_target_name().data(),
                                              .widest_block = widest_block,
                                              .widest_quads = has_quads ? widest_quads : 0,
                                              .signed_quads = signed_quads,
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

namespace {

/// Whole blocks; what is left of them at the end is covered by one that overlaps the block before,
/// so that no load reaches behind a pixel's channels. With `columns`, those of 16 channels and more
/// are of four vectors.
std::vector<ChannelBlock> overlapping_blocks(std::size_t channels, std::size_t widest,
                                             bool columns) {
    const std::size_t packed = std::max(channels, least_channels);
    std::vector<ChannelBlock> blocks;
    for (std::size_t first = 0; first < packed;) {
        std::size_t width = widest;
        while (width > least_channels && width > packed - first) width /= 2;
        const std::size_t begin = std::min(first, packed - width);
        blocks.push_back({.first = begin,
                          .width = width,
                          .vectors = columns && width >= 16 ? 4U : 2U,
                          .valid = std::min(width, channels - begin)});
        first = begin + width;
    }
    return blocks;
}

/// For runs of pixels whose channels do not fill `width` bytes, which are then of some pixels:
/// blocks until one would begin at channel 0 again. A run's last vector begins where the last block
/// does.
void add_flat_blocks(std::size_t channels, std::size_t width, std::vector<ChannelBlock>& blocks) {
    constexpr std::size_t most = 8;
    const std::size_t count = channels / std::gcd(channels, width);
    if (channels < least_channels || channels >= width || count > most) return;
    for (std::size_t i = 0; i < count; ++i)
        blocks.push_back(
            {.first = i * width % channels, .width = width, .vectors = 4, .valid = width});
}

}  // namespace

namespace {

constexpr std::int32_t middle = 128;

/// What is added to the input's values where blocks of four vectors read them: their highest bit is
/// flipped.
std::int32_t raised_by(const Convolution& c, bool signed_quads) {
    if (signed_quads) return c.type == ElementType::uint8 ? -middle : 0;
    return c.type == ElementType::int8 ? middle : 0;
}

struct WeightReader {
    const Convolution& c;

    [[nodiscard]] std::int32_t at(std::size_t tap, std::size_t channel) const {
        const auto channels = static_cast<std::size_t>(c.out_channels);
        const auto raw = std::to_integer<std::uint8_t>(c.weights.view()[tap * channels + channel]);
        return (c.type == ElementType::int8 ? static_cast<std::int8_t>(raw) : std::int32_t{raw}) -
               c.weight_zero;
    }
    [[nodiscard]] std::uint32_t sum(std::size_t taps, std::size_t channel) const {
        std::uint32_t sum = 0;
        for (std::size_t tap = 0; tap < taps; ++tap)
            sum += static_cast<std::uint32_t>(at(tap, channel));
        return sum;
    }
};

/// How many int8 add up to every weight.
std::size_t planes_of(const WeightReader& weights, std::size_t taps, std::size_t channels) {
    std::size_t planes = 1;
    for (std::size_t tap = 0; tap < taps; ++tap)
        for (std::size_t channel = 0; channel < channels; ++channel) {
            const std::int32_t weight = weights.at(tap, channel);
            while (weight < -middle * static_cast<std::int32_t>(planes) ||
                   weight > (middle - 1) * static_cast<std::int32_t>(planes))
                ++planes;
        }
    return planes;
}

/// `to`: where those of the block are packed.
void pack_bytes(const WeightReader& weights, const PackedDepthwise& packed,
                const ChannelBlock& block, std::size_t lane, std::size_t channel, std::byte* to) {
    for (std::size_t tap = 0; tap < packed.taps; ++tap)
        to[tap * block.width + block.channel_of(lane)] =
            static_cast<std::byte>(weights.at(tap, channel) + packed.zero);
}

void pack_columns(const WeightReader& weights, const PackedDepthwise& packed,
                  const ChannelBlock& block, std::size_t lane, std::size_t channel, std::byte* to) {
    constexpr std::size_t columns = 3, group = 4;
    for (std::size_t tap = 0; tap < packed.taps; ++tap) {
        std::int32_t left = weights.at(tap, channel);
        for (std::size_t plane = 0; plane < packed.planes; ++plane) {
            const std::int32_t part = std::clamp(left, -middle, middle - 1);
            to[((plane * columns + tap % columns) * block.width + lane) * group + tap / columns] =
                static_cast<std::byte>(part);
            left -= part;
        }
    }
}

void pack_blocks(const Convolution& c, const PackedDepthwise& packed, std::byte* to) {
    const WeightReader weights{c};
    for (const ChannelBlock& block : packed.blocks) {
        const bool columns = block.vectors == 4;
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t offset = block.channel_of(lane);
            if (offset >= block.valid) continue;
            const std::size_t channel =
                (block.first + offset) % static_cast<std::size_t>(c.out_channels);
            (columns ? pack_columns : pack_bytes)(weights, packed, block, lane, channel,
                                                  to + block.weights);
        }
    }
}

PackingForm form_of(const Convolution& c, const PackedDepthwise& packed) {
    return {PackingForm::Kind::depthwise,
            {static_cast<std::int64_t>(c.type), c.weight_zero, c.out_channels,
             static_cast<std::int64_t>(packed.blocks.front().width),
             static_cast<std::int64_t>(packed.blocks.front().vectors),
             static_cast<std::int64_t>(packed.blocks.back().width),
             static_cast<std::int64_t>(packed.blocks.size())}};
}

}  // namespace

PackedDepthwise lay_out_depthwise(const Convolution& c, const DepthwiseFunctions& functions) {
    PackedDepthwise packed;
    const auto channels = static_cast<std::size_t>(c.out_channels);
    packed.taps = static_cast<std::size_t>(c.h.taps * c.w.taps);
    const bool columns = functions.widest_quads != 0 && c.h.taps == 3 && c.w.taps == 3 && !c.floats;
    packed.signed_quads = functions.signed_quads;
    packed.blocks = overlapping_blocks(
        channels, columns ? functions.widest_quads : functions.widest_block, columns);
    packed.pixel_blocks = packed.blocks.size();
    if (columns && c.w.stride == 1 && c.w.dilation == 1)
        add_flat_blocks(channels, functions.widest_quads, packed.blocks);
    packed.planes = planes_of(WeightReader{c}, packed.taps, channels);
    packed.zero =
        static_cast<std::int16_t>(c.weight_zero - (c.type == ElementType::uint8 ? middle : 0));
    for (ChannelBlock& block : packed.blocks) {
        constexpr std::size_t widest = 64;  // of a vector that is loaded aligned
        const bool is_widened = block.vectors == 2;
        if (!is_widened)
            packed.weights_bytes = (packed.weights_bytes + widest - 1) / widest * widest;
        block.weights = packed.weights_bytes;
        block.widened = packed.widened_bytes;
        packed.weights_bytes +=
            is_widened ? packed.taps * block.width : packed.planes * 3 * 4 * block.width;
        if (is_widened) packed.widened_bytes += (packed.taps + 1) / 2 * 4 * block.width;
    }
    if (c.floats)
        place_empty_stage(packed.blocks, packed.stage);
    else
        packed.stage.size = place_output_stage(c, packed.blocks);
    return packed;
}

void pack_depthwise(const Convolution& c, PackedDepthwise& packed) {
    const WeightReader weights{c};
    const auto bias = [&](const ChannelBlock& block, std::size_t channel) {
        const std::int32_t raised = block.vectors == 4 ? raised_by(c, packed.signed_quads) : 0;
        const auto zero = static_cast<std::uint32_t>(c.input_zero + raised);
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(c.bias[channel]) -
                                         zero * weights.sum(packed.taps, channel));
    };
    if (!c.floats) pack_output_stage(c, bias, packed.blocks, packed.stage);
    packed.weights = share_packed(c.weights, form_of(c, packed), packed.weights_bytes,
                                  [&](std::byte* to) { pack_blocks(c, packed, to); });
    will_not_read(c.weights);
}

}  // namespace reef::cpu
#endif

#include "cpu/fast/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/matrix_product.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/channel_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const MatrixFunctions* target_functions() {
    return nullptr;
}

#else
namespace {

// Sums of rows x 2 vectors, the weights and one broadcast pair stay in registers.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr std::size_t most_rows = 8;
#elif HWY_TARGET == HWY_EMU128
constexpr std::size_t most_rows = 2;
#else
constexpr std::size_t most_rows = 6;
#endif

constexpr GroupOf group_of_target =
    reef::HWY_NAMESPACE::has_quad_products ? GroupOf::quads : GroupOf::pairs;

template <class D>
HWY_INLINE hn::Vec<D> broadcast_group(D d, const std::byte* at) {
    std::int32_t group = 0;
    std::memcpy(&group, at, sizeof(group));
    return hn::Set(d, group);
}

template <class D, class V>
HWY_INLINE V add_products(D d, V activations, V weights, V sum) {
    if constexpr (group_of_target == GroupOf::quads) {
        return reef::HWY_NAMESPACE::add_quad_products(d, activations, weights, sum);
    } else {
        const hn::Repartition<std::int16_t, D> d16;
        return add_pair_products(d, hn::BitCast(d16, activations), hn::BitCast(d16, weights), sum);
    }
}

/// kChains independent sums per row and channel hide the latency of the additions where few rows
/// leave nothing else to do.
template <std::size_t kLanes, std::size_t kRows, std::size_t kChains>
HWY_INLINE void multiply_tile(const PackedMatrix& matrix, const ChannelBlock& block,
                              const std::byte* HWY_RESTRICT rows,
                              const std::int32_t* HWY_RESTRICT row_sums,
                              std::uint8_t* HWY_RESTRICT out, std::size_t out_stride) {
    const Sums<kLanes> d;
    const std::size_t groups = matrix.groups;
    const std::size_t row_bytes = matrix.row_bytes();
    const auto* HWY_RESTRICT weights =
        reinterpret_cast<const std::int32_t*>(matrix.weights.get() + block.weights);
    const std::int32_t* HWY_RESTRICT stage = matrix.stage.rows.get() + block.stage;
    // Arrays of sums become registers only when no loop is left that indexes them.
    SumVector<kLanes> lo[kChains][kRows];
    SumVector<kLanes> hi[kChains][kRows];
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        lo[0][r] = bias_of<kLanes>(stage, 0);
        hi[0][r] = bias_of<kLanes>(stage, 1);
        REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) lo[chain][r] =
            hi[chain][r] = hn::Zero(d);
    }
    if (row_sums != nullptr) {
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            const auto more = hn::Set(d, row_sums[r]);
            lo[0][r] = hn::Add(lo[0][r], more);
            hi[0][r] = hn::Add(hi[0][r], more);
        }
    }
    std::size_t k = 0;
    for (; k + kChains <= groups; k += kChains) {
        REEF_UNROLL for (std::size_t chain = 0; chain < kChains; ++chain) {
            const auto w_lo = hn::Load(d, weights);
            const auto w_hi = hn::Load(d, weights + kLanes);
            weights += 2 * kLanes;
            REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
                const auto group =
                    broadcast_group(d, rows + r * row_bytes + (k + chain) * group_bytes);
                lo[chain][r] = add_products(d, group, w_lo, lo[chain][r]);
                hi[chain][r] = add_products(d, group, w_hi, hi[chain][r]);
            }
        }
    }
    if constexpr (kChains > 1) {
        for (; k < groups; ++k, weights += 2 * kLanes) {
            REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
                const auto group = broadcast_group(d, rows + r * row_bytes + k * group_bytes);
                lo[0][r] = add_products(d, group, hn::Load(d, weights), lo[0][r]);
                hi[0][r] = add_products(d, group, hn::Load(d, weights + kLanes), hi[0][r]);
            }
        }
    }
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) {
            lo[0][r] = hn::Add(lo[0][r], lo[chain][r]);
            hi[0][r] = hn::Add(hi[0][r], hi[chain][r]);
        }
        store_bytes<kLanes>(
            output_bytes<kLanes, Ties::upwards>(lo[0][r], hi[0][r], stage, matrix.stage),
            block.valid, out + r * out_stride);
    }
}

/// Where the product of some rows and a block goes.
struct Target {
    const PackedMatrix& matrix;
    const ChannelBlock& block;
    Rows rows;
    std::uint8_t* out;
    std::size_t out_stride;

    [[nodiscard]] Target from(std::size_t row) const {
        return {matrix,
                block,
                {rows.values + row * matrix.row_bytes(),
                 rows.sums == nullptr ? nullptr : rows.sums + row},
                out + row * out_stride,
                out_stride};
    }
};

template <std::size_t kLanes, std::size_t kRows>
HWY_NOINLINE void multiply_rows(const Target& to) {
    multiply_tile<kLanes, kRows, kRows == 1 ? 4 : (kRows <= 3 ? 2 : 1)>(
        to.matrix, to.block, to.rows.values, to.rows.sums, to.out, to.out_stride);
}

/// Fewer rows than a full step takes.
template <std::size_t kLanes, std::size_t kRows>
HWY_INLINE void multiply_rest(std::size_t count, const Target& to) {
    if constexpr (kRows > 0) {
        if (count == kRows)
            multiply_rows<kLanes, kRows>(to);
        else
            multiply_rest<kLanes, kRows - 1>(count, to);
    }
}

template <std::size_t kLanes>
void multiply_block(const Target& to, std::size_t count) {
    std::size_t r = 0;
    for (; r + most_rows <= count; r += most_rows) multiply_rows<kLanes, most_rows>(to.from(r));
    multiply_rest<kLanes, most_rows - 1>(count - r, to.from(r));
}

void multiply(const PackedMatrix& matrix, Rows rows, std::size_t count, std::size_t begin,
              std::size_t end, std::uint8_t* out, std::size_t out_stride) {
    for (std::size_t i = begin; i < end; ++i) {
        const ChannelBlock& block = matrix.blocks[i];
        const Target to{matrix, block, rows, out + block.first, out_stride};
#if HWY_MAX_BYTES >= 64
        if (block.width == 32) {
            multiply_block<16>(to, count);
            continue;
        }
#endif
#if HWY_MAX_BYTES >= 32
        if (block.width == 16) {
            multiply_block<8>(to, count);
            continue;
        }
#endif
        multiply_block<4>(to, count);
    }
}

/// What a value becomes in a row: int16, or uint8 without a sign.
template <typename T>
using RowValue = std::conditional_t<group_of_target == GroupOf::quads, std::uint8_t, std::int16_t>;

template <typename T>
constexpr RowValue<T> row_value(T value) {
    if constexpr (group_of_target == GroupOf::pairs) return value;
    return static_cast<std::uint8_t>(static_cast<std::uint8_t>(value) ^
                                     (std::is_signed_v<T> ? 0x80U : 0U));
}

/// Whole vectors of kLanes values, of which the last may reach behind `count` on both sides; where
/// the input ends before that, one value at a time.
template <std::size_t kLanes, typename T>
HWY_INLINE void copy_values(const T* HWY_RESTRICT from, std::size_t count, const T* end,
                            RowValue<T>* HWY_RESTRICT to) {
    const hn::CappedTag<RowValue<T>, kLanes> d;
    const hn::Rebind<T, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    const auto readable = static_cast<std::size_t>(end - from);
    std::size_t i = 0;
    for (; i < count && i + lanes <= readable; i += lanes) {
        const auto values = hn::LoadU(d8, from + i);
        if constexpr (group_of_target == GroupOf::pairs)
            hn::StoreU(hn::PromoteTo(d, values), d, to + i);
        else if constexpr (std::is_signed_v<T>)
            hn::StoreU(hn::Xor(hn::BitCast(d, values), hn::Set(d, 0x80)), d, to + i);
        else
            hn::StoreU(values, d, to + i);
    }
    for (; i < count; ++i) to[i] = row_value(from[i]);
}

template <typename T>
struct Gatherer {
    const Convolution& c;
    const T* input;
    const T* end;
    std::size_t depth;  ///< values per tap
    std::size_t row;    ///< values per gathered row, padding included
    using To = RowValue<T>*;

    /// One row of taps, at input row `iy` of an image.
    void taps(const T* image, std::int64_t iy, std::int64_t ix, To to) const {
        const WindowAxis& w = c.w;
        const auto zero = row_value(static_cast<T>(c.input_zero));
        const auto count = static_cast<std::size_t>(w.taps);
        if (!c.h.contains(iy)) {
            std::fill_n(to, count * depth, zero);
            return;
        }
        const T* line = image + iy * w.in * c.in_channels;
        for (std::size_t kx = 0; kx < count; ++kx, ix += w.dilation, to += depth) {
            if (w.contains(ix))
                copy_values<16>(line + ix * c.in_channels, depth, end, to);
            else
                std::fill_n(to, depth, zero);
        }
    }

    /// A pixel with taps outside the input, or with dilated ones.
    void pixel(const T* image, std::int64_t y, std::int64_t x, To to) const {
        const std::size_t line = static_cast<std::size_t>(c.w.taps) * depth;
        for (std::int64_t ky = 0; ky < c.h.taps; ++ky, to += line)
            taps(image, c.h.first(y) + ky * c.h.dilation, c.w.first(x), to);
    }

    /// Pixels whose taps lie inside, side by side in each row: one piece of input per row of taps.
    template <std::size_t kLanes>
    void inside(const T* image, std::int64_t y, std::int64_t x, std::int64_t count, To to) const {
        const std::size_t line = static_cast<std::size_t>(c.w.taps) * depth;
        const std::int64_t down = c.h.dilation * c.w.in * c.in_channels;
        const T* from = image + (c.h.first(y) * c.w.in + c.w.first(x)) * c.in_channels;
        for (; count > 0; --count, from += c.w.stride * c.in_channels, to += row)
            for (std::int64_t ky = 0; ky < c.h.taps; ++ky)
                copy_values<kLanes>(from + ky * down, line, end,
                                    to + static_cast<std::size_t>(ky) * line);
    }

    /// Pixels [begin, end) of one output row.
    void pixels(const T* image, std::int64_t y, std::int64_t begin, std::int64_t stop,
                To to) const {
        const WindowAxis& h = c.h;
        const WindowAxis& w = c.w;
        std::int64_t first = stop;
        std::int64_t last = stop;
        if (w.dilation == 1 && h.contains(h.first(y)) &&
            h.contains(h.first(y) + (h.taps - 1) * h.dilation)) {
            first = std::clamp((w.pad + w.stride - 1) / w.stride, begin, stop);
            const std::int64_t room = w.in - w.taps + w.pad;
            last = room < 0 ? first : std::clamp(room / w.stride + 1, first, stop);
        }
        const auto at = [&](std::int64_t x) {
            return to + static_cast<std::size_t>(x - begin) * row;
        };
        for (std::int64_t x = begin; x < first; ++x) pixel(image, y, x, at(x));
        if (static_cast<std::size_t>(w.taps) * depth <= 16)
            inside<16>(image, y, first, last - first, at(first));
        else
            inside<32>(image, y, first, last - first, at(first));
        for (std::int64_t x = last; x < stop; ++x) pixel(image, y, x, at(x));
    }
};

[[nodiscard]] bool reads_in_order(const Convolution& c) {
    return c.h.taps == 1 && c.w.taps == 1 && c.h.stride == 1 && c.w.stride == 1 && c.h.pad == 0 &&
           c.w.pad == 0;
}

/// Whether the input is made of the rows as they are.
[[nodiscard]] bool stands_in_rows(const Convolution& c, std::size_t row) {
    return group_of_target == GroupOf::quads && c.type == ElementType::uint8 && reads_in_order(c) &&
           static_cast<std::size_t>(c.depth) == row;
}

template <typename T>
void gather_of(const Convolution& c, const std::byte* bytes, PixelRange pixels, std::size_t row,
               RowValue<T>* rows) {
    const T* input = reinterpret_cast<const T*>(bytes);
    const T* end = input + c.batch * c.h.in * c.w.in * c.in_channels;
    const auto depth = static_cast<std::size_t>(c.depth);
    if (reads_in_order(c) && depth == row) {
        copy_values<64>(input + pixels.begin * depth, (pixels.end - pixels.begin) * depth, end,
                        rows);
        return;
    }
    const Gatherer<T> gatherer{c, input, end, depth, row};
    for (std::size_t p = pixels.begin; p < pixels.end;) {
        const auto line = static_cast<std::int64_t>(p) / c.w.out;
        const auto x = static_cast<std::int64_t>(p) % c.w.out;
        const std::int64_t stop = std::min(c.w.out, x + static_cast<std::int64_t>(pixels.end - p));
        gatherer.pixels(input + line / c.h.out * c.h.in * c.w.in * c.in_channels, line % c.h.out, x,
                        stop, rows);
        rows += static_cast<std::size_t>(stop - x) * row;
        p += static_cast<std::size_t>(stop - x);
    }
}

/// What every row's sums want besides: the row factor times the sum of its values, modulo 2^32.
/// Four rows at a time, whose partial sums are then added up together.
void sum_rows(const PackedMatrix& matrix, std::size_t values, std::size_t count, const Rows& rows) {
    constexpr std::size_t at_once = 4;
    const hn::ScalableTag<std::int32_t> d;
    const hn::Repartition<std::uint8_t, decltype(d)> d8;
    const hn::Repartition<std::int64_t, decltype(d)> d64;
    const std::size_t lanes = hn::Lanes(d8);
    const auto ones = hn::BitCast(d, hn::Set(d8, 1));
    const auto row_sum = [&](std::size_t row) HWY_ATTR {
        const auto* from =
            reinterpret_cast<const std::uint8_t*>(rows.values + row * matrix.row_bytes());
        auto sums = hn::Zero(d);
        std::size_t i = 0;
        for (; i + lanes <= values; i += lanes)
            sums = reef::HWY_NAMESPACE::add_quad_products(
                d, hn::BitCast(d, hn::LoadU(d8, from + i)), ones, sums);
        if (i == values) return sums;
        const auto rest = hn::MaskedLoad(hn::FirstN(d8, values - i), d8, from + i);
        return reef::HWY_NAMESPACE::add_quad_products(d, hn::BitCast(d, rest), ones, sums);
    };
    const auto by_two = [&](auto a, auto b) HWY_ATTR {
        return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
    };
    for (std::size_t r = 0; r < count; r += at_once) {
        const std::size_t last = count - 1;
        const auto first = hn::BitCast(d64, by_two(row_sum(r), row_sum(std::min(r + 1, last))));
        const auto second = hn::BitCast(
            d64, by_two(row_sum(std::min(r + 2, last)), row_sum(std::min(r + 3, last))));
        // Of the four rows in each part of 128 bits; the parts are to be added up.
        auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, first, second)),
                            hn::BitCast(d, hn::InterleaveUpper(d64, first, second)));
        alignas(64) std::int32_t parts[hn::MaxLanes(d)];
        hn::Store(hn::Mul(sums, hn::Set(d, matrix.row_factor)), d, parts);
        for (std::size_t row = r; row < std::min(r + at_once, count); ++row) {
            std::uint32_t total = 0;
            for (std::size_t part = 0; part < hn::Lanes(d); part += at_once)
                total += static_cast<std::uint32_t>(parts[part + row - r]);
            rows.sums[row] = static_cast<std::int32_t>(total);
        }
    }
}

Rows gather(const Convolution& c, const PackedMatrix& matrix, const std::byte* input,
            PixelRange pixels, std::byte* values, std::int32_t* sums) {
    const std::size_t row = matrix.groups * values_in(group_of_target);
    const std::size_t count = pixels.end - pixels.begin;
    Rows rows{values, matrix.row_factor == 0 ? nullptr : sums};
    if (stands_in_rows(c, row))
        rows.values = input + pixels.begin * row;
    else if (c.type == ElementType::uint8)
        gather_of<std::uint8_t>(c, input, pixels, row,
                                reinterpret_cast<RowValue<std::uint8_t>*>(values));
    else
        gather_of<std::int8_t>(c, input, pixels, row,
                               reinterpret_cast<RowValue<std::int8_t>*>(values));
    if (rows.sums != nullptr)
        sum_rows(matrix, static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth), count, rows);
    return rows;
}

}  // namespace

const MatrixFunctions* target_functions() {
    static const MatrixFunctions functions{.target = hwy::TargetName(HWY_TARGET),
                                           .group = group_of_target,
                                           .widest_block = widest_block,
                                           .rows_at_once = most_rows,
                                           .gather = gather,
                                           .multiply = multiply};
    return &functions;
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(target_functions);

const MatrixFunctions* matrix_functions() {
    return HWY_DYNAMIC_DISPATCH(target_functions)();
}

namespace {

constexpr std::int32_t middle = 128;

/// What is taken off weights of that type before they are packed.
std::int32_t packed_zero(const Convolution& c, GroupOf group) {
    if (group == GroupOf::pairs) return c.weight_zero;
    return c.type == ElementType::uint8 ? middle : 0;
}

/// What activations of int8 have more in rows of bytes.
std::int32_t flipped(const Convolution& c, GroupOf group) {
    return group == GroupOf::quads && c.type == ElementType::int8 ? middle : 0;
}

std::int32_t weight_at(const Convolution& c, std::size_t index) {
    const auto raw = std::to_integer<std::uint8_t>(c.weights.view()[index]);
    return c.type == ElementType::int8 ? static_cast<std::int8_t>(raw) : std::int32_t{raw};
}

/// One weight where its group stands.
void put(std::byte* group, GroupOf of, std::size_t within, std::int32_t weight) {
    if (of == GroupOf::quads) {
        group[within] = static_cast<std::byte>(weight);
        return;
    }
    const auto value = static_cast<std::int16_t>(weight);
    std::memcpy(group + within * sizeof(value), &value, sizeof(value));
}

}  // namespace

PackedMatrix lay_out_matrix(const Convolution& c, GroupOf group, std::size_t widest) {
    PackedMatrix packed;
    packed.group = group;
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    const auto channels = static_cast<std::size_t>(c.out_channels);
    packed.groups = (row + values_in(group) - 1) / values_in(group);
    packed.row_factor = packed_zero(c, group) - c.weight_zero;
    packed.blocks = cover_channels(channels, widest);
    for (ChannelBlock& block : packed.blocks) {
        block.weights = packed.weights_bytes;
        packed.weights_bytes += packed.row_bytes() * block.width;
    }
    packed.stage.size = place_output_stage(packed.blocks);
    return packed;
}

/// Sums of (x + flip) * w, and the row factor times sums of x + flip, are to become sums of
/// (x - input zero) * (w - weight zero): what they lack is in the bias.
void pack_matrix(const Convolution& c, PackedMatrix& packed) {
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    const std::size_t values = values_in(packed.group);
    packed.weights = hwy::AllocateAligned<std::byte>(packed.weights_bytes);
    std::fill_n(packed.weights.get(), packed.weights_bytes, std::byte{0});
    const std::int32_t taken_off = packed_zero(c, packed.group);
    const std::int32_t zero = c.input_zero + flipped(c, packed.group);
    std::vector<std::int32_t> bias = c.bias;
    for (const ChannelBlock& block : packed.blocks) {
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t offset = block.channel_of(lane);
            if (offset >= block.valid) continue;
            const std::size_t channel = block.first + offset;
            std::uint32_t sum = 0;
            for (std::size_t k = 0; k < row; ++k) {
                const std::int32_t weight = weight_at(c, channel * row + k);
                sum += static_cast<std::uint32_t>(weight - c.weight_zero);
                const std::size_t group = k / values * block.width + lane;
                put(packed.weights.get() + block.weights + group * group_bytes, packed.group,
                    k % values, weight - taken_off);
            }
            bias[channel] = static_cast<std::int32_t>(static_cast<std::uint32_t>(bias[channel]) -
                                                      static_cast<std::uint32_t>(zero) * sum);
        }
    }
    const auto bias_of_channel = [&bias](const ChannelBlock&, std::size_t channel) {
        return bias[channel];
    };
    pack_output_stage(c, bias_of_channel, packed.blocks, packed.stage);
}

}  // namespace reef::cpu
#endif

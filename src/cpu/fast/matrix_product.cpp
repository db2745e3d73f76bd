#include "cpu/fast/matrix_product.h"

#include <algorithm>
#include <cstring>

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

template <class D>
HWY_INLINE hn::Vec<hn::Repartition<std::int16_t, D> > broadcast_pair(D d, const std::int16_t* at) {
    std::int32_t pair = 0;
    std::memcpy(&pair, at, sizeof(pair));
    return hn::BitCast(hn::Repartition<std::int16_t, D>(), hn::Set(d, pair));
}

/// kChains independent sums per row and channel hide the latency of the additions where few rows
/// leave nothing else to do.
template <std::size_t kWidth, std::size_t kRows, std::size_t kChains>
HWY_INLINE void multiply_tile(const PackedMatrix& matrix, const ChannelBlock& block,
                              const std::int16_t* HWY_RESTRICT rows, std::uint8_t* HWY_RESTRICT out,
                              std::size_t out_stride) {
    const Sums<kWidth> d;
    const Values<kWidth> d16;
    const std::size_t depth = matrix.depth;
    const std::int16_t* HWY_RESTRICT weights = matrix.weights.get() + block.weights;
    const std::int32_t* HWY_RESTRICT stage = matrix.stage.rows.get() + block.stage;
    // Arrays of sums become registers only when no loop is left that indexes them.
    SumVector<kWidth> lo[kChains][kRows];
    SumVector<kWidth> hi[kChains][kRows];
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        lo[0][r] = hn::Load(d, stage);
        hi[0][r] = hn::Load(d, stage + kWidth / 2);
        REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) lo[chain][r] =
            hi[chain][r] = hn::Zero(d);
    }
    std::size_t k = 0;
    for (; k + 2 * kChains <= depth; k += 2 * kChains) {
        REEF_UNROLL for (std::size_t chain = 0; chain < kChains; ++chain) {
            const auto w_lo = hn::Load(d16, weights);
            const auto w_hi = hn::Load(d16, weights + kWidth);
            weights += 2 * kWidth;
            REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
                const auto pair = broadcast_pair(d, rows + r * depth + k + 2 * chain);
                lo[chain][r] = add_pair_products(d, pair, w_lo, lo[chain][r]);
                hi[chain][r] = add_pair_products(d, pair, w_hi, hi[chain][r]);
            }
        }
    }
    if constexpr (kChains > 1) {
        for (; k < depth; k += 2, weights += 2 * kWidth) {
            REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
                const auto pair = broadcast_pair(d, rows + r * depth + k);
                lo[0][r] = add_pair_products(d, pair, hn::Load(d16, weights), lo[0][r]);
                hi[0][r] = add_pair_products(d, pair, hn::Load(d16, weights + kWidth), hi[0][r]);
            }
        }
    }
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) {
            lo[0][r] = hn::Add(lo[0][r], lo[chain][r]);
            hi[0][r] = hn::Add(hi[0][r], hi[chain][r]);
        }
        store_bytes<kWidth>(
            output_bytes<kWidth, Ties::upwards>(lo[0][r], hi[0][r], stage, matrix.stage),
            block.valid, out + r * out_stride);
    }
}

template <std::size_t kWidth, std::size_t kRows>
HWY_NOINLINE void multiply_rows(const PackedMatrix& matrix, const ChannelBlock& block,
                                const std::int16_t* rows, std::uint8_t* out,
                                std::size_t out_stride) {
    multiply_tile<kWidth, kRows, kRows == 1 ? 4 : (kRows <= 3 ? 2 : 1)>(matrix, block, rows, out,
                                                                        out_stride);
}

/// Fewer rows than a full step takes.
template <std::size_t kWidth, std::size_t kRows>
HWY_INLINE void multiply_rest(std::size_t count, const PackedMatrix& matrix,
                              const ChannelBlock& block, const std::int16_t* rows,
                              std::uint8_t* out, std::size_t out_stride) {
    if constexpr (kRows > 0) {
        if (count == kRows)
            multiply_rows<kWidth, kRows>(matrix, block, rows, out, out_stride);
        else
            multiply_rest<kWidth, kRows - 1>(count, matrix, block, rows, out, out_stride);
    }
}

template <std::size_t kWidth>
void multiply_block(const PackedMatrix& matrix, const ChannelBlock& block, const std::int16_t* rows,
                    std::size_t count, std::uint8_t* out, std::size_t out_stride) {
    std::size_t r = 0;
    for (; r + most_rows <= count; r += most_rows)
        multiply_rows<kWidth, most_rows>(matrix, block, rows + r * matrix.depth,
                                         out + r * out_stride, out_stride);
    multiply_rest<kWidth, most_rows - 1>(count - r, matrix, block, rows + r * matrix.depth,
                                         out + r * out_stride, out_stride);
}

void multiply(const PackedMatrix& matrix, const std::int16_t* rows, std::size_t count,
              std::size_t begin, std::size_t end, std::uint8_t* out, std::size_t out_stride) {
    for (std::size_t i = begin; i < end; ++i) {
        const ChannelBlock& block = matrix.blocks[i];
        std::uint8_t* to = out + block.first;
#if HWY_MAX_BYTES >= 64
        if (block.width == 32) {
            multiply_block<32>(matrix, block, rows, count, to, out_stride);
            continue;
        }
#endif
#if HWY_MAX_BYTES >= 32
        if (block.width == 16) {
            multiply_block<16>(matrix, block, rows, count, to, out_stride);
            continue;
        }
#endif
        multiply_block<8>(matrix, block, rows, count, to, out_stride);
    }
}

/// Whole vectors of kLanes values, of which the last may reach behind `count` on both sides; where
/// the input ends before that, one value at a time.
template <std::size_t kLanes, typename T>
HWY_INLINE void widen(const T* HWY_RESTRICT from, std::size_t count, const T* end,
                      std::int16_t* HWY_RESTRICT to) {
    const hn::CappedTag<std::int16_t, kLanes> d16;
    const hn::Rebind<T, decltype(d16)> d8;
    const std::size_t lanes = hn::Lanes(d16);
    const auto readable = static_cast<std::size_t>(end - from);
    std::size_t i = 0;
    for (; i < count && i + lanes <= readable; i += lanes)
        hn::StoreU(hn::PromoteTo(d16, hn::LoadU(d8, from + i)), d16, to + i);
    for (; i < count; ++i) to[i] = from[i];
}

template <typename T>
struct Gatherer {
    const Convolution& c;
    const T* input;
    const T* end;
    std::size_t depth;  ///< values per tap
    std::size_t row;    ///< values per gathered row, padding included

    /// One row of taps, at input row `iy` of an image.
    void taps(const T* image, std::int64_t iy, std::int64_t ix, std::int16_t* to) const {
        const WindowAxis& w = c.w;
        const auto zero = static_cast<std::int16_t>(c.input_zero);
        const auto count = static_cast<std::size_t>(w.taps);
        if (!c.h.contains(iy)) {
            std::fill_n(to, count * depth, zero);
            return;
        }
        const T* line = image + iy * w.in * c.in_channels;
        for (std::size_t kx = 0; kx < count; ++kx, ix += w.dilation, to += depth) {
            if (w.contains(ix))
                widen<16>(line + ix * c.in_channels, depth, end, to);
            else
                std::fill_n(to, depth, zero);
        }
    }

    /// A pixel with taps outside the input, or with dilated ones.
    void pixel(const T* image, std::int64_t y, std::int64_t x, std::int16_t* to) const {
        const std::size_t line = static_cast<std::size_t>(c.w.taps) * depth;
        for (std::int64_t ky = 0; ky < c.h.taps; ++ky, to += line)
            taps(image, c.h.first(y) + ky * c.h.dilation, c.w.first(x), to);
    }

    /// Pixels whose taps lie inside, side by side in each row: one piece of input per row of taps.
    template <std::size_t kLanes>
    void inside(const T* image, std::int64_t y, std::int64_t x, std::int64_t count,
                std::int16_t* to) const {
        const std::size_t line = static_cast<std::size_t>(c.w.taps) * depth;
        const std::int64_t down = c.h.dilation * c.w.in * c.in_channels;
        const T* from = image + (c.h.first(y) * c.w.in + c.w.first(x)) * c.in_channels;
        for (; count > 0; --count, from += c.w.stride * c.in_channels, to += row)
            for (std::int64_t ky = 0; ky < c.h.taps; ++ky)
                widen<kLanes>(from + ky * down, line, end,
                              to + static_cast<std::size_t>(ky) * line);
    }

    /// Pixels [begin, end) of one output row.
    void pixels(const T* image, std::int64_t y, std::int64_t begin, std::int64_t stop,
                std::int16_t* to) const {
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

template <typename T>
void gather_of(const Convolution& c, const std::byte* bytes, PixelRange pixels,
               std::int16_t* rows) {
    const T* input = reinterpret_cast<const T*>(bytes);
    const T* end = input + c.batch * c.h.in * c.w.in * c.in_channels;
    const auto depth = static_cast<std::size_t>(c.depth);
    const auto window = static_cast<std::size_t>(c.h.taps * c.w.taps);
    const std::size_t row = (window * depth + 1) / 2 * 2;
    if (reads_in_order(c) && depth % 2 == 0) {
        widen<32>(input + pixels.begin * depth, (pixels.end - pixels.begin) * depth, end, rows);
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

void gather(const Convolution& c, const std::byte* input, PixelRange pixels, std::int16_t* rows) {
    if (c.type == ElementType::uint8)
        gather_of<std::uint8_t>(c, input, pixels, rows);
    else
        gather_of<std::int8_t>(c, input, pixels, rows);
}

}  // namespace

const MatrixFunctions* target_functions() {
    static const MatrixFunctions functions{.target = hwy::TargetName(HWY_TARGET),
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

/// Weight of an output channel at a depth, minus the zero point.
std::int32_t weight_at(const Convolution& c, std::size_t channel, std::size_t k, std::size_t row) {
    const auto raw = std::to_integer<std::uint8_t>(c.weights.view()[channel * row + k]);
    const std::int32_t value =
        c.type == ElementType::int8 ? static_cast<std::int8_t>(raw) : std::int32_t{raw};
    return value - c.weight_zero;
}

}  // namespace

PackedMatrix lay_out_matrix(const Convolution& c, std::size_t widest) {
    PackedMatrix packed;
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    const auto channels = static_cast<std::size_t>(c.out_channels);
    packed.depth = (row + 1) / 2 * 2;
    packed.blocks = cover_channels(channels, widest);
    for (ChannelBlock& block : packed.blocks) {
        block.weights = packed.weights_size;
        packed.weights_size += packed.depth * block.width;
    }
    packed.stage.size = place_output_stage(packed.blocks);
    return packed;
}

void pack_matrix(const Convolution& c, PackedMatrix& packed) {
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    packed.weights = hwy::AllocateAligned<std::int16_t>(packed.weights_size);
    std::fill_n(packed.weights.get(), packed.weights_size, std::int16_t{0});
    std::vector<std::int32_t> bias = c.bias;
    for (const ChannelBlock& block : packed.blocks) {
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t offset = channel_of_lane(lane, block.width);
            if (offset >= block.valid) continue;
            const std::size_t channel = block.first + offset;
            std::uint32_t sum = 0;
            for (std::size_t k = 0; k < row; ++k) {
                const std::int32_t weight = weight_at(c, channel, k, row);
                sum += static_cast<std::uint32_t>(weight);
                packed.weights[block.weights + k / 2 * 2 * block.width + 2 * lane + k % 2] =
                    static_cast<std::int16_t>(weight);
            }
            bias[channel] =
                static_cast<std::int32_t>(static_cast<std::uint32_t>(bias[channel]) -
                                          static_cast<std::uint32_t>(c.input_zero) * sum);
        }
    }
    pack_output_stage(c, bias, packed.blocks, packed.stage);
}

}  // namespace reef::cpu
#endif

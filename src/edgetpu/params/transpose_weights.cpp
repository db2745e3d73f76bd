#include "edgetpu/params/transpose_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "edgetpu/params/transpose_weights.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::edgetpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows and words of a tile: one cache line of 16 rows in, one line of 16 chip rows out, so that
/// rows a power of two apart do not displace each other from the cache.
inline constexpr std::size_t tile = 16;

/// Any part of a tile.
inline void transpose_edge(const std::uint8_t* in, std::size_t stride, std::size_t rows,
                           std::size_t words, std::uint32_t flip, std::uint8_t* out,
                           std::size_t out_stride) {
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t word = 0; word < words; ++word) {
            std::uint32_t value;
            std::memcpy(&value, in + row * stride + word * 4, 4);
            value ^= flip;
            std::memcpy(out + word * out_stride + row * 4, &value, 4);
        }
    }
}

#if HWY_TARGET == HWY_SCALAR
/// A whole tile: 16 rows of 16 words.
HWY_INLINE void transpose_tile(const std::uint8_t* in, std::size_t stride, std::uint32_t flip,
                               std::uint8_t* out, std::size_t out_stride) {
    transpose_edge(in, stride, tile, tile, flip, out, out_stride);
}
#else
/// Four words of as many rows as a vector has lanes, transposed within 128-bit blocks: block b
/// holds rows 4 b to 4 b + 3, so that word c of all rows comes out as one vector.
template <class D>
HWY_INLINE void transpose_blocks(D d, const std::uint8_t* in, std::size_t stride,
                                 std::uint32_t flip, std::uint8_t* out, std::size_t out_stride) {
    using V = hn::Vec<D>;
    const hn::CappedTag<std::uint32_t, 4> block;
    const auto row = [&](std::size_t r) HWY_ATTR {
        return hn::LoadU(block, reinterpret_cast<const std::uint32_t*>(in + r * stride));
    };
    const auto rows = [&](std::size_t r) HWY_ATTR -> V {
        if constexpr (hn::MaxLanes(D{}) == 8) {
            return hn::Combine(d, row(r + 4), row(r));
        } else {
            return row(r);
        }
    };
    const hn::Repartition<std::uint64_t, D> wide;
    const V a = rows(0), b = rows(1), c = rows(2), e = rows(3);
    const V flips = hn::Set(d, flip);
    const auto ab_low = hn::BitCast(wide, hn::Xor(hn::InterleaveLower(d, a, b), flips));
    const auto ab_high = hn::BitCast(wide, hn::Xor(hn::InterleaveUpper(d, a, b), flips));
    const auto ce_low = hn::BitCast(wide, hn::Xor(hn::InterleaveLower(d, c, e), flips));
    const auto ce_high = hn::BitCast(wide, hn::Xor(hn::InterleaveUpper(d, c, e), flips));
    const auto store = [&](auto v, std::size_t word) HWY_ATTR {
        hn::StoreU(hn::BitCast(d, v), d, reinterpret_cast<std::uint32_t*>(out + word * out_stride));
    };
    store(hn::InterleaveLower(wide, ab_low, ce_low), 0);
    store(hn::InterleaveUpper(wide, ab_low, ce_low), 1);
    store(hn::InterleaveLower(wide, ab_high, ce_high), 2);
    store(hn::InterleaveUpper(wide, ab_high, ce_high), 3);
}

/// Vectors of four 128-bit blocks: each row is read once, as a whole.
template <class D>
HWY_INLINE void transpose_lines(D d, const std::uint8_t* in, std::size_t stride, std::uint32_t flip,
                                std::uint8_t* out, std::size_t out_stride) {
    using V = hn::Vec<D>;
    const hn::Repartition<std::uint64_t, D> wide;
    const V flips = hn::Set(d, flip);
    // By word modulo 4 and four rows: block b holds word 4 b + c of the four rows.
    V quads[4][4];
    for (std::size_t r = 0; r < 4; ++r) {
        const auto row = [&](std::size_t i) HWY_ATTR {
            return hn::Xor(
                flips,
                hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(in + (r * 4 + i) * stride)));
        };
        const V a = row(0), b = row(1), c = row(2), e = row(3);
        const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
        const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
        const auto ce_low = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
        const auto ce_high = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
        quads[0][r] = hn::BitCast(d, hn::InterleaveLower(wide, ab_low, ce_low));
        quads[1][r] = hn::BitCast(d, hn::InterleaveUpper(wide, ab_low, ce_low));
        quads[2][r] = hn::BitCast(d, hn::InterleaveLower(wide, ab_high, ce_high));
        quads[3][r] = hn::BitCast(d, hn::InterleaveUpper(wide, ab_high, ce_high));
    }
    for (std::size_t c = 0; c < 4; ++c) {
        const auto store = [&](V v, std::size_t block) HWY_ATTR {
            hn::StoreU(v, d, reinterpret_cast<std::uint32_t*>(out + (block * 4 + c) * out_stride));
        };
        const auto two = [&](V even, V odd, std::size_t block) HWY_ATTR {
            store(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd), even), block);
            store(hn::OddEvenBlocks(odd, hn::SwapAdjacentBlocks(even)), block + 1);
        };
        const V* q = quads[c];
        two(hn::ConcatLowerLower(d, q[2], q[0]), hn::ConcatLowerLower(d, q[3], q[1]), 0);
        two(hn::ConcatUpperUpper(d, q[2], q[0]), hn::ConcatUpperUpper(d, q[3], q[1]), 2);
    }
}

/// A whole tile: 16 rows of 16 words.
HWY_INLINE void transpose_tile(const std::uint8_t* in, std::size_t stride, std::uint32_t flip,
                               std::uint8_t* out, std::size_t out_stride) {
    const hn::CappedTag<std::uint32_t, tile> d;
    if constexpr (hn::MaxLanes(decltype(d){}) == tile) {
        transpose_lines(d, in, stride, flip, out, out_stride);
    } else {
        const std::size_t step = hn::Lanes(d);
        for (std::size_t word = 0; word < tile; word += 4) {
            for (std::size_t row = 0; row < tile; row += step) {
                transpose_blocks(d, in + row * stride + word * 4, stride, flip,
                                 out + word * out_stride + row * 4, out_stride);
            }
        }
    }
}
#endif

/// Calls with (row, word, height, width) of each tile, those at the edges smaller.
template <class Part>
HWY_INLINE void for_each_tile(std::size_t rows, std::size_t words, Part&& part) {
    for (std::size_t row = 0; row < rows; row += tile) {
        for (std::size_t word = 0; word < words; word += tile) {
            part(row, word, std::min(tile, rows - row), std::min(tile, words - word));
        }
    }
}

void transpose(const std::uint8_t* in, std::size_t stride, std::size_t rows, std::size_t words,
               std::size_t lanes, std::uint32_t flip, std::uint8_t* out) {
    const std::size_t out_stride = lanes * 4;
    for_each_tile(rows, words,
                  [&](std::size_t row, std::size_t word, std::size_t height, std::size_t width)
                      HWY_ATTR {
                          const std::uint8_t* from = in + row * stride + word * 4;
                          std::uint8_t* to = out + word * out_stride + row * 4;
                          if (height == tile && width == tile) {
                              transpose_tile(from, stride, flip, to, out_stride);
                          } else {
                              transpose_edge(from, stride, height, width, flip, to, out_stride);
                          }
                      });
}

/// Halves away from zero, limited to [-127, 127]. NaN gives NaN: this order of operands keeps it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V rounded(D d, V q) {
    // The largest number below a half: adding it carries exactly the halves and all above.
    const V below_half = hn::Set(d, 0.49999997F);
    const V limit = hn::Set(d, 127.0F);
    q = hn::Min(limit, hn::Max(hn::Neg(limit), q));
    return hn::Trunc(hn::Add(q, hn::CopySignToAbs(below_half, q)));
}

/// round(x * per_step); NaN gives 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V quantized(D d, V x, V per_step) {
    const V q = hn::Mul(x, per_step);
    return rounded(d, hn::IfThenElseZero(hn::Eq(q, q), q));
}

/// Whole numbers in the lowest bits, two's complement.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> low_bits(D d, hn::Vec<D> whole) {
    // At 1.5 * 2^23 the lowest bits of a float count ones.
    return hn::BitCast(hn::RebindToUnsigned<D>(), hn::Add(whole, hn::Set(d, 12582912.0F)));
}

HWY_INLINE void quantize_row(const float* in, std::size_t count, float scale, std::uint8_t* out) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    const float one_per_step = 1.0F / scale;
    const auto per_step = hn::Set(d, one_per_step);
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto q = low_bits(d, quantized(d, hn::LoadU(d, in + i), per_step));
        hn::StoreU(hn::TruncateTo(d8, q), d8, out + i);
    }
    const hn::CappedTag<float, 1> d1;
    for (; i < count; ++i) {
        const auto q =
            low_bits(d1, quantized(d1, hn::LoadU(d1, in + i), hn::Set(d1, one_per_step)));
        out[i] = static_cast<std::uint8_t>(hn::GetLane(q));
    }
}

/// Rows that go through the buffer at once, and words of each: a kilobyte of results to a row, so
/// that prefetching keeps up.
inline constexpr std::size_t run = 256;

/// Any part of a tile's rows: quantised, then transposed.
void quantize_edge(const float* in, std::size_t stride, std::size_t rows, std::size_t words,
                   std::size_t lanes, const float* scales, std::size_t scale_step,
                   std::uint8_t* out) {
    // The odd line keeps the rows of the buffer apart in the cache.
    constexpr std::size_t line = run * 4 + 64;
    HWY_ALIGN std::array<std::uint8_t, tile * line> q;
    for (std::size_t r = 0; r < rows; ++r) {
        quantize_row(in + r * stride, words * 4, scales[r * scale_step], q.data() + r * line);
    }
    transpose(q.data(), line, rows, words, lanes, 0x80808080U, out);
}

#if HWY_TARGET != HWY_SCALAR
/// Four rows of as many elements as a vector has lanes. 128-bit block b holds word b of the four
/// rows, with the sign bits flipped.
template <class D>
HWY_INLINE hn::Vec<hn::Repartition<std::uint8_t, D>> quad(D d, const float* in, std::size_t stride,
                                                          const float* per_step) {
    // Two numbers to a float: exact, and 128 more each is the flipped sign.
    const auto per_byte = hn::Set(d, 256.0F);
    const auto biased = hn::Set(d, 8388608.0F + 128.0F + 128.0F * 256.0F);
    const auto two = [&](auto first, auto second)
                         HWY_ATTR { return hn::Add(hn::MulAdd(second, per_byte, first), biased); };
    const auto row = [&](std::size_t r) HWY_ATTR {
        return rounded(d, hn::Mul(hn::LoadU(d, in + r * stride), hn::Set(d, per_step[r])));
    };
    auto low = two(row(0), row(1)), high = two(row(2), row(3));
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(hn::Add(low, high))))) {
        const auto zeroed = [&](std::size_t r) HWY_ATTR {
            return quantized(d, hn::LoadU(d, in + r * stride), hn::Set(d, per_step[r]));
        };
        low = two(zeroed(0), zeroed(1));
        high = two(zeroed(2), zeroed(3));
    }
    const hn::RebindToUnsigned<D> d32;
    const hn::Repartition<std::uint16_t, D> d16;
    const hn::Repartition<std::uint8_t, D> d8;
    const auto elements = hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(hn::BitCast(d32, high))),
                                      hn::BitCast(d16, low));
    alignas(16) static constexpr std::uint8_t by_row[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                            2, 6, 10, 14, 3, 7, 11, 15};
    return hn::TableLookupBytes(hn::BitCast(d8, elements), hn::LoadDup128(d8, by_row));
}

/// One word of four quads, `line` bytes apart, side by side.
template <class D>
HWY_INLINE void store_quads(D d, const std::uint8_t* quads, std::size_t line, std::uint8_t* out) {
    const hn::CappedTag<std::uint8_t, 16> block;
    const hn::CappedTag<std::uint8_t, 32> pair;
    const auto quad = [&](std::size_t i) HWY_ATTR { return hn::Load(block, quads + i * line); };
    if constexpr (hn::MaxLanes(D{}) == 64) {
        hn::StoreU(hn::Combine(d, hn::Combine(pair, quad(3), quad(2)),
                               hn::Combine(pair, quad(1), quad(0))),
                   d, out);
    } else if constexpr (hn::MaxLanes(D{}) == 32) {
        hn::StoreU(hn::Combine(d, quad(1), quad(0)), d, out);
        hn::StoreU(hn::Combine(d, quad(3), quad(2)), d, out + 32);
    } else {
        for (std::size_t i = 0; i < 4; ++i) hn::StoreU(quad(i), block, out + i * 16);
    }
}

/// A whole tile's rows; `words` is a multiple of a vector's.
HWY_INLINE void quantize_tile(const float* in, std::size_t stride, std::size_t words,
                              std::size_t lanes, const float* per_step, std::uint8_t* out) {
    const hn::CappedTag<float, 16> d;
    const std::size_t step = hn::Lanes(d);
    constexpr std::size_t line = run * 16 + 64;
    HWY_ALIGN std::array<std::uint8_t, 4 * line> quads;
    const hn::Repartition<std::uint8_t, decltype(d)> d8;
    for (std::size_t group = 0; group < 4; ++group) {
        const float* from = in + group * 4 * stride;
        for (std::size_t i = 0; i < words * 4; i += step) {
            hn::Store(quad(d, from + i, stride, per_step + group * 4), d8,
                      quads.data() + group * line + i * 4);
        }
    }
    for (std::size_t word = 0; word < words; ++word) {
        store_quads(d8, quads.data() + word * 16, line, out + word * lanes * 4);
    }
}
#endif

void quantize_transpose(const float* in, std::size_t stride, std::size_t rows, std::size_t words,
                        std::size_t lanes, const float* scales, std::size_t scale_step,
                        std::uint8_t* out) {
    for (std::size_t row = 0; row < rows; row += tile) {
        const std::size_t height = std::min(tile, rows - row);
        for (std::size_t word = 0; word < words; word += run) {
            const std::size_t width = std::min(run, words - word);
            const float* from = in + row * stride + word * 4;
            const float* scale = scales + row * scale_step;
            std::uint8_t* to = out + word * lanes * 4 + row * 4;
            std::size_t done = 0;
#if HWY_TARGET != HWY_SCALAR
            if (height == tile) {
                std::array<float, tile> per_step;
                for (std::size_t r = 0; r < tile; ++r) per_step[r] = 1.0F / scale[r * scale_step];
                done = width / 4 * 4;
                quantize_tile(from, stride, done, lanes, per_step.data(), to);
            }
#endif
            if (done == width) continue;
            quantize_edge(from + done * 4, stride, height, width - done, lanes, scale, scale_step,
                          to + done * lanes * 4);
        }
    }
}

}  // namespace reef::edgetpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::edgetpu {

HWY_EXPORT(transpose);
HWY_EXPORT(quantize_transpose);

void transpose_words(const std::uint8_t* in, std::size_t row_stride, std::size_t rows,
                     std::size_t words, std::size_t lanes, std::uint32_t flip, std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(transpose)(in, row_stride, rows, words, lanes, flip, out);
}

void quantize_and_transpose(const float* in, std::size_t row_stride, std::size_t rows,
                            std::size_t words, std::size_t lanes, const float* scales,
                            std::size_t scale_step, std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(quantize_transpose)
    (in, row_stride, rows, words, lanes, scales, scale_step, out);
}

std::int8_t quantized_weight(float weight, float scale) {
    const float q = weight * (1.0F / scale);
    if (std::isnan(q)) return 0;
    return static_cast<std::int8_t>(std::round(std::clamp(q, -127.0F, 127.0F)));
}

bool is_limited(float weight, float scale) {
    return std::abs(weight * (1.0F / scale)) >= static_cast<float>(largest_weight) + 0.5F;
}

}  // namespace reef::edgetpu
#endif

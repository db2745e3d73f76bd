#include "edgetpu/params/transpose_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

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
    const hn::CappedTag<std::uint32_t, 8> pair;
    const auto rows = [&](std::size_t r) HWY_ATTR -> V {
        if constexpr (hn::MaxLanes(D{}) == 16) {
            return hn::Combine(d, hn::Combine(pair, row(r + 12), row(r + 8)),
                               hn::Combine(pair, row(r + 4), row(r)));
        } else if constexpr (hn::MaxLanes(D{}) == 8) {
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

/// A whole tile: 16 rows of 16 words.
HWY_INLINE void transpose_tile(const std::uint8_t* in, std::size_t stride, std::uint32_t flip,
                               std::uint8_t* out, std::size_t out_stride) {
    const hn::CappedTag<std::uint32_t, tile> d;
    const std::size_t step = hn::Lanes(d);
    for (std::size_t word = 0; word < tile; word += 4) {
        for (std::size_t row = 0; row < tile; row += step) {
            transpose_blocks(d, in + row * stride + word * 4, stride, flip,
                             out + word * out_stride + row * 4, out_stride);
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

/// round(x * per_step) with halves away from zero, limited to [-127, 127], in the lowest byte; NaN
/// gives 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> quantized(D d, V x, V per_step) {
    // The largest number below a half: adding it carries exactly the halves and all above.
    const V below_half = hn::Set(d, 0.49999997F);
    const V limit = hn::Set(d, 127.0F);
    V q = hn::Mul(x, per_step);
    q = hn::IfThenElseZero(hn::Eq(q, q), q);
    q = hn::Clamp(q, hn::Neg(limit), limit);
    q = hn::Trunc(hn::Add(q, hn::CopySign(below_half, q)));
    // At 1.5 * 2^23 the lowest bits of a float count ones.
    return hn::BitCast(hn::RebindToUnsigned<D>(), hn::Add(q, hn::Set(d, 12582912.0F)));
}

HWY_INLINE void quantize_row(const float* in, std::size_t count, float scale, std::uint8_t* out) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    const float one_per_step = 1.0F / scale;
    const auto per_step = hn::Set(d, one_per_step);
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto q = quantized(d, hn::LoadU(d, in + i), per_step);
        hn::StoreU(hn::TruncateTo(d8, q), d8, out + i);
    }
    const hn::CappedTag<float, 1> d1;
    for (; i < count; ++i) {
        const auto q = quantized(d1, hn::LoadU(d1, in + i), hn::Set(d1, one_per_step));
        out[i] = static_cast<std::uint8_t>(hn::GetLane(q));
    }
}

void quantize_transpose(const float* in, std::size_t stride, std::size_t rows, std::size_t words,
                        std::size_t lanes, const float* scales, std::size_t scale_step,
                        std::uint8_t* out) {
    constexpr std::uint32_t flip = 0x80808080U;
    // Rows are read a kilobyte of results at a time, so that prefetching keeps up; the odd line
    // keeps the rows of the buffer apart in the cache.
    constexpr std::size_t run = 256;
    constexpr std::size_t line = run * 4 + 64;
    HWY_ALIGN std::array<std::uint8_t, tile * line> q;
    for (std::size_t row = 0; row < rows; row += tile) {
        const std::size_t height = std::min(tile, rows - row);
        for (std::size_t word = 0; word < words; word += run) {
            const std::size_t width = std::min(run, words - word);
            for (std::size_t r = 0; r < height; ++r) {
                quantize_row(in + (row + r) * stride + word * 4, width * 4,
                             scales[(row + r) * scale_step], q.data() + r * line);
            }
            transpose(q.data(), line, height, width, lanes, flip, out + word * lanes * 4 + row * 4);
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

}  // namespace reef::edgetpu
#endif

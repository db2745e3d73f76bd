// Gathers the rows of pixel_rows.h. Include it per target, after hwy/highway.h.
#if defined(REEF_CPU_FAST_PIXEL_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_PIXEL_ROWS_INL_H
#undef REEF_CPU_FAST_PIXEL_ROWS_INL_H
#else
#define REEF_CPU_FAST_PIXEL_ROWS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpu/fast/pixel_rows.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR

/// An input value in a row: as it is, widened, or a byte of the other sign.
template <typename Row, typename T>
constexpr Row row_value(T value) {
    if constexpr (std::is_same_v<Row, T> || sizeof(Row) > sizeof(T)) return value;
    return static_cast<Row>(static_cast<std::uint8_t>(value) ^ 0x80U);
}

/// Whole vectors of kLanes values, of which the last may reach behind `count` on both sides; where
/// the input ends before that, one value at a time.
template <std::size_t kLanes, typename T, typename Row>
HWY_INLINE void copy_values(const T* HWY_RESTRICT from, std::size_t count, const T* end,
                            Row* HWY_RESTRICT to) {
    const hn::CappedTag<Row, kLanes> d;
    const hn::Rebind<T, decltype(d)> from_d;
    const std::size_t lanes = hn::Lanes(d);
    const auto readable = static_cast<std::size_t>(end - from);
    std::size_t i = 0;
    for (; i < count && i + lanes <= readable; i += lanes) {
        const auto values = hn::LoadU(from_d, from + i);
        if constexpr (std::is_same_v<T, Row>)
            hn::StoreU(values, d, to + i);
        else if constexpr (sizeof(Row) > sizeof(T))
            hn::StoreU(hn::PromoteTo(d, values), d, to + i);
        else
            hn::StoreU(hn::Xor(hn::BitCast(d, values), hn::Set(d, static_cast<Row>(0x80))), d,
                       to + i);
    }
    for (; i < count; ++i) to[i] = row_value<Row>(from[i]);
}

template <typename T, typename Row>
struct Gatherer {
    const Convolution& c;
    const T* input;
    const T* end;
    std::size_t depth;  ///< values per tap
    std::size_t row;    ///< values per gathered row, padding included
    Row outside;        ///< what taps outside the input read

    /// One row of taps, at input row `iy` of an image.
    void taps(const T* image, std::int64_t iy, std::int64_t ix, Row* to) const {
        const WindowAxis& w = c.w;
        const auto count = static_cast<std::size_t>(w.taps);
        if (!c.h.contains(iy)) {
            std::fill_n(to, count * depth, outside);
            return;
        }
        const T* line = image + iy * w.in * c.in_channels;
        for (std::size_t kx = 0; kx < count; ++kx, ix += w.dilation, to += depth) {
            if (w.contains(ix))
                copy_values<16>(line + ix * c.in_channels, depth, end, to);
            else
                std::fill_n(to, depth, outside);
        }
    }

    /// A pixel with taps outside the input, or with dilated ones.
    void pixel(const T* image, std::int64_t y, std::int64_t x, Row* to) const {
        const std::size_t line = static_cast<std::size_t>(c.w.taps) * depth;
        for (std::int64_t ky = 0; ky < c.h.taps; ++ky, to += line)
            taps(image, c.h.first(y) + ky * c.h.dilation, c.w.first(x), to);
    }

    /// Pixels whose taps lie inside, side by side in each row: one piece of input per row of taps.
    template <std::size_t kLanes>
    void inside(const T* image, std::int64_t y, std::int64_t x, std::int64_t count, Row* to) const {
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
                Row* to) const {
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

/// The rows of `pixels`, each of `row` values: its taps in order, and any value behind them. Taps
/// outside the input read `zero`.
template <typename T, typename Row>
void gather_rows(const Convolution& c, const std::byte* bytes, std::int32_t zero, PixelRange pixels,
                 std::size_t row, Row* rows) {
    const T* input = reinterpret_cast<const T*>(bytes);
    const T* end = input + c.batch * c.h.in * c.w.in * c.in_channels;
    const auto depth = static_cast<std::size_t>(c.depth);
    if (reads_in_order(c) && depth == row) {
        copy_values<64>(input + pixels.begin * depth, (pixels.end - pixels.begin) * depth, end,
                        rows);
        return;
    }
    const Gatherer<T, Row> gatherer{c,     input, end,
                                    depth, row,   row_value<Row>(static_cast<T>(zero))};
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

#endif
}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

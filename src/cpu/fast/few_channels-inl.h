// Pools of bytes of at most 16 channels: pixels are shorter than most vectors. Include it per
// target, after hwy/highway.h.
#if defined(REEF_CPU_FAST_FEW_CHANNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_FEW_CHANNELS_INL_H
#undef REEF_CPU_FAST_FEW_CHANNELS_INL_H
#else
#define REEF_CPU_FAST_FEW_CHANNELS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpu/prepare/pooling.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t few_pooled_channels = 16;

/// How the windows of a row are taken.
enum class FewChannels : std::uint8_t {
    no,          ///< as those of more channels
    by_columns,  ///< from columns of pixels, which they share: a window's rows are summed or
                 ///< compared along the image's, whose pixels' channels lie side by side
    by_pixels,   ///< from pixels as they lie, where they share none and channels fill vectors
};

inline FewChannels few_channels_of(const Pooling& p) {
    constexpr std::int32_t lanes = few_pooled_channels / 2;
    if (p.channels > 2 * lanes) return FewChannels::no;
    if (p.x.stride >= p.x.filter && p.channels % lanes == 0) return FewChannels::by_pixels;
    return p.x.stride <= p.x.filter ? FewChannels::by_columns : FewChannels::no;
}

/// Output elements of a row whose columns of pixels stay in the first-level cache meanwhile, where
/// windows are not far apart.
inline constexpr std::int32_t windows_at_once = 128;

/// Elements of the columns of pixels that as many windows lie on, and few_pooled_channels that a
/// vector reads behind them.
inline std::size_t few_channels_scratch(const PoolingAxis& axis, std::size_t channels) {
    const std::int64_t all = std::int64_t{windows_at_once - 1} * axis.stride + axis.filter;
    const auto columns = static_cast<std::size_t>(std::min<std::int64_t>(all, axis.input));
    return columns * channels + few_pooled_channels;
}

/// Some windows at a time: columns(extent) of all input elements that they lie on, then use(extent,
/// is_whole) for each window in turn, counted from the first of these elements on; `is_whole` is a
/// std::bool_constant: whether it lies wholly inside the input.
template <class Columns, class Use>
HWY_INLINE void each_window(const PoolingAxis& axis, const Columns& columns, const Use& use) {
    const Extent whole = axis.whole_windows();
    for (std::int32_t first = 0, end = 0; first < axis.output; first = end) {
        end = first + std::min(windows_at_once, axis.output - first);
        const std::int32_t start = axis.window(first).begin;
        columns(Extent{start, axis.window(end - 1).end});
        const auto part = [&](std::int32_t o) HWY_ATTR {
            const Extent window = axis.window(o);
            use(Extent{window.begin - start, window.end - start}, std::false_type());
        };
        std::int32_t o = first;
        for (; o < std::min(end, whole.begin); ++o) part(o);
        std::int64_t begin = std::int64_t{o} * axis.stride - axis.padding - start;
        for (; o < std::min(end, whole.end); ++o, begin += axis.stride)
            use(Extent{static_cast<std::int32_t>(begin),
                       static_cast<std::int32_t>(begin + axis.filter)},
                std::true_type());
        for (; o < end; ++o) part(o);
    }
}

/// use(y, x) for each pixel of a window; of 2 x 2, which most networks have, without loops.
template <class Use>
HWY_INLINE void each_pixel(std::size_t rows, std::size_t columns, const Use& use) {
    if (rows == 2 && columns == 2) {
        use(std::size_t{0}, std::size_t{0});
        use(std::size_t{0}, std::size_t{1});
        use(std::size_t{1}, std::size_t{0});
        use(std::size_t{1}, std::size_t{1});
        return;
    }
    for (std::size_t y = 0; y < rows; ++y)
        for (std::size_t x = 0; x < columns; ++x) use(y, x);
}

/// The pixels of an output row in turn, whose vectors have more lanes than channels: what is too
/// much lies where the next pixels will be, and behind the last one nowhere.
template <typename T>
class PixelsInTurn {
  public:
    PixelsInTurn(T* first, std::size_t pixels, std::size_t channels)
        : next_(first), left_(pixels * channels), channels_(channels) {}

    /// `store(to)` writes few_pooled_channels elements at most.
    template <class Store>
    HWY_INLINE void put(const Store& store) {
        if (HWY_LIKELY(left_ >= few_pooled_channels)) {
            store(next_);
        } else {
            T last[few_pooled_channels];
            store(last);
            std::copy_n(last, channels_, next_);
        }
        next_ += channels_;
        left_ -= channels_;
    }

  private:
    T* next_;
    std::size_t left_, channels_;  ///< elements
};

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

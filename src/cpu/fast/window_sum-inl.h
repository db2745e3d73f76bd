// Sums of 8-bit pixels over a window, channel by channel. Include it per target, after
// hwy/highway.h.
#if defined(REEF_CPU_FAST_WINDOW_SUM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_WINDOW_SUM_INL_H
#undef REEF_CPU_FAST_WINDOW_SUM_INL_H
#else
#define REEF_CPU_FAST_WINDOW_SUM_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// rows x columns pixels of `channels` elements; rows lie `row_pitch` elements apart.
struct Window {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t row_pitch = 0;
    std::size_t channels = 0;
};

/// sums[c] = sum over the window of in[..., c].
template <typename T>
HWY_INLINE void window_sum(const T* HWY_RESTRICT in, const Window& window,
                           std::int32_t* HWY_RESTRICT sums) {
    const hn::ScalableTag<std::int32_t> d;
    const hn::Rebind<T, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    const auto one_vector = [&](std::size_t c) HWY_ATTR {
        auto sum = hn::Zero(d);
        for (std::size_t y = 0; y < window.rows; ++y) {
            const T* HWY_RESTRICT pixel = in + y * window.row_pitch + c;
            for (std::size_t x = 0; x < window.columns; ++x, pixel += window.channels)
                sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(d8, pixel)));
        }
        hn::StoreU(sum, d, sums + c);
    };
    const auto four_vectors = [&](std::size_t c) HWY_ATTR {
        auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
        for (std::size_t y = 0; y < window.rows; ++y) {
            const T* HWY_RESTRICT pixel = in + y * window.row_pitch + c;
            for (std::size_t x = 0; x < window.columns; ++x, pixel += window.channels) {
                sum0 = hn::Add(sum0, hn::PromoteTo(d, hn::LoadU(d8, pixel)));
                sum1 = hn::Add(sum1, hn::PromoteTo(d, hn::LoadU(d8, pixel + lanes)));
                sum2 = hn::Add(sum2, hn::PromoteTo(d, hn::LoadU(d8, pixel + 2 * lanes)));
                sum3 = hn::Add(sum3, hn::PromoteTo(d, hn::LoadU(d8, pixel + 3 * lanes)));
            }
        }
        hn::StoreU(sum0, d, sums + c);
        hn::StoreU(sum1, d, sums + c + lanes);
        hn::StoreU(sum2, d, sums + c + 2 * lanes);
        hn::StoreU(sum3, d, sums + c + 3 * lanes);
    };
    std::size_t c = 0;
    for (; c + 4 * lanes <= window.channels; c += 4 * lanes) four_vectors(c);
    for (; c + lanes <= window.channels; c += lanes) one_vector(c);
    if (c < window.channels && window.channels >= lanes) {
        one_vector(window.channels - lanes);
        return;
    }
    for (; c < window.channels; ++c) {
        std::int32_t sum = 0;
        for (std::size_t y = 0; y < window.rows; ++y)
            for (std::size_t x = 0; x < window.columns; ++x)
                sum += in[y * window.row_pitch + x * window.channels + c];
        sums[c] = sum;
    }
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

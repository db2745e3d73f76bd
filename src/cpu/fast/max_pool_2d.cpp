#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/max_pool_2d.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/worker_pool.h"
#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/few_channels-inl.h"
#include "cpu/fast/pixel_rows.h"
#include "cpu/prepare/pooling.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The part of a window that lies inside the image.
template <typename T>
struct MaximumWindow {
    const T* HWY_RESTRICT first = nullptr;
    std::size_t rows = 0, columns = 0;
    std::size_t row_pitch = 0, channels = 0;  ///< elements
};

/// What is no number is above nothing; of two zeros `than` stays.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V larger(D /*d*/, V value, V than) {
#if !(HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>)
        return hn::IfThenElse(hn::Gt(value, than), value, than);
#endif
    return hn::Max(value, than);
}

/// Channels [c, c + kVectors * lanes).
template <std::size_t kVectors, typename T, class D>
HWY_INLINE void window_maxima(D d, const MaximumWindow<T>& window, std::size_t c,
                              hn::Vec<D> (&largest)[kVectors]) {
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) largest[v] =
        hn::Set(d, std::numeric_limits<T>::lowest());
    for (std::size_t y = 0; y < window.rows; ++y) {
        const T* HWY_RESTRICT pixel = window.first + y * window.row_pitch + c;
        for (std::size_t x = 0; x < window.columns; ++x, pixel += window.channels)
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) largest[v] =
                larger(d, hn::LoadU(d, pixel + v * hn::Lanes(d)), largest[v]);
    }
}

template <typename T>
Limits<T> limits_of(const Pooling& p) {
    if constexpr (std::is_floating_point_v<T>)
        return p.float_clamp;
    else
        return {static_cast<T>(p.clamp.min), static_cast<T>(p.clamp.max)};
}

template <typename T, class D, class V = hn::Vec<D>>
HWY_INLINE void store_maximum(D d, V value, Limits<T> limits, T* out) {
    if constexpr (std::is_floating_point_v<T>)
        hn::StoreU(clamp_floats(d, value, limits), d, out);
    else
        hn::StoreU(hn::Min(hn::Max(value, hn::Set(d, limits.min)), hn::Set(d, limits.max)), d, out);
}

/// Of one window.
template <std::size_t kVectors, typename T, class D>
HWY_INLINE void maximum_vectors(D d, const MaximumWindow<T>& window, std::size_t c,
                                Limits<T> limits, T* out) {
    hn::Vec<D> largest[kVectors];
    window_maxima(d, window, c, largest);
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
        store_maximum(d, largest[v], limits, out + v * hn::Lanes(d));
}

/// Of `count` vectors that lie `pitch` elements apart, one at least. Three, the length that
/// networks have, are taken without a loop.
template <typename T, class D>
HWY_INLINE hn::Vec<D> maximum_in_steps(D d, const T* HWY_RESTRICT first, std::size_t count,
                                       std::size_t pitch) {
    auto largest = hn::LoadU(d, first);
    if (count == 3) {
        largest = larger(d, hn::LoadU(d, first + pitch), largest);
        return larger(d, hn::LoadU(d, first + 2 * pitch), largest);
    }
    for (std::size_t i = 1; i < count; ++i)
        largest = larger(d, hn::LoadU(d, first + i * pitch), largest);
    return largest;
}

/// Of windows that overlap, from the maxima of their columns of pixels. (Of floats the order
/// decides which zero it is.)
template <typename T, class D>
HWY_INLINE void maxima_of_columns(D d, const Pooling& p, const MaximumWindow<T>& rows,
                                  std::size_t c, T* HWY_RESTRICT columns, T* HWY_RESTRICT out) {
    const std::size_t lanes = hn::Lanes(d);
    const auto width = static_cast<std::size_t>(p.x.input);
    const T* HWY_RESTRICT pixel = rows.first + c;
    for (std::size_t x = 0; x < width; ++x, pixel += rows.channels)
        hn::StoreU(maximum_in_steps(d, pixel, rows.rows, rows.row_pitch), d, columns + x * lanes);
    const Limits<T> limits = limits_of<T>(p);
    for (std::int32_t x = 0; x < p.x.output; ++x, out += rows.channels) {
        const Extent extent = p.x.window(x);
        const auto largest =
            maximum_in_steps(d, columns + static_cast<std::size_t>(extent.begin) * lanes,
                             static_cast<std::size_t>(extent.size()), lanes);
        store_maximum(d, largest, limits, out + c);
    }
}

/// Of few channels, by columns of pixels, which windows share. `columns`: few_channels_scratch().
template <typename T, class D>
HWY_INLINE void few_maxima_by_columns(D d, const Pooling& p, const MaximumWindow<T>& rows,
                                      T* HWY_RESTRICT columns, T* HWY_RESTRICT out) {
    const auto maxima_of = [&](Extent pixels) HWY_ATTR {
        const auto count = static_cast<std::size_t>(pixels.size()) * rows.channels;
        const T* first = rows.first + static_cast<std::size_t>(pixels.begin) * rows.channels;
        each_channel_vector<T>(count, [&](auto along, std::size_t i) HWY_ATTR {
            hn::StoreU(maximum_in_steps(along, first + i, rows.rows, rows.row_pitch), along,
                       columns + i);
        });
    };
    const Limits<T> limits = limits_of<T>(p);
    PixelsInTurn<T> in_turn(out, static_cast<std::size_t>(p.x.output), rows.channels);
    each_window(p.x, maxima_of, [&](Extent window, auto /*is_whole*/) HWY_ATTR {
        const auto largest =
            maximum_in_steps(d, columns + static_cast<std::size_t>(window.begin) * rows.channels,
                             static_cast<std::size_t>(window.size()), rows.channels);
        in_turn.put([&](T* to) HWY_ATTR { store_maximum(d, largest, limits, to); });
    });
}

/// The same of as many channels as d has lanes, by pixels as they lie.
template <typename T, class D>
HWY_INLINE void few_maxima_by_pixels(D d, const Pooling& p, const MaximumWindow<T>& rows,
                                     T* HWY_RESTRICT out) {
    const Limits<T> limits = limits_of<T>(p);
    const T* of_part = rows.first;
    const auto begin = [&](Extent pixels) {
        of_part = rows.first + static_cast<std::size_t>(pixels.begin) * rows.channels;
    };
    each_window(p.x, begin, [&](Extent window, auto /*is_whole*/) HWY_ATTR {
        const T* corner = of_part + static_cast<std::size_t>(window.begin) * rows.channels;
        auto largest = hn::LoadU(d, corner);
        each_pixel(rows.rows, static_cast<std::size_t>(window.size()),
                   [&](std::size_t y, std::size_t x) HWY_ATTR {
                       const T* pixel = corner + y * rows.row_pitch + x * rows.channels;
                       largest = hn::Max(largest, hn::LoadU(d, pixel));
                   });
        store_maximum(d, largest, limits, out);
        out += rows.channels;
    });
}

template <typename T>
HWY_INLINE void maxima_of_few_channels(const Pooling& p, FewChannels how,
                                       const MaximumWindow<T>& rows, T* columns, T* out) {
    const hn::CappedTag<T, few_pooled_channels> d;
    const hn::CappedTag<T, few_pooled_channels / 2> half;
    if (how == FewChannels::by_columns)
        few_maxima_by_columns(d, p, rows, columns, out);
    else if (rows.channels == hn::Lanes(d))
        few_maxima_by_pixels(d, p, rows, out);
    else
        few_maxima_by_pixels(half, p, rows, out);
}

/// One output row: p.x.output pixels. `in` is the batch's first element; `columns` is as long as an
/// input row of vectors or, of few channels, few_channels_scratch(); nullptr where windows are
/// taken one by one.
template <typename T>
void maximum_row(const Pooling& p, const T* in, std::int32_t out_y, T* columns,
                 T* HWY_RESTRICT out) {
    const auto channels = static_cast<std::size_t>(p.channels);
    const std::size_t pitch = static_cast<std::size_t>(p.x.input) * channels;
    const Extent rows = p.y.window(out_y);
    MaximumWindow<T> window{in + static_cast<std::size_t>(rows.begin) * pitch,
                            static_cast<std::size_t>(rows.size()), 0, pitch, channels};
    constexpr bool has_vectors =
        hn::MaxLanes(hn::CappedTag<T, few_pooled_channels>()) == few_pooled_channels;
    const FewChannels few = few_channels_of(p);
    if constexpr (has_vectors && !std::is_floating_point_v<T>)
        if (few != FewChannels::no) return maxima_of_few_channels(p, few, window, columns, out);
    if (!std::is_floating_point_v<T> && columns != nullptr && few == FewChannels::no)
        return each_channel_vector<T>(channels, [&](auto d, std::size_t c) HWY_ATTR {
            maxima_of_columns(d, p, window, c, columns, out);
        });
    const T* first = window.first;
    const Limits<T> limits = limits_of<T>(p);
    for (std::int32_t x = 0; x < p.x.output; ++x, out += channels) {
        const Extent extent = p.x.window(x);
        window.first = first + static_cast<std::size_t>(extent.begin) * channels;
        window.columns = static_cast<std::size_t>(extent.size());
        each_channel_vectors<T, 4>(channels, [&](auto d, std::size_t c, auto vectors) HWY_ATTR {
            maximum_vectors<vectors()>(d, window, c, limits, out + c);
        });
    }
}

void maximum_row_u8(const Pooling& p, const std::uint8_t* in, std::int32_t y, std::uint8_t* columns,
                    std::uint8_t* out) {
    maximum_row(p, in, y, columns, out);
}
void maximum_row_i8(const Pooling& p, const std::int8_t* in, std::int32_t y, std::int8_t* columns,
                    std::int8_t* out) {
    maximum_row(p, in, y, columns, out);
}
void maximum_row_f32(const Pooling& p, const float* in, std::int32_t y, float* out) {
    maximum_row<float>(p, in, y, nullptr, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(maximum_row_u8);
HWY_EXPORT(maximum_row_i8);
HWY_EXPORT(maximum_row_f32);

void maximum_row_fast(const Pooling& p, const std::uint8_t* in, std::int32_t y,
                      std::uint8_t* columns, std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(maximum_row_u8)(p, in, y, columns, out);
}
void maximum_row_fast(const Pooling& p, const std::int8_t* in, std::int32_t y, std::int8_t* columns,
                      std::int8_t* out) {
    HWY_DYNAMIC_DISPATCH(maximum_row_i8)(p, in, y, columns, out);
}
void maximum_row_fast(const Pooling& p, const float* in, std::int32_t y, float* /*columns*/,
                      float* out) {
    HWY_DYNAMIC_DISPATCH(maximum_row_f32)(p, in, y, out);
}

template <typename T>
class FastMaxPool final : public Kernel {
  public:
    FastMaxPool(const Pooling& pooling, int threads)
        : p_(pooling), threads_(static_cast<std::size_t>(threads)) {
        if (std::is_floating_point_v<T>) return;
        const auto width = static_cast<std::size_t>(p_.x.input);
        const auto channels = static_cast<std::size_t>(p_.channels);
        const bool overlap = std::min(p_.x.filter, p_.x.input) >= 3 * p_.x.stride;
        const auto few = HWY_NAMESPACE::few_channels_of(p_);
        if (few == HWY_NAMESPACE::FewChannels::by_columns)
            columns_ = HWY_NAMESPACE::few_channels_scratch(p_.x, channels);
        else if (overlap && p_.x.output > 1 && few == HWY_NAMESPACE::FewChannels::no)
            columns_ = width * widest_vector;
    }

    [[nodiscard]] std::string name() const override {
        return "max_pool_2d fast " + std::string(simd_target());
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return threads_ * columns_ * sizeof(T);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto channels = static_cast<std::size_t>(p_.channels);
        const auto rows = static_cast<std::size_t>(p_.y.output);
        const std::size_t image =
            static_cast<std::size_t>(p_.y.input) * static_cast<std::size_t>(p_.x.input) * channels;
        const std::size_t row = static_cast<std::size_t>(p_.x.output) * channels;
        auto* columns = reinterpret_cast<T*>(frame.scratch.data());
        frame.pool.parallel_for(static_cast<std::size_t>(p_.batches) * rows,
                                grain_of(p_.elements_to_a_row() * sizeof(T), pooled_bytes),
                                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                    for (std::size_t i = begin; i < end; ++i)
                                        maximum_row_fast(
                                            p_, frame.in<T>(0) + i / rows * image,
                                            static_cast<std::int32_t>(i % rows),
                                            columns_ == 0 ? nullptr : columns + worker * columns_,
                                            frame.out<T>(0) + i * row);
                                });
        return {};
    }

  private:
    static constexpr std::size_t widest_vector = 64;  ///< bytes

    Pooling p_;
    std::size_t threads_;
    std::size_t columns_ = 0;  ///< elements of a worker's maxima of columns
};

}  // namespace

std::unique_ptr<Kernel> fast_max_pool_2d(const Pooling& pooling, ElementType type, int threads) {
    if (type == ElementType::uint8)
        return std::make_unique<FastMaxPool<std::uint8_t>>(pooling, threads);
    if (type == ElementType::float32) return std::make_unique<FastMaxPool<float>>(pooling, threads);
    return std::make_unique<FastMaxPool<std::int8_t>>(pooling, threads);
}

}  // namespace reef::cpu
#endif

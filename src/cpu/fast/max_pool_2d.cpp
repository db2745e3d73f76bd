#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/max_pool_2d.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <limits>
#include <type_traits>

#include "base/worker_pool.h"
#include "cpu/fast/channel_runs-inl.h"
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

/// Channels [c, c + lanes). What is no number is above nothing.
template <typename T, class D>
HWY_INLINE hn::Vec<D> window_maximum(D d, const MaximumWindow<T>& window, std::size_t c) {
    const auto larger = [](auto value, auto than) HWY_ATTR {
        if constexpr (std::is_floating_point_v<T>)
            return hn::IfThenElse(hn::Gt(value, than), value, than);
        else
            return hn::Max(value, than);
    };
    auto largest = hn::Set(d, std::numeric_limits<T>::lowest());
    for (std::size_t y = 0; y < window.rows; ++y) {
        const T* HWY_RESTRICT pixel = window.first + y * window.row_pitch + c;
        for (std::size_t x = 0; x < window.columns; ++x, pixel += window.channels)
            largest = larger(hn::LoadU(d, pixel), largest);
    }
    return largest;
}

template <typename T>
Limits<T> limits_of(const Pooling& p) {
    if constexpr (std::is_floating_point_v<T>)
        return p.float_clamp;
    else
        return {static_cast<T>(p.clamp.min), static_cast<T>(p.clamp.max)};
}

/// One output row: p.x.output pixels. `in` is the batch's first element.
template <typename T>
void maximum_row(const Pooling& p, const T* in, std::int32_t out_y, T* HWY_RESTRICT out) {
    const Limits<T> limits = limits_of<T>(p);
    const auto channels = static_cast<std::size_t>(p.channels);
    const std::size_t pitch = static_cast<std::size_t>(p.x.input) * channels;
    const Extent rows = p.y.window(out_y);
    for (std::int32_t x = 0; x < p.x.output; ++x, out += channels) {
        const Extent columns = p.x.window(x);
        const MaximumWindow<T> window{in + static_cast<std::size_t>(rows.begin) * pitch +
                                          static_cast<std::size_t>(columns.begin) * channels,
                                      static_cast<std::size_t>(rows.size()),
                                      static_cast<std::size_t>(columns.size()), pitch, channels};
        each_channel_vector<T>(channels, [&](auto d, std::size_t c) HWY_ATTR {
            const auto value = window_maximum(d, window, c);
            if constexpr (std::is_floating_point_v<T>)
                hn::StoreU(clamp_floats(d, value, limits), d, out + c);
            else
                hn::StoreU(hn::Min(hn::Max(value, hn::Set(d, limits.min)), hn::Set(d, limits.max)),
                           d, out + c);
        });
    }
}

void maximum_row_u8(const Pooling& p, const std::uint8_t* in, std::int32_t y, std::uint8_t* out) {
    maximum_row(p, in, y, out);
}
void maximum_row_i8(const Pooling& p, const std::int8_t* in, std::int32_t y, std::int8_t* out) {
    maximum_row(p, in, y, out);
}
void maximum_row_f32(const Pooling& p, const float* in, std::int32_t y, float* out) {
    maximum_row(p, in, y, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(maximum_row_u8);
HWY_EXPORT(maximum_row_i8);
HWY_EXPORT(maximum_row_f32);

void maximum_row_fast(const Pooling& p, const std::uint8_t* in, std::int32_t y, std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(maximum_row_u8)(p, in, y, out);
}
void maximum_row_fast(const Pooling& p, const std::int8_t* in, std::int32_t y, std::int8_t* out) {
    HWY_DYNAMIC_DISPATCH(maximum_row_i8)(p, in, y, out);
}
void maximum_row_fast(const Pooling& p, const float* in, std::int32_t y, float* out) {
    HWY_DYNAMIC_DISPATCH(maximum_row_f32)(p, in, y, out);
}

template <typename T>
class FastMaxPool final : public Kernel {
  public:
    explicit FastMaxPool(const Pooling& pooling) : p_(pooling) {}

    [[nodiscard]] std::string name() const override {
        return "max_pool_2d fast " + std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto channels = static_cast<std::size_t>(p_.channels);
        const auto rows = static_cast<std::size_t>(p_.y.output);
        const std::size_t image =
            static_cast<std::size_t>(p_.y.input) * static_cast<std::size_t>(p_.x.input) * channels;
        const std::size_t row = static_cast<std::size_t>(p_.x.output) * channels;
        frame.pool.parallel_for(static_cast<std::size_t>(p_.batches) * rows,
                                grain_of(p_.elements_to_a_row() * sizeof(T), pooled_bytes),
                                [&](std::size_t begin, std::size_t end, std::size_t) {
                                    for (std::size_t i = begin; i < end; ++i)
                                        maximum_row_fast(p_, frame.in<T>(0) + i / rows * image,
                                                         static_cast<std::int32_t>(i % rows),
                                                         frame.out<T>(0) + i * row);
                                });
        return {};
    }

  private:
    Pooling p_;
};

}  // namespace

std::unique_ptr<Kernel> fast_max_pool_2d(const Pooling& pooling, ElementType type) {
    if (type == ElementType::uint8) return std::make_unique<FastMaxPool<std::uint8_t>>(pooling);
    if (type == ElementType::float32) return std::make_unique<FastMaxPool<float>>(pooling);
    return std::make_unique<FastMaxPool<std::int8_t>>(pooling);
}

}  // namespace reef::cpu
#endif

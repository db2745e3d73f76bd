#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/average_pool_2d.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <type_traits>

#include "base/worker_pool.h"
#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/window_sum-inl.h"
#include "cpu/prepare/pooling.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {

/// One output row: p.x.output pixels. `in` is the batch's first element.
template <typename T>
void average_row(const Pooling& p, const T* in, std::int32_t out_y, T* out, std::int32_t* sums) {
    const auto channels = static_cast<std::size_t>(p.channels);
    const std::size_t row_pitch = static_cast<std::size_t>(p.x.input) * channels;
    const Extent rows = p.y.window(out_y);
    for (std::int32_t x = 0; x < p.x.output; ++x, out += channels) {
        const Extent columns = p.x.window(x);
        const Window window{static_cast<std::size_t>(rows.size()),
                            static_cast<std::size_t>(columns.size()), row_pitch, channels};
        window_sum(in + static_cast<std::size_t>(rows.begin) * row_pitch +
                       static_cast<std::size_t>(columns.begin) * channels,
                   window, sums);
        const std::int32_t count = rows.size() * columns.size();
        const std::int32_t half = count / 2;
        for (std::size_t c = 0; c < channels; ++c) {
            const std::int32_t mean = (sums[c] > 0 ? sums[c] + half : sums[c] - half) / count;
            out[c] = static_cast<T>(std::clamp(mean, p.clamp.min, p.clamp.max));
        }
    }
}

/// The same of floats, whose sums need no place.
void average_row_f32(const Pooling& p, const float* in, std::int32_t out_y, float* out) {
    const auto channels = static_cast<std::size_t>(p.channels);
    const std::size_t pitch = static_cast<std::size_t>(p.x.input) * channels;
    const Extent rows = p.y.window(out_y);
    for (std::int32_t x = 0; x < p.x.output; ++x, out += channels) {
        const Extent columns = p.x.window(x);
        each_channel_vector<float>(channels, [&](auto d, std::size_t c) HWY_ATTR {
            auto sum = hn::Zero(d);
            for (std::int32_t y = rows.begin; y < rows.end; ++y) {
                const float* pixel = in + static_cast<std::size_t>(y) * pitch +
                                     static_cast<std::size_t>(columns.begin) * channels + c;
                for (std::int32_t i = 0; i < columns.size(); ++i, pixel += channels)
                    sum = hn::Add(sum, hn::LoadU(d, pixel));
            }
            const auto count = static_cast<float>(rows.size() * columns.size());
            hn::StoreU(clamp_floats(d, hn::Div(sum, hn::Set(d, count)), p.float_clamp), d, out + c);
        });
    }
}

void average_row_u8(const Pooling& p, const std::uint8_t* in, std::int32_t y, std::uint8_t* out,
                    std::int32_t* sums) {
    average_row(p, in, y, out, sums);
}
void average_row_i8(const Pooling& p, const std::int8_t* in, std::int32_t y, std::int8_t* out,
                    std::int32_t* sums) {
    average_row(p, in, y, out, sums);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(average_row_u8);
HWY_EXPORT(average_row_i8);
HWY_EXPORT(average_row_f32);

void average_row_fast(const Pooling& p, const std::uint8_t* in, std::int32_t y, std::uint8_t* out,
                      std::int32_t* sums) {
    HWY_DYNAMIC_DISPATCH(average_row_u8)(p, in, y, out, sums);
}
void average_row_fast(const Pooling& p, const std::int8_t* in, std::int32_t y, std::int8_t* out,
                      std::int32_t* sums) {
    HWY_DYNAMIC_DISPATCH(average_row_i8)(p, in, y, out, sums);
}

void average_row_fast(const Pooling& p, const float* in, std::int32_t y, float* out,
                      std::int32_t* /*sums*/) {
    HWY_DYNAMIC_DISPATCH(average_row_f32)(p, in, y, out);
}

template <typename T>
class FastAveragePool final : public Kernel {
  public:
    FastAveragePool(const Pooling& pooling, int threads)
        : p_(pooling), threads_(static_cast<std::size_t>(threads)) {}

    [[nodiscard]] std::string name() const override {
        return "average_pool_2d fast " + std::string(simd_target());
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        if (std::is_floating_point_v<T>) return 0;
        return threads_ * static_cast<std::size_t>(p_.channels) * sizeof(std::int32_t);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto channels = static_cast<std::size_t>(p_.channels);
        const auto rows = static_cast<std::size_t>(p_.y.output);
        const std::size_t image =
            static_cast<std::size_t>(p_.y.input) * static_cast<std::size_t>(p_.x.input) * channels;
        const std::size_t row = static_cast<std::size_t>(p_.x.output) * channels;
        auto* sums = reinterpret_cast<std::int32_t*>(frame.scratch.data());
        // Sums of floats are in registers, and have no scratch memory.
        const std::size_t sums_of_worker = std::is_floating_point_v<T> ? 0 : channels;
        frame.pool.parallel_for(static_cast<std::size_t>(p_.batches) * rows, 1,
                                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                    for (std::size_t i = begin; i < end; ++i)
                                        average_row_fast(p_, frame.in<T>(0) + i / rows * image,
                                                         static_cast<std::int32_t>(i % rows),
                                                         frame.out<T>(0) + i * row,
                                                         sums + worker * sums_of_worker);
                                });
        return {};
    }

  private:
    Pooling p_;
    std::size_t threads_;
};

}  // namespace

std::unique_ptr<Kernel> fast_average_pool_2d(const Pooling& pooling, ElementType type,
                                             int threads) {
    if (type == ElementType::uint8)
        return std::make_unique<FastAveragePool<std::uint8_t>>(pooling, threads);
    if (type == ElementType::float32)
        return std::make_unique<FastAveragePool<float>>(pooling, threads);
    return std::make_unique<FastAveragePool<std::int8_t>>(pooling, threads);
}

}  // namespace reef::cpu
#endif

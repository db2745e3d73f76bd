#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/mean.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/worker_pool.h"
#include "cpu/fast/byte_sums-inl.h"
#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/fixed_point-inl.h"
#include "cpu/fast/pixel_rows.h"
#include "cpu/fast/step_words-inl.h"
#include "cpu/prepare/reducing.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T, class D, class V>
HWY_INLINE V clamped_to(D d, V values) {
    return hn::Min(hn::Max(values, hn::Set(d, std::numeric_limits<T>::min())),
                   hn::Set(d, std::numeric_limits<T>::max()));
}

// Vectors of what cpu/prepare/reducing.h says of one sum; `by` is the division by its count.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V means_of(D d, V sums, const ScaledMean& mean, const Quotient& /*by*/) {
    const V scaled = multiply_by_quantized_multiplier(d, sums, mean.multiplier);
    return clamped_to<std::uint8_t>(d, hn::Add(scaled, hn::Set(d, mean.bias)));
}
template <typename T, class D, class V = hn::Vec<D>>
HWY_INLINE V means_of(D d, V sums, const DividedMean<T>& mean, const Quotient& by) {
    const V scaled = multiply_by_quantized_multiplier(
        d, hn::Sub(sums, hn::Set(d, mean.zero_points)), mean.multiplier);
    const V divided = rounded_quotients(d, scaled, mean.count / 2, by);
    return clamped_to<T>(d, hn::Add(divided, hn::Set(d, mean.zero_point)));
}
template <typename T, class D, class V = hn::Vec<D>>
HWY_INLINE V means_of(D d, V sums, const TruncatedMean<T>& /*mean*/, const Quotient& by) {
    return truncated_quotients(d, sums, by);
}
template <typename T, class D, class V = hn::Vec<D>>
HWY_INLINE V means_of(D d, V sums, const FloatMean<T>& mean, const Quotient& /*by*/) {
    const hn::RebindToFloat<D> df;
    const auto real = hn::Div(hn::ConvertTo(df, sums), hn::Set(df, mean.count));
    const auto scaled = hn::Add(hn::Mul(real, hn::Set(df, mean.scale)), hn::Set(df, mean.bias));
    const auto whole = hn::Trunc(scaled);
    const auto rest = hn::Abs(hn::Sub(scaled, whole));
    const auto away = hn::IfThenElseZero(hn::Ge(rest, hn::Set(df, 0.5F)),
                                         hn::CopySign(hn::Set(df, 1.0F), scaled));
    const auto steps =
        hn::Add(hn::Add(whole, away), hn::Set(df, static_cast<float>(mean.zero_point)));
    const auto least = hn::Set(df, static_cast<float>(std::numeric_limits<T>::min()));
    const auto most = hn::Set(df, static_cast<float>(std::numeric_limits<T>::max()));
    return hn::ConvertTo(d, hn::Min(hn::Max(steps, least), most));
}

#if HWY_TARGET != HWY_SCALAR

/// A whole vector of bytes, if all of them are sure.
template <typename T>
HWY_INLINE bool store_sure_means(const QuadSums<QuarterTag>& sums, const MeanInFloat& mean,
                                 T* out) {
    const hn::ScalableTag<float> df;
    const QuarterTag d32;
    const auto factor = hn::Set(df, mean.factor), start = hn::Set(df, mean.start);
    const auto twice = hn::Set(d32, mean.twice_the_offset);
    Quarter fixed[4];
    REEF_UNROLL for (std::size_t k = 0; k < 4; ++k) {
        const auto x = hn::Sub(sums.of[k], hn::Set(d32, mean.zero_points));
        const auto real = hn::MulAdd(hn::ConvertTo(df, x), factor, start);
        fixed[k] = hn::Sub(nearest(real), hn::And(hn::BroadcastSignBit(x), twice));
    }
    static_assert(StepWords::one == MeanInFloat::one);
    const StepWords steps(fixed);
    // Channels 4i and 4i + 1 are in one vector of words, 4i + 2 and 4i + 3 in the other.
    alignas(16) static constexpr std::uint8_t pairs[16] = {0, 1, 8,  9,  2, 3, 10, 11,
                                                           4, 5, 12, 13, 6, 7, 14, 15};
    const auto bytes = narrowed_words<T>(steps.words[0], steps.words[1]);
    hn::StoreU(hn::TableLookupBytes(bytes, hn::LoadDup128(ByteTag(), pairs)), ByteTag(),
               reinterpret_cast<std::uint8_t*>(out));
    return steps.are_sure(MeanInFloat::most_off);
}

#endif

/// The means of kVectors vectors of channels.
template <std::size_t kVectors, typename T, typename Mean, class D,
          class D32 = hn::Repartition<std::int32_t, D>>
HWY_INLINE void mean_vectors(D d, const T* in, const Window& window, const Mean& mean,
                             const MeanInFloat& first, const Quotient& by, T* out) {
    const D32 d32;
    QuadSums<D32> sums[kVectors];
    sum_quads(d, in, window, sums);
    for (std::size_t v = 0; v < kVectors; ++v) {
        T* const to = out + v * hn::Lanes(d);
#if HWY_TARGET != HWY_SCALAR
        if constexpr (has_float_form<Mean> && std::is_same_v<D, ByteTag>)
            if (first.pays && store_sure_means(sums[v], first, to)) continue;
#endif
        for (auto& lane : sums[v].of)
            lane = hn::Sub(means_of(d32, lane, mean, by), hn::Set(d32, least_value<T>));
        store_from_least(d, bytes_of(d32, sums[v]), to);
    }
}

/// Some neighbouring channels of one window, one row of pixels.
template <typename T, typename Mean>
void mean_channels(const T* in, const Window& window, std::size_t channels, const Mean& mean,
                   const MeanInFloat& first, T* out) {
    const Quotient by = quotient_by(static_cast<std::int32_t>(window.columns));
    each_channel_vectors<std::uint8_t, 4>(
        channels, [&](auto d, std::size_t c, auto vectors) HWY_ATTR {
            if constexpr (hn::MaxLanes(d) >= least_byte_lanes)
                return mean_vectors<vectors()>(d, in + c, window, mean, first, by, out + c);
            for (const std::size_t end = c + vectors() * hn::Lanes(d); c < end; ++c) {
                std::int32_t sum = 0;
                for (std::size_t x = 0; x < window.columns; ++x) sum += in[x * window.channels + c];
                out[c] = mean(sum);
            }
        });
}

/// Of neighbouring elements.
template <typename T>
std::int32_t sum_of_run(const T* in, std::size_t count) {
    std::int64_t sum = static_cast<std::int64_t>(count) * least_value<T>;
    std::size_t i = 0;
    if constexpr (hn::MaxLanes(hn::ScalableTag<std::uint8_t>()) >= least_byte_lanes) {
        const hn::ScalableTag<std::uint8_t> d;
        const hn::Repartition<std::uint64_t, decltype(d)> d64;
        auto sums = hn::Zero(d64);
        for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
            sums = hn::Add(sums, hn::SumsOf8(load_from_least(d, in + i)));
        sum += static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(d64, sums)));
    }
    for (; i < count; ++i) sum += in[i] - least_value<T>;
    return static_cast<std::int32_t>(sum);
}

/// Of a few channels: 64 pixels side by side fill whole vectors.
template <typename T>
void sum_few_channels(const T* in, const MeanShape& shape, std::int32_t* sums) {
    constexpr std::size_t pixels = 64;
    const std::size_t channels = shape.inner, side_by_side = pixels * channels;
    std::fill_n(sums, channels, 0);
    std::size_t pixel = 0;
    if constexpr (hn::MaxLanes(hn::ScalableTag<std::uint8_t>()) >= least_byte_lanes) {
        using D = hn::ScalableTag<std::uint8_t>;
        using D32 = hn::Repartition<std::int32_t, D>;
        pixel = shape.reduced / pixels * pixels;
        for (std::size_t c = 0; pixel > 0 && c < side_by_side; c += hn::Lanes(D())) {
            QuadSums<D32> quads[1];
            sum_quads(D(), in + c, {1, pixel / pixels, 0, side_by_side}, quads);
            alignas(64) std::int32_t lanes[hn::MaxLanes(D32())];
            for (std::size_t k = 0; k < 4; ++k) {
                hn::Store(quads[0].of[k], D32(), lanes);
                for (std::size_t i = 0; i < hn::Lanes(D32()); ++i)
                    sums[(c + 4 * i + k) % channels] += lanes[i];
            }
        }
    }
    for (std::size_t i = pixel * channels; i < shape.reduced * channels; ++i)
        sums[i % channels] += in[i];
}

/// Output blocks [begin, end), each of block_channels channels or what is left of a pixel's.
template <typename T, typename Mean>
void mean_blocks(const T* in, const MeanShape& shape, const Mean& mean, const MeanInFloat& first,
                 std::size_t begin, std::size_t end, T* out) {
    const std::size_t blocks = shape.blocks();
    for (std::size_t i = begin; i < end; ++i) {
        const std::size_t outer = i / blocks;
        const std::size_t channel = i % blocks * MeanShape::block_channels;
        const T* from = in + outer * shape.reduced * shape.inner + channel;
        T* to = out + outer * shape.inner + channel;
        std::int32_t sums[least_byte_lanes];
        if (shape.inner == 1) {
            *to = mean(sum_of_run(from, shape.reduced));
        } else if (shape.inner < least_byte_lanes) {
            sum_few_channels(from, shape, sums);
            std::transform(sums, sums + shape.inner, to, mean);
        } else {
            mean_channels(from, {1, shape.reduced, 0, shape.inner},
                          std::min(MeanShape::block_channels, shape.inner - channel), mean, first,
                          to);
        }
    }
}

void scaled_u8(const std::uint8_t* in, const MeanShape& shape, const ScaledMean& mean,
               const MeanInFloat& first, std::size_t begin, std::size_t end, std::uint8_t* out) {
    mean_blocks(in, shape, mean, first, begin, end, out);
}
void truncated_u8(const std::uint8_t* in, const MeanShape& shape,
                  const TruncatedMean<std::uint8_t>& mean, const MeanInFloat& first,
                  std::size_t begin, std::size_t end, std::uint8_t* out) {
    mean_blocks(in, shape, mean, first, begin, end, out);
}
void in_floats_u8(const std::uint8_t* in, const MeanShape& shape,
                  const FloatMean<std::uint8_t>& mean, const MeanInFloat& first, std::size_t begin,
                  std::size_t end, std::uint8_t* out) {
    mean_blocks(in, shape, mean, first, begin, end, out);
}
void divided_i8(const std::int8_t* in, const MeanShape& shape, const DividedMean<std::int8_t>& mean,
                const MeanInFloat& first, std::size_t begin, std::size_t end, std::int8_t* out) {
    mean_blocks(in, shape, mean, first, begin, end, out);
}
void truncated_i8(const std::int8_t* in, const MeanShape& shape,
                  const TruncatedMean<std::int8_t>& mean, const MeanInFloat& first,
                  std::size_t begin, std::size_t end, std::int8_t* out) {
    mean_blocks(in, shape, mean, first, begin, end, out);
}
void in_floats_i8(const std::int8_t* in, const MeanShape& shape, const FloatMean<std::int8_t>& mean,
                  const MeanInFloat& first, std::size_t begin, std::size_t end, std::int8_t* out) {
    mean_blocks(in, shape, mean, first, begin, end, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(scaled_u8);
HWY_EXPORT(truncated_u8);
HWY_EXPORT(in_floats_u8);
HWY_EXPORT(divided_i8);
HWY_EXPORT(truncated_i8);
HWY_EXPORT(in_floats_i8);

template <typename T, typename Mean>
void means_fast(const T* in, const MeanShape& shape, const Mean& mean, const MeanInFloat& first,
                std::size_t begin, std::size_t end, T* out) {
    if constexpr (std::is_same_v<Mean, ScaledMean>)
        HWY_DYNAMIC_DISPATCH(scaled_u8)(in, shape, mean, first, begin, end, out);
    else if constexpr (std::is_same_v<Mean, TruncatedMean<std::uint8_t>>)
        HWY_DYNAMIC_DISPATCH(truncated_u8)(in, shape, mean, first, begin, end, out);
    else if constexpr (std::is_same_v<Mean, FloatMean<std::uint8_t>>)
        HWY_DYNAMIC_DISPATCH(in_floats_u8)(in, shape, mean, first, begin, end, out);
    else if constexpr (std::is_same_v<Mean, DividedMean<std::int8_t>>)
        HWY_DYNAMIC_DISPATCH(divided_i8)(in, shape, mean, first, begin, end, out);
    else if constexpr (std::is_same_v<Mean, TruncatedMean<std::int8_t>>)
        HWY_DYNAMIC_DISPATCH(truncated_i8)(in, shape, mean, first, begin, end, out);
    else
        HWY_DYNAMIC_DISPATCH(in_floats_i8)(in, shape, mean, first, begin, end, out);
}

template <typename T, typename Mean>
class FastMean final : public Kernel {
  public:
    FastMean(const MeanShape& shape, const Mean& mean) : shape_(shape), mean_(mean) {
        if constexpr (has_float_form<Mean>) first_ = in_float(mean, shape.reduced);
    }

    [[nodiscard]] std::string name() const override {
        return "mean fast " + std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const std::size_t block =
            shape_.reduced * std::min(MeanShape::block_channels, shape_.inner);
        frame.pool.parallel_for(shape_.outer * shape_.blocks(), grain_of(block, pooled_bytes),
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    means_fast(frame.in<T>(0), shape_, mean_, first_, begin, end,
                                               frame.out<T>(0));
                                });
        return {};
    }

  private:
    MeanShape shape_;
    Mean mean_;
    MeanInFloat first_;
};

}  // namespace

template <typename T, typename Mean>
std::unique_ptr<Kernel> fast_mean(const MeanShape& shape, const Mean& mean) {
    return std::make_unique<FastMean<T, Mean>>(shape, mean);
}

template std::unique_ptr<Kernel> fast_mean<std::uint8_t>(const MeanShape&, const ScaledMean&);
template std::unique_ptr<Kernel> fast_mean<std::uint8_t>(const MeanShape&,
                                                         const TruncatedMean<std::uint8_t>&);
template std::unique_ptr<Kernel> fast_mean<std::uint8_t>(const MeanShape&,
                                                         const FloatMean<std::uint8_t>&);
template std::unique_ptr<Kernel> fast_mean<std::int8_t>(const MeanShape&,
                                                        const DividedMean<std::int8_t>&);
template std::unique_ptr<Kernel> fast_mean<std::int8_t>(const MeanShape&,
                                                        const TruncatedMean<std::int8_t>&);
template std::unique_ptr<Kernel> fast_mean<std::int8_t>(const MeanShape&,
                                                        const FloatMean<std::int8_t>&);

}  // namespace reef::cpu
#endif

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/float_resize.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "base/worker_pool.h"
#include "cpu/fast/row_taps-inl.h"
#include "cpu/fast/row_taps.h"
#include "cpu/prepare/resizing.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

/// The plain kernel's sum, whose last term makes 0 of -0.
template <class D, class V>
HWY_INLINE V weighed(D d, const V (&values)[4], const V (&weights)[4]) {
    V sum = hn::Add(hn::Mul(values[0], weights[0]), hn::Mul(values[1], weights[1]));
    sum = hn::Add(sum, hn::Mul(values[2], weights[2]));
    sum = hn::Add(sum, hn::Mul(values[3], weights[3]));
    return hn::Add(sum, hn::Zero(d));
}

/// One pixel of four.
template <std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>())>
HWY_INLINE void mix_pixel(const float* const (&pixels)[4], const float (&weights)[4],
                          std::size_t channels, float* HWY_RESTRICT out) {
    // Of 64 bytes each access crosses a line of the cache where pixels are not whole lines.
    const bool crosses = kLanes > 8 && channels % kLanes != 0;
    if (channels < kLanes || crosses) {
        if constexpr (kLanes > 1) mix_pixel<kLanes / 2>(pixels, weights, channels, out);
        return;
    }
    const hn::CappedTag<float, kLanes> d;
    const hn::Vec<decltype(d)> all[4] = {hn::Set(d, weights[0]), hn::Set(d, weights[1]),
                                         hn::Set(d, weights[2]), hn::Set(d, weights[3])};
    const auto vector_at = [&](std::size_t c) HWY_ATTR {
        const hn::Vec<decltype(d)> values[4] = {
            hn::LoadU(d, pixels[0] + c), hn::LoadU(d, pixels[1] + c), hn::LoadU(d, pixels[2] + c),
            hn::LoadU(d, pixels[3] + c)};
        hn::StoreU(weighed(d, values, all), d, out + c);
    };
    std::size_t c = 0;
    for (; c + kLanes <= channels; c += kLanes) vector_at(c);
    if (c < channels) vector_at(channels - kLanes);
}

}  // namespace

/// One output row, a pixel at a time.
void mix_float_pixels(const FloatRows& rows, const FloatSample& row, const FloatSample* columns,
                      std::size_t column_count, std::size_t channels, float* out) {
    for (std::size_t x = 0; x < column_count; ++x, out += channels) {
        const FloatSample& column = columns[x];
        const std::size_t left = static_cast<std::size_t>(column.lower) * channels;
        const std::size_t right = static_cast<std::size_t>(column.upper) * channels;
        mix_pixel({rows.lower + left, rows.lower + right, rows.upper + left, rows.upper + right},
                  {(1 - row.fraction) * (1 - column.fraction), (1 - row.fraction) * column.fraction,
                   row.fraction * (1 - column.fraction), row.fraction * column.fraction},
                  channels, out);
    }
}

/// What lies to the left and to the right of `count` elements of an output row.
void widen_float_row(const float* in, const RowTaps& left, const RowTaps& right, std::size_t count,
                     const WideRow& wide) {
    const hn::ScalableTag<float> d;
    using V = hn::Vec<decltype(d)>;
    float* HWY_RESTRICT to_left = wide.left;
    float* HWY_RESTRICT to_right = wide.right;
    each_tapped_pair(d, in, left, right, count, [&](std::size_t i, V l, V r) HWY_ATTR {
        hn::Store(l, d, to_left + i);
        hn::Store(r, d, to_right + i);
    });
}

/// `count` elements of an output row from those to their left and right in both input rows.
void mix_float_rows(const WideRows& rows, float row_fraction, const float* HWY_RESTRICT fractions,
                    std::size_t count, float* HWY_RESTRICT out) {
    const hn::ScalableTag<float> d;
    using V = hn::Vec<decltype(d)>;
    const WideRow lower = rows.lower, upper = rows.upper;
    const V one = hn::Set(d, 1.0F);
    const V below = hn::Set(d, row_fraction), above = hn::Set(d, 1 - row_fraction);
    const auto mixed = [&](std::size_t i) HWY_ATTR {
        const V to_right = hn::Load(d, fractions + i), to_left = hn::Sub(one, to_right);
        const V weights[4] = {hn::Mul(above, to_left), hn::Mul(above, to_right),
                              hn::Mul(below, to_left), hn::Mul(below, to_right)};
        const V values[4] = {hn::Load(d, lower.left + i), hn::Load(d, lower.right + i),
                             hn::Load(d, upper.left + i), hn::Load(d, upper.right + i)};
        return weighed(d, values, weights);
    };
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(mixed(i), d, out + i);
    if (i == count) return;
    HWY_ALIGN float last[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(mixed(i), d, last);
    std::copy_n(last, count - i, out + i);
}

std::size_t float_resize_lanes() {
    return hn::Lanes(hn::ScalableTag<float>());
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(mix_float_pixels);
HWY_EXPORT(widen_float_row);
HWY_EXPORT(mix_float_rows);
HWY_EXPORT(float_resize_lanes);

/// Pixels of few channels fill no vector: both input rows are written out as wide as the output
/// first, which neighbouring output rows share.
constexpr std::size_t few_channels = 8;

class FloatResize final : public Kernel {
  public:
    FloatResize(const ResizeShape& shape, std::vector<FloatSample> rows,
                std::vector<FloatSample> columns, int threads)
        : channels_(static_cast<std::size_t>(shape.channels)),
          input_height_(static_cast<std::size_t>(shape.input_height)),
          input_row_(static_cast<std::size_t>(shape.input_width) * channels_),
          output_row_(columns.size() * channels_),
          wide_row_(hwy::RoundUpTo(output_row_, row_multiple)),
          row_count_(static_cast<std::size_t>(shape.batches) * rows.size()),
          rows_(std::move(rows)),
          columns_(std::move(columns)),
          threads_(static_cast<std::size_t>(threads)) {
        if (channels_ == 0 || channels_ >= few_channels) return;
        const RowOfPixels row{.channels = channels_, .length = input_row_};
        const std::size_t lanes = HWY_DYNAMIC_DISPATCH(float_resize_lanes)();
        left_ = taps_of(columns_, &FloatSample::lower, row, lanes);
        right_ = taps_of(columns_, &FloatSample::upper, row, lanes);
        fractions_ = aligned_array<float>(wide_row_);
        std::fill_n(fractions_.get(), wide_row_, 0.0F);
        float* next = fractions_.get();
        for (const FloatSample& column : columns_)
            next = std::fill_n(next, channels_, column.fraction);
    }

    [[nodiscard]] std::string name() const override {
        return "resize_bilinear fast " + std::string(simd_target());
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return threads_ * widened() * sizeof(float);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        auto* scratch = reinterpret_cast<float*>(frame.scratch.data());
        const auto* in = frame.in<float>(0);
        auto* out = frame.out<float>(0);
        frame.pool.parallel_for(row_count_, 4096 / (output_row_ + 1) + 1,
                                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                    if (!fractions_)
                                        by_pixels(in, begin, end, out);
                                    else
                                        by_rows(in, begin, end, scratch + worker * widened(), out);
                                });
        return {};
    }

  private:
    /// Elements of two input rows that are as wide as the output, twice.
    [[nodiscard]] std::size_t widened() const { return fractions_ ? 4 * wide_row_ : 0; }

    /// Between which input rows an output row over all batches lies.
    [[nodiscard]] FloatRows rows_at(const float* in, std::size_t i) const {
        const FloatSample& row = rows_[i % rows_.size()];
        const float* image = in + i / rows_.size() * input_height_ * input_row_;
        return {.lower = image + static_cast<std::size_t>(row.lower) * input_row_,
                .upper = image + static_cast<std::size_t>(row.upper) * input_row_};
    }

    void by_pixels(const float* in, std::size_t begin, std::size_t end, float* out) const {
        for (std::size_t i = begin; i < end; ++i) HWY_DYNAMIC_DISPATCH(mix_float_pixels)
        (rows_at(in, i), rows_[i % rows_.size()], columns_.data(), columns_.size(), channels_,
         out + i * output_row_);
    }

    void by_rows(const float* in, std::size_t begin, std::size_t end, float* scratch,
                 float* out) const {
        FloatRows held;
        WideRow lower{scratch, scratch + wide_row_};
        WideRow upper{scratch + 2 * wide_row_, scratch + 3 * wide_row_};
        for (std::size_t i = begin; i < end; ++i) {
            const FloatRows needed = rows_at(in, i);
            if (held.upper == needed.lower && held.lower != needed.lower) {
                std::swap(held.lower, held.upper);
                std::swap(lower, upper);
            }
            if (held.lower != needed.lower) widen(needed.lower, lower);
            if (held.upper != needed.upper) widen(needed.upper, upper);
            held = needed;
            HWY_DYNAMIC_DISPATCH(mix_float_rows)
            ({lower, upper}, rows_[i % rows_.size()].fraction, fractions_.get(), output_row_,
             out + i * output_row_);
        }
    }

    void widen(const float* in, const WideRow& wide) const {
        HWY_DYNAMIC_DISPATCH(widen_float_row)(in, left_, right_, output_row_, wide);
    }

    std::size_t channels_, input_height_, input_row_, output_row_, wide_row_, row_count_;
    std::vector<FloatSample> rows_, columns_;
    std::size_t threads_;
    RowTaps left_, right_;
    hwy::AlignedFreeUniquePtr<float[]> fractions_;  ///< of a row's elements; none: by_pixels()
};

}  // namespace

std::unique_ptr<Kernel> fast_float_resize_bilinear(const ResizeShape& shape,
                                                   std::vector<FloatSample> rows,
                                                   std::vector<FloatSample> columns, int threads) {
    apply_simd_choice();
    return std::make_unique<FloatResize>(shape, std::move(rows), std::move(columns), threads);
}

}  // namespace reef::cpu
#endif

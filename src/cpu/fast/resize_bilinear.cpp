#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/resize_bilinear.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <cmath>
#include <cstdlib>

#include "base/worker_pool.h"
#include "cpu/prepare/resizing.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What one output row is mixed from: two input rows, widened to 32 bits.
template <typename Lane>
struct RowPair {
    const Lane* lower;
    const Lane* upper;
};

HWY_INLINE std::uint8_t rounded(float sum) {
    return static_cast<std::uint8_t>(sum + 0.5F);
}
HWY_INLINE std::int8_t rounded(std::int32_t sum) {
    const std::int32_t magnitude = (std::abs(sum) + (1 << 19)) >> 20;
    return static_cast<std::int8_t>(sum < 0 ? -magnitude : magnitude);
}

template <class D, class D8>
HWY_INLINE void store_rounded(D d, D8 d8, hn::Vec<D> sum, std::uint8_t* HWY_RESTRICT out) {
    const hn::RebindToSigned<D> di;
    const auto q = hn::ConvertTo(di, hn::Add(sum, hn::Set(d, 0.5F)));
    hn::StoreU(hn::DemoteTo(d8, q), d8, out);
}
template <class D, class D8>
HWY_INLINE void store_rounded(D d, D8 d8, hn::Vec<D> sum, std::int8_t* HWY_RESTRICT out) {
    const auto magnitude = hn::ShiftRight<20>(hn::Add(hn::Abs(sum), hn::Set(d, 1 << 19)));
    const auto q = hn::IfThenElse(hn::Lt(sum, hn::Zero(d)), hn::Neg(magnitude), magnitude);
    hn::StoreU(hn::DemoteTo(d8, q), d8, out);
}

/// One output row. The four products are added in the reference's order.
template <typename Lane, typename T, typename Sample>
HWY_INLINE void mix_row(const RowPair<Lane>& rows, Lane one, const Sample& row,
                        const Sample* HWY_RESTRICT columns, std::size_t column_count,
                        std::size_t channels, T* HWY_RESTRICT out) {
    const hn::ScalableTag<Lane> d;
    const hn::Rebind<T, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t x = 0; x < column_count; ++x, out += channels) {
        const Sample& column = columns[x];
        const std::size_t left = static_cast<std::size_t>(column.lower) * channels;
        const std::size_t right = static_cast<std::size_t>(column.upper) * channels;
        const Lane weights[4] = {
            (one - row.fraction) * (one - column.fraction), (one - row.fraction) * column.fraction,
            row.fraction * (one - column.fraction), row.fraction * column.fraction};
        const auto vector_at = [&](std::size_t c) HWY_ATTR {
            const auto product = [&](const Lane* from, Lane weight) HWY_ATTR {
                return hn::Mul(hn::LoadU(d, from + c), hn::Set(d, weight));
            };
            auto sum = hn::Add(product(rows.lower + left, weights[0]),
                               product(rows.lower + right, weights[1]));
            sum = hn::Add(sum, product(rows.upper + left, weights[2]));
            sum = hn::Add(sum, product(rows.upper + right, weights[3]));
            store_rounded(d, d8, sum, out + c);
        };
        std::size_t c = 0;
        for (; c + lanes <= channels; c += lanes) vector_at(c);
        if (c < channels && channels >= lanes) {
            vector_at(channels - lanes);
            continue;
        }
        for (; c < channels; ++c)
            out[c] =
                rounded(rows.lower[left + c] * weights[0] + rows.lower[right + c] * weights[1] +
                        rows.upper[left + c] * weights[2] + rows.upper[right + c] * weights[3]);
    }
}

void mix_row_u8(const float* lower, const float* upper, const FloatSample& row,
                const FloatSample* columns, std::size_t column_count, std::size_t channels,
                std::uint8_t* out) {
    mix_row<float>({lower, upper}, 1, row, columns, column_count, channels, out);
}
void mix_row_i8(const std::int32_t* lower, const std::int32_t* upper, const FixedSample& row,
                const FixedSample* columns, std::size_t column_count, std::size_t channels,
                std::int8_t* out) {
    mix_row<std::int32_t>({lower, upper}, 1 << 10, row, columns, column_count, channels, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(mix_row_u8);
HWY_EXPORT(mix_row_i8);

void mix_row_fast(const float* lower, const float* upper, const FloatSample& row,
                  const std::vector<FloatSample>& columns, std::size_t channels,
                  std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(mix_row_u8)
    (lower, upper, row, columns.data(), columns.size(), channels, out);
}
void mix_row_fast(const std::int32_t* lower, const std::int32_t* upper, const FixedSample& row,
                  const std::vector<FixedSample>& columns, std::size_t channels, std::int8_t* out) {
    HWY_DYNAMIC_DISPATCH(mix_row_i8)
    (lower, upper, row, columns.data(), columns.size(), channels, out);
}

template <typename T, typename Lane, typename Sample>
class FastResize final : public Kernel {
  public:
    FastResize(const ResizeShape& shape, std::vector<Sample> rows, std::vector<Sample> columns,
               int threads)
        : shape_(shape),
          rows_(std::move(rows)),
          columns_(std::move(columns)),
          threads_(static_cast<std::size_t>(threads)) {}

    [[nodiscard]] std::string name() const override {
        return "resize_bilinear fast " + std::string(simd_target());
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return threads_ * 2 * row_length() * sizeof(Lane);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        auto* scratch = reinterpret_cast<Lane*>(frame.scratch.data());
        frame.pool.parallel_for(static_cast<std::size_t>(shape_.batches) * rows_.size(), 4,
                                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                    resize_rows(frame.in<T>(0), frame.out<T>(0), begin, end,
                                                scratch + worker * 2 * row_length());
                                });
        return {};
    }

  private:
    [[nodiscard]] std::size_t row_length() const {
        return static_cast<std::size_t>(shape_.input_width) *
               static_cast<std::size_t>(shape_.channels);
    }

    /// Output rows [begin, end) over all batches. Neighbouring output rows often lie between the
    /// same input rows, which are widened once.
    void resize_rows(const T* in, T* out, std::size_t begin, std::size_t end, Lane* wide) const {
        const std::size_t length = row_length();
        const auto channels = static_cast<std::size_t>(shape_.channels);
        Lane* const halves[2] = {wide, wide + length};
        const T* held[2] = {nullptr, nullptr};
        for (std::size_t i = begin; i < end; ++i) {
            const Sample& row = rows_[i % rows_.size()];
            const T* image =
                in + i / rows_.size() * static_cast<std::size_t>(shape_.input_height) * length;
            const T* needed[2] = {image + static_cast<std::size_t>(row.lower) * length,
                                  image + static_cast<std::size_t>(row.upper) * length};
            for (std::size_t k = 0; k < 2; ++k) {
                if (held[k] == needed[k]) continue;
                std::copy_n(needed[k], length, halves[k]);
                held[k] = needed[k];
            }
            mix_row_fast(halves[0], halves[1], row, columns_, channels,
                         out + i * columns_.size() * channels);
        }
    }

    ResizeShape shape_;
    std::vector<Sample> rows_, columns_;
    std::size_t threads_;
};

}  // namespace

std::unique_ptr<Kernel> fast_resize_bilinear(const ResizeShape& shape,
                                             std::vector<FloatSample> rows,
                                             std::vector<FloatSample> columns, int threads) {
    return std::make_unique<FastResize<std::uint8_t, float, FloatSample>>(
        shape, std::move(rows), std::move(columns), threads);
}

std::unique_ptr<Kernel> fast_resize_bilinear(const ResizeShape& shape,
                                             std::vector<FixedSample> rows,
                                             std::vector<FixedSample> columns, int threads) {
    return std::make_unique<FastResize<std::int8_t, std::int32_t, FixedSample>>(
        shape, std::move(rows), std::move(columns), threads);
}

}  // namespace reef::cpu
#endif

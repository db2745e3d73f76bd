// RESIZE_BILINEAR of bytes: every input row is blended along its columns once for all output rows
// that lie beside it, which are mixed from two such rows; where pixels are whole pieces of 8 bytes,
// once for some of these, and no blended row is kept.
#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/resize_bilinear.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "base/worker_pool.h"
#include "cpu/fast/blended_row.h"
#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/resize_rounding-inl.h"
#include "cpu/fast/row_pieces.h"
#include "cpu/fast/row_taps-inl.h"
#include "cpu/prepare/resizing.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V blended(D d, V from, V to, V fraction, int bits) {
    (void)d;
    const V far = hn::Mul(hn::Sub(to, from), fraction);
    if constexpr (hwy::IsFloat<hn::TFromD<D>>())
        return hn::Add(from, far);
    else
        return hn::Add(hn::ShiftLeftSame(from, bits), far);
}

template <class D, typename Blend>
HWY_INLINE void store_blended(D d, hn::Vec<D> v, Blend* HWY_RESTRICT out) {
    if constexpr (sizeof(Blend) == sizeof(hn::TFromD<D>))
        hn::StoreU(v, d, out);
    else
        hn::StoreU(hn::DemoteTo(hn::Rebind<Blend, D>(), v), hn::Rebind<Blend, D>(), out);
}

template <class D, typename T>
HWY_INLINE hn::Vec<D> widened(D d, const T* HWY_RESTRICT in) {
    const auto v = hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(hn::Rebind<T, D>(), in));
    if constexpr (hwy::IsFloat<hn::TFromD<D>>())
        return hn::ConvertTo(d, v);
    else
        return v;
}

/// Pixels of a vector of 32-bit lanes and more. Blends of 16 bits need no wider lanes: fractions
/// have 7 bits there, so that a difference of bytes times one, and the sum, have 15 and a sign.
template <typename Lane, typename T, typename Sample, typename Blend>
HWY_INLINE void blend_pixels(const T* HWY_RESTRICT in, const BlendedRow<Sample, Lane>& blend,
                             Blend* HWY_RESTRICT out) {
    const std::size_t channels = blend.row.channels;
    for (const Sample& column : blend.columns) {
        const T* left = in + static_cast<std::size_t>(column.lower) * channels;
        const T* right = in + static_cast<std::size_t>(column.upper) * channels;
        each_channel_vector<Blend>(channels, [&](auto d, std::size_t c) HWY_ATTR {
            const auto fraction = hn::Set(d, static_cast<Blend>(column.fraction));
            hn::StoreU(
                blended(d, widened(d, left + c), widened(d, right + c), fraction, blend.bits), d,
                out + c);
        });
        out += channels;
    }
}

/// `wide`: of an input row's length.
template <typename Lane, typename T, typename Sample, typename Blend>
HWY_INLINE void blend_row(const T* HWY_RESTRICT in, const BlendedRow<Sample, Lane>& blend,
                          Lane* HWY_RESTRICT wide, Blend* HWY_RESTRICT out) {
    if (!blend.fractions) return blend_pixels(in, blend, out);
    const hn::ScalableTag<Lane> d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= blend.row.length; i += lanes) hn::StoreU(widened(d, in + i), d, wide + i);
    for (; i < blend.row.length; ++i) wide[i] = static_cast<Lane>(in[i]);
    each_tapped_pair(
        d, wide, blend.left, blend.right, blend.length(),
        [&](std::size_t at, hn::Vec<decltype(d)> left, hn::Vec<decltype(d)> right) HWY_ATTR {
            const auto fraction = hn::Load(d, blend.fractions.get() + at);
            store_blended(d, blended(d, left, right, fraction, blend.bits), out + at);
        });
}

/// store(i, to) writes a vector's results of an output row's elements from i on.
template <typename T, class D, class Store>
HWY_INLINE void each_result(D d, std::size_t count, T* HWY_RESTRICT out, const Store& store) {
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) store(i, out + i);
    if (i == count) return;
    T last[HWY_MAX_BYTES];
    store(i, last);
    std::copy_n(last, count - i, out + i);
}

template <typename T>
HWY_INLINE void mix_narrow(const RowPair<std::int16_t>& rows, std::size_t count,
                           T* HWY_RESTRICT out) {
    const hn::ScalableTag<std::int16_t> d;
    const hn::Rebind<T, decltype(d)> d8;
    const auto above = hn::Set(d, static_cast<std::int16_t>((1 << rows.bits) - rows.fraction)),
               below = hn::Set(d, static_cast<std::int16_t>(rows.fraction));
    each_result(d, count, out, [&](std::size_t i, T* to) HWY_ATTR {
        const auto sum = hn::Add(hn::Mul(hn::Load(d, rows.lower + i), above),
                                 hn::Mul(hn::Load(d, rows.upper + i), below));
        hn::StoreU(hn::DemoteTo(d8, narrow_rounded(d, sum, T{})), d8, to);
    });
}

}  // namespace

void blend_narrow_u8(const std::uint8_t* in, const BlendedRow<FixedSample, std::int32_t>& blend,
                     std::int32_t* wide, std::int16_t* out) {
    blend_row(in, blend, wide, out);
}
void blend_narrow_i8(const std::int8_t* in, const BlendedRow<FixedSample, std::int32_t>& blend,
                     std::int32_t* wide, std::int16_t* out) {
    blend_row(in, blend, wide, out);
}
void blend_i8(const std::int8_t* in, const BlendedRow<FixedSample, std::int32_t>& blend,
              std::int32_t* wide, std::int32_t* out) {
    blend_row(in, blend, wide, out);
}
void blend_u8(const std::uint8_t* in, const BlendedRow<FloatSample, float>& blend, float* wide,
              float* out) {
    blend_row(in, blend, wide, out);
}

void mix_narrow_u8(const RowPair<std::int16_t>& rows, std::size_t count, std::uint8_t* out) {
    mix_narrow(rows, count, out);
}
void mix_narrow_i8(const RowPair<std::int16_t>& rows, std::size_t count, std::int8_t* out) {
    mix_narrow(rows, count, out);
}
void mix_i8(const RowPair<std::int32_t>& rows, std::size_t count, std::int8_t* out) {
    const hn::ScalableTag<std::int32_t> d;
    const hn::Rebind<std::int8_t, decltype(d)> d8;
    const auto below = hn::Set(d, rows.fraction);
    each_result(d, count, out, [&](std::size_t i, std::int8_t* to) HWY_ATTR {
        const auto sum =
            blended(d, hn::Load(d, rows.lower + i), hn::Load(d, rows.upper + i), below, rows.bits);
        hn::StoreU(hn::DemoteTo(d8, rounded<20>(d, sum)), d8, to);
    });
}

/// The four products are added in another order than the reference's: where the two could lie on
/// both sides of the middle between bytes, the plain row is asked. Each of the reference's terms is
/// rounded eight times at most, by 2^-24 of itself, and their absolute values sum up to 255: 510 or
/// 1020 where one or both fractions are negative, down to -1/2 of no difference. Here nine such
/// roundings of 255 come together, two or none where fractions are of no difference. Both are apart
/// by less than 32 * 256 * 2^-24.
void mix_u8(const RowPair<float>& rows, const PlainRow& plain, std::size_t count,
            std::uint8_t* out) {
    const hn::ScalableTag<float> d;
    const hn::RebindToSigned<decltype(d)> d32;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    // Added to it, a small number is rounded into the lowest bits.
    const auto rounder = hn::Set(d, 0x1.8p23F), sure = hn::Set(d, 0.5F - 0x1p-11F);
    const auto below = hn::Set(d, rows.fraction);
    each_result(d, count, out, [&](std::size_t i, std::uint8_t* to) HWY_ATTR {
        const auto sum =
            blended(d, hn::Load(d, rows.lower + i), hn::Load(d, rows.upper + i), below, 0);
        const auto whole = hn::Add(sum, rounder);
        const auto distance = hn::Abs(hn::Sub(sum, hn::Sub(whole, rounder)));
        const auto byte = hn::And(hn::BitCast(d32, whole), hn::Set(d32, 0xFF));
        hn::StoreU(hn::DemoteTo(d8, byte), d8, to);
        const auto doubtful = hn::Gt(distance, sure);
        if (HWY_LIKELY(hn::AllFalse(d, doubtful))) return;
        std::uint8_t bytes[8] = {};
        hn::StoreMaskBits(d, doubtful, bytes);
        for (auto bits = std::bit_cast<std::uint64_t>(bytes); bits != 0; bits &= bits - 1) {
            const auto lane = static_cast<std::size_t>(std::countr_zero(bits));
            if (i + lane < count) to[lane] = plain[i + lane];
        }
    });
}

std::size_t resize_lanes() {
    return hn::Lanes(hn::ScalableTag<float>());
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(blend_narrow_u8);
HWY_EXPORT(blend_narrow_i8);
HWY_EXPORT(blend_i8);
HWY_EXPORT(blend_u8);
HWY_EXPORT(mix_narrow_u8);
HWY_EXPORT(mix_narrow_i8);
HWY_EXPORT(mix_i8);
HWY_EXPORT(mix_u8);
HWY_EXPORT(resize_lanes);

using FixedBlend = BlendedRow<FixedSample, std::int32_t>;
using FloatBlend = BlendedRow<FloatSample, float>;

/// Scratch of blend_fast().
template <typename Sample, typename Lane>
std::size_t wide_bytes(const BlendedRow<Sample, Lane>& blend) {
    return blend.fractions ? hwy::RoundUpTo(blend.row.length, row_multiple) * sizeof(Lane) : 0;
}

void blend_fast(const std::uint8_t* in, const FixedBlend& row, std::byte* wide, std::int16_t* out) {
    HWY_DYNAMIC_DISPATCH(blend_narrow_u8)
    (in, row, reinterpret_cast<std::int32_t*>(wide), out);
}
void blend_fast(const std::int8_t* in, const FixedBlend& row, std::byte* wide, std::int16_t* out) {
    HWY_DYNAMIC_DISPATCH(blend_narrow_i8)
    (in, row, reinterpret_cast<std::int32_t*>(wide), out);
}
void blend_fast(const std::int8_t* in, const FixedBlend& row, std::byte* wide, std::int32_t* out) {
    HWY_DYNAMIC_DISPATCH(blend_i8)(in, row, reinterpret_cast<std::int32_t*>(wide), out);
}
void blend_fast(const std::uint8_t* in, const FloatBlend& row, std::byte* wide, float* out) {
    HWY_DYNAMIC_DISPATCH(blend_u8)(in, row, reinterpret_cast<float*>(wide), out);
}
void mix_fast(const RowPair<std::int16_t>& rows, std::size_t count, std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(mix_narrow_u8)(rows, count, out);
}
void mix_fast(const RowPair<std::int16_t>& rows, std::size_t count, std::int8_t* out) {
    HWY_DYNAMIC_DISPATCH(mix_narrow_i8)(rows, count, out);
}
void mix_fast(const RowPair<std::int32_t>& rows, std::size_t count, std::int8_t* out) {
    HWY_DYNAMIC_DISPATCH(mix_i8)(rows, count, out);
}

/// Output rows of so many elements, several: neighbours share an input row's blends.
constexpr std::size_t rows_worth_a_thread(std::size_t length) {
    constexpr std::size_t elements = 1 << 13, shared_rows = 4;
    return elements / length + shared_rows;
}

/// Blended rows hold `Blend`; `Row` says how they come from the input's.
template <typename T, typename Row, typename Blend>
class FastResize final : public Kernel {
  public:
    using Sample = std::conditional_t<std::is_same_v<Blend, float>, FloatSample, FixedSample>;

    FastResize(const ResizeShape& shape, std::vector<Sample> rows, int row_bits, Row blend,
               int threads)
        : batches_(static_cast<std::size_t>(shape.batches)),
          input_height_(static_cast<std::size_t>(shape.input_height)),
          row_bits_(row_bits),
          rows_(std::move(rows)),
          blend_(std::move(blend)),
          blended_length_(hwy::RoundUpTo(blend_.length(), row_multiple)),
          threads_(static_cast<std::size_t>(threads)) {}

    [[nodiscard]] std::string name() const override {
        return "resize_bilinear fast " + std::string(simd_target());
    }
    [[nodiscard]] std::size_t scratch_bytes() const override { return threads_ * worker_bytes(); }

    [[nodiscard]] Status run(const Frame& frame) override {
        if (blend_.length() == 0) return {};
        frame.pool.parallel_for(batches_ * rows_.size(), rows_worth_a_thread(blend_.length()),
                                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                    resize_rows(frame, begin, end,
                                                frame.scratch.data() + worker * worker_bytes());
                                });
        return {};
    }

  private:
    [[nodiscard]] std::size_t worker_bytes() const {
        return 2 * blended_length_ * sizeof(Blend) + wide_bytes(blend_);
    }

    /// Output rows [begin, end) over all batches.
    void resize_rows(const Frame& frame, std::size_t begin, std::size_t end,
                     std::byte* scratch) const {
        Blend* blended[2] = {reinterpret_cast<Blend*>(scratch),
                             reinterpret_cast<Blend*>(scratch) + blended_length_};
        std::byte* const wide = scratch + 2 * blended_length_ * sizeof(Blend);
        const T* held[2] = {nullptr, nullptr};
        for (std::size_t i = begin; i < end; ++i) {
            const Sample& row = rows_[i % rows_.size()];
            const T* image = frame.in<T>(0) + i / rows_.size() * input_height_ * blend_.row.length;
            const T* needed[2] = {image + static_cast<std::size_t>(row.lower) * blend_.row.length,
                                  image + static_cast<std::size_t>(row.upper) * blend_.row.length};
            if (held[1] == needed[0] && held[0] != needed[0]) {
                std::swap(held[0], held[1]);
                std::swap(blended[0], blended[1]);
            }
            // An output row on an input row, or beside the border, is between that one and itself.
            const bool is_one = needed[0] == needed[1];
            for (std::size_t k = 0; k < (is_one ? 1 : 2); ++k) {
                if (held[k] == needed[k]) continue;
                blend_fast(needed[k], blend_, wide, blended[k]);
                held[k] = needed[k];
            }
            const RowPair<Blend> pair{blended[0], blended[is_one ? 0 : 1], row.fraction, row_bits_};
            T* out = frame.out<T>(0) + i * blend_.length();
            if constexpr (std::is_same_v<Blend, float>) HWY_DYNAMIC_DISPATCH(mix_u8)
            (pair, {needed[0], needed[1], row.fraction, blend_}, blend_.length(), out);
            else mix_fast(pair, blend_.length(), out);
        }
    }

    std::size_t batches_, input_height_;
    int row_bits_;
    std::vector<Sample> rows_;
    Row blend_;
    std::size_t blended_length_, threads_;
};

/// Of pixels that are whole pieces; no blended row is kept.
template <typename T>
class PieceResize final : public Kernel {
  public:
    PieceResize(const ResizeShape& shape, std::vector<FixedSample> rows, int row_bits,
                RowOfPieces row)
        : batches_(static_cast<std::size_t>(shape.batches)),
          input_height_(static_cast<std::size_t>(shape.input_height)),
          row_bits_(row_bits),
          rows_(std::move(rows)),
          row_(std::move(row)),
          most_rows_(batches_ * rows_.size() * row_.length() <= most_cached_output_bytes
                         ? most_rows_of_pieces
                         : most_rows_in_memory) {}

    [[nodiscard]] std::string name() const override {
        return "resize_bilinear fast " + std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        if (row_.length() == 0) return {};
        frame.pool.parallel_for(batches_ * rows_.size(), rows_worth_a_thread(row_.length()),
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    while (begin < end) begin += resize_some(frame, begin, end);
                                });
        return {};
    }

  private:
    /// Of the output rows [begin, end) over all batches, the first ones; how many.
    [[nodiscard]] std::size_t resize_some(const Frame& frame, std::size_t begin,
                                          std::size_t end) const {
        const std::size_t first = begin % rows_.size();
        const std::size_t count = std::min({most_rows_, end - begin, rows_.size() - first});
        resize_pieces(
            {.image = frame.in<T>(0) + begin / rows_.size() * input_height_ * row_.row.length,
             .rows = &rows_[first],
             .count = count,
             .bits = row_bits_,
             .out = frame.out<T>(0) + begin * row_.length()},
            row_);
        return count;
    }

    std::size_t batches_, input_height_;
    int row_bits_;
    std::vector<FixedSample> rows_;
    RowOfPieces row_;
    std::size_t most_rows_;  ///< that are computed side by side
};

constexpr int narrow_bits = 8;

/// In units of 2^-8; nothing where it is between two of them.
std::optional<std::int32_t> in_narrow_bits(const FloatSample& sample) {
    const float units = sample.fraction * (1 << narrow_bits);
    if (units != std::floor(units)) return std::nullopt;
    return static_cast<std::int32_t>(units);
}
std::optional<std::int32_t> in_narrow_bits(const FixedSample& sample) {
    constexpr std::int32_t unit = 1 << (10 - narrow_bits);
    // Integers are exact whatever fraction they have of nothing.
    if (sample.lower == sample.upper) return 0;
    if (sample.fraction % unit != 0) return std::nullopt;
    return sample.fraction / unit;
}

/// Fractions in units of 2^-8, and how many of those bits they need. Between equal elements (at a
/// border) any fraction is as good as 0 in integers; float32 sums are exact with such fractions
/// alone, so that those at borders have to be, too.
template <typename Sample>
std::optional<int> narrow_axis(const std::vector<Sample>& samples,
                               std::vector<FixedSample>& result) {
    std::uint32_t all = 1 << narrow_bits;
    for (const Sample& sample : samples) {
        const auto units = in_narrow_bits(sample);
        if (!units) return std::nullopt;
        all |= static_cast<std::uint32_t>(*units);
        result.push_back({sample.lower, sample.upper, sample.lower == sample.upper ? 0 : *units});
    }
    return narrow_bits - std::countr_zero(all);
}

/// Where both have so many bits, columns have `most_column_bits`, or as near to that as may be.
template <typename Sample>
std::optional<NarrowSamples> narrow_samples(const std::vector<Sample>& rows,
                                            const std::vector<Sample>& columns,
                                            int most_column_bits) {
    NarrowSamples narrow;
    const auto row_bits = narrow_axis(rows, narrow.rows);
    const auto column_bits = narrow_axis(columns, narrow.columns);
    // Blended rows are of 15 bits and a sign.
    if (!row_bits || !column_bits || *row_bits + *column_bits > narrow_bits ||
        *column_bits == narrow_bits)
        return std::nullopt;
    narrow.column_bits = std::clamp(most_column_bits, *column_bits, narrow_bits - *row_bits);
    narrow.row_bits = narrow_bits - narrow.column_bits;
    for (FixedSample& row : narrow.rows) row.fraction >>= narrow_bits - narrow.row_bits;
    for (FixedSample& column : narrow.columns) column.fraction >>= narrow_bits - narrow.column_bits;
    return narrow;
}

RowOfPixels row_of(const ResizeShape& shape) {
    const auto channels = static_cast<std::size_t>(shape.channels);
    return {.channels = channels, .length = static_cast<std::size_t>(shape.input_width) * channels};
}

template <typename T, typename Blend, typename Lane, typename Sample>
std::unique_ptr<Kernel> resize_by_lanes(const ResizeShape& shape, std::vector<Sample> rows,
                                        int row_bits, std::vector<Sample> columns, int column_bits,
                                        int threads) {
    using Row = BlendedRow<Sample, Lane>;
    return std::make_unique<FastResize<T, Row, Blend>>(
        shape, std::move(rows), row_bits,
        blended_row<Lane>(std::move(columns), row_of(shape), column_bits,
                          HWY_DYNAMIC_DISPATCH(resize_lanes)()),
        threads);
}

/// None where fractions have too many bits.
template <typename T, typename Sample>
std::unique_ptr<Kernel> narrow_resize(const ResizeShape& shape, const std::vector<Sample>& rows,
                                      const std::vector<Sample>& columns, int threads) {
    constexpr int most_bits =
        std::is_signed_v<T> ? RowOfPieces::most_bits_of_int8 : RowOfPieces::most_bits_of_uint8;
    auto samples = narrow_samples(rows, columns, most_bits);
    if (!samples) return nullptr;
    const RowOfPixels row = row_of(shape);
    if (has_row_pieces() && row.channels > 0 && row.channels % RowOfPieces::piece == 0 &&
        samples->column_bits <= most_bits)
        return std::make_unique<PieceResize<T>>(
            shape, std::move(samples->rows), samples->row_bits,
            row_of_pieces(samples->columns, row, samples->column_bits));
    return resize_by_lanes<T, std::int16_t, std::int32_t>(
        shape, std::move(samples->rows), samples->row_bits, std::move(samples->columns),
        samples->column_bits, threads);
}

}  // namespace

std::unique_ptr<Kernel> fast_resize_bilinear(const ResizeShape& shape,
                                             std::vector<FloatSample> rows,
                                             std::vector<FloatSample> columns, int threads) {
    apply_simd_choice();
    if (auto narrow = narrow_resize<std::uint8_t>(shape, rows, columns, threads)) return narrow;
    return resize_by_lanes<std::uint8_t, float, float>(shape, std::move(rows), 0,
                                                       std::move(columns), 0, threads);
}

std::unique_ptr<Kernel> fast_resize_bilinear(const ResizeShape& shape,
                                             std::vector<FixedSample> rows,
                                             std::vector<FixedSample> columns, int threads) {
    constexpr int bits = 10;
    apply_simd_choice();
    if (auto narrow = narrow_resize<std::int8_t>(shape, rows, columns, threads)) return narrow;
    return resize_by_lanes<std::int8_t, std::int32_t, std::int32_t>(
        shape, std::move(rows), bits, std::move(columns), bits, threads);
}

}  // namespace reef::cpu
#endif

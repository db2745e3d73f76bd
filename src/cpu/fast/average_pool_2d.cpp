#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/average_pool_2d.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/sums_of_products-inl.h"
#include "base/worker_pool.h"
#include "cpu/fast/byte_sums-inl.h"
#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/few_channels-inl.h"
#include "cpu/fast/pixel_rows.h"
#include "cpu/prepare/pooling.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {

using ByteLimits = Limits<std::uint8_t>;

/// Where an output row's windows begin, and how many rows they have.
template <typename T>
struct WindowRow {
    const T* first = nullptr;  ///< the first of those rows
    std::size_t rows = 0;
    std::size_t pitch = 0, channels = 0;  ///< elements

    WindowRow(const Pooling& p, const T* in, std::int32_t out_y)
        : pitch(static_cast<std::size_t>(p.x.input) * static_cast<std::size_t>(p.channels)),
          channels(static_cast<std::size_t>(p.channels)) {
        const Extent extent = p.y.window(out_y);
        first = in + static_cast<std::size_t>(extent.begin) * pitch;
        rows = static_cast<std::size_t>(extent.size());
    }
    [[nodiscard]] const T* pixel(std::int32_t x) const {
        return first + static_cast<std::size_t>(x) * channels;
    }
    [[nodiscard]] Window window(std::int32_t columns) const {
        return {rows, static_cast<std::size_t>(columns), pitch, channels};
    }
};

template <typename T>
ByteLimits limits_from_least(const Pooling& p) {
    return {static_cast<std::uint8_t>(p.clamp.min - least_value<T>),
            static_cast<std::uint8_t>(p.clamp.max - least_value<T>)};
}

template <typename T, class D, class D16>
HWY_INLINE void store_means(D d, D16 d16, const PairSums<D16>& sums,
                            const RoundedMean<T, D16>& mean, ByteLimits limits, T* out) {
    const auto bytes = bytes_of(d16, PairSums<D16>{mean(sums.even), mean(sums.odd)});
    store_from_least(d, hn::Min(hn::Max(bytes, hn::Set(d, limits.min)), hn::Set(d, limits.max)),
                     out);
}

/// The mean of kVectors vectors of one window's channels.
template <std::size_t kVectors, typename T, class D>
HWY_INLINE void average_vectors(D d, const T* in, const Window& window, const ByteMean& mean,
                                ByteLimits limits, T* out) {
    using D16 = hn::Repartition<std::uint16_t, D>;
    PairSums<D16> sums[kVectors];
    sum_pairs(d, in, window, sums);
    const RoundedMean<T, D16> rounded(D16(), mean);
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
        store_means(d, D16(), sums[v], rounded, limits, out + v * hn::Lanes(d));
}

/// Window by window, of at least least_byte_lanes channels.
template <typename T>
void average_each(const Pooling& p, const ByteMean* means, const WindowRow<T>& row, T* out) {
    const ByteLimits limits = limits_from_least<T>(p);
    const auto channels = row.channels;
    for (std::int32_t x = 0; x < p.x.output; ++x, out += channels) {
        const Extent columns = p.x.window(x);
        const Window window = row.window(columns.size());
        const T* in = row.pixel(columns.begin);
        const ByteMean mean = means[window.rows * window.columns];
        each_channel_vectors<std::uint8_t, 4>(
            channels, [&](auto d, std::size_t c, auto vectors) HWY_ATTR {
                if constexpr (hn::MaxLanes(d) >= least_byte_lanes)
                    average_vectors<vectors()>(d, in + c, window, mean, limits, out + c);
            });
    }
}

/// Bytes of any target's vectors.
constexpr std::size_t widest_vector = 64;
static_assert(hn::MaxLanes(hn::ScalableTag<std::uint8_t>()) <= widest_vector);

/// Sums of SlidingSums.
inline std::size_t sliding_sums(std::int32_t width, std::size_t channels) {
    return (static_cast<std::size_t>(width) + 1) * (channels + widest_vector);
}

/// For windows that overlap: of each vector of channels the sum over the last columns of pixels, as
/// many as a window has, and those columns' own sums in turn. A column outside the input is 0.
/// Pixels are read as they lie.
template <typename T>
class SlidingSums {
  public:
    SlidingSums(const WindowRow<T>& row, std::int32_t width, std::uint16_t* sums)
        : row_(row),
          width_(static_cast<std::size_t>(width)),
          // The last vector may have channels of the one before.
          pitch_(row.channels + widest_vector),
          sums_(sums) {
        std::fill_n(sums, sliding_sums(width, row.channels), std::uint16_t{0});
    }

    /// Behind the one that came before; `use(d, c, sum)` for each vector of channels.
    template <class Use>
    HWY_INLINE void enter(std::int32_t column, bool is_inside, const Use& use) {
        const std::size_t rows = is_inside ? row_.rows : 0;
        const T* pixel = is_inside ? row_.pixel(column) : row_.first;
        std::uint16_t *sum = sums_, *own = sums_ + (next_ + 1) * pitch_;
        next_ = next_ + 1 == width_ ? 0 : next_ + 1;
        each_channel_vector<std::uint8_t>(row_.channels, [&](auto d, std::size_t c) HWY_ATTR {
            if constexpr (hn::MaxLanes(d) >= least_byte_lanes) {
                using D16 = hn::Repartition<std::uint16_t, decltype(d)>;
                const D16 d16;
                const std::size_t lanes = hn::Lanes(d16);
                PairSums<D16> own_sum[1];
                sum_pairs(d, pixel + c, Window{rows, 1, row_.pitch, row_.channels}, own_sum);
                const auto moved = [&](std::size_t at, auto entering) HWY_ATTR {
                    const auto left = hn::Sub(hn::LoadU(d16, sum + at), hn::LoadU(d16, own + at));
                    const auto all = hn::Add(left, entering);
                    hn::StoreU(entering, d16, own + at);
                    hn::StoreU(all, d16, sum + at);
                    return all;
                };
                const auto even = moved(0, own_sum[0].even), odd = moved(lanes, own_sum[0].odd);
                use(d, c, PairSums<D16>(even, odd));
                sum += 2 * lanes;
                own += 2 * lanes;
            }
        });
    }

  private:
    const WindowRow<T>& row_;
    std::size_t width_, pitch_, next_ = 0;
    std::uint16_t* sums_;  ///< over all columns, then those of each column
};

template <typename T>
void average_sliding(const Pooling& p, const ByteMean* means, const WindowRow<T>& row,
                     std::uint16_t* sums, T* out) {
    SlidingSums<T> sliding(row, p.x.filter, sums);
    const ByteLimits limits = limits_from_least<T>(p);
    std::int32_t column = 0;
    for (std::int32_t x = 0; x < p.x.output; ++x, out += row.channels) {
        const std::int32_t last = x * p.x.stride - p.x.padding + p.x.filter - 1;
        for (; column < last; ++column)
            sliding.enter(column, column < p.x.input, [](auto, std::size_t, const auto&) {});
        const auto pixels = row.rows * static_cast<std::size_t>(p.x.window(x).size());
        sliding.enter(column, column < p.x.input,
                      [&](auto d, std::size_t c, const auto& sum) HWY_ATTR {
                          using D16 = hn::Repartition<std::uint16_t, decltype(d)>;
                          const RoundedMean<T, D16> mean(D16(), means[pixels]);
                          store_means(d, D16(), sum, mean, limits, out + c);
                      });
        ++column;
    }
}

/// Fewer channels than least_byte_lanes have vectors by columns alone; of others windows that are
/// long and overlap had better keep their sums.
inline FewChannels few_channels_of_means(const Pooling& p) {
    constexpr std::int32_t longest = 16;
    if (p.channels < static_cast<std::int32_t>(least_byte_lanes)) return FewChannels::by_columns;
    const FewChannels few = few_channels_of(p);
    return few == FewChannels::by_columns && p.x.filter > longest ? FewChannels::no : few;
}

/// A row's means, of sums in kVectors vectors of 8.
template <std::size_t kVectors, typename T>
class MeansInTurn {
  public:
    using D = hn::CappedTag<std::uint16_t, 8>;
    using Sums = hn::Vec<D>[kVectors];

    HWY_INLINE MeansInTurn(const Pooling& p, const ByteMean* means, const WindowRow<T>& row, T* out)
        : means_(means),
          rows_(row.rows),
          limits_(limits_from_least<T>(p)),
          of_whole_(D(), mean_of(std::min(p.x.filter, p.x.input))),
          pixels_(out, static_cast<std::size_t>(p.x.output), row.channels) {}

    /// Of the next window, which has so many columns.
    template <bool kIsWhole>
    HWY_INLINE void put(std::int32_t columns, std::bool_constant<kIsWhole> /*is_whole*/,
                        const Sums& sums) {
        if constexpr (kIsWhole)
            store(of_whole_, sums);
        else
            store(RoundedMean<T, D>(D(), mean_of(columns)), sums);
    }

  private:
    [[nodiscard]] const ByteMean& mean_of(std::int32_t columns) const {
        return means_[rows_ * static_cast<std::size_t>(columns)];
    }
    HWY_INLINE void store(const RoundedMean<T, D>& mean, const Sums& sums) {
        const hn::Rebind<std::uint8_t, D> d8;
        const hn::RebindToSigned<D> d16;
        const auto least = hn::Set(D(), limits_.min), most = hn::Set(D(), limits_.max);
        pixels_.put([&](T* to) HWY_ATTR {
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
                const auto value = hn::Min(hn::Max(mean(sums[v]), least), most);
                store_from_least(d8, hn::DemoteTo(d8, hn::BitCast(d16, value)),
                                 to + v * hn::Lanes(D()));
            }
        });
    }

    const ByteMean* means_;
    std::size_t rows_;
    ByteLimits limits_;
    RoundedMean<T, D> of_whole_;
    PixelsInTurn<T> pixels_;
};

/// Sums over a row of windows, of `count` elements.
template <typename T>
HWY_INLINE void sum_columns(const WindowRow<T>& row, const T* HWY_RESTRICT first, std::size_t count,
                            std::uint16_t* HWY_RESTRICT columns) {
    each_channel_vector<std::uint16_t>(count, [&](auto d, std::size_t i) HWY_ATTR {
        const hn::Rebind<std::uint8_t, decltype(d)> d8;
        auto sum = hn::Zero(d);
        for (std::size_t y = 0; y < row.rows; ++y)
            sum = hn::Add(sum, hn::PromoteTo(d, load_from_least(d8, first + y * row.pitch + i)));
        hn::StoreU(sum, d, columns + i);
    });
}

/// Of at most kVectors times 8 channels. `columns`: few_channels_scratch().
template <std::size_t kVectors, typename T>
void average_by_columns(const Pooling& p, const ByteMean* means, const WindowRow<T>& row,
                        std::uint16_t* columns, T* out) {
    using Means = MeansInTurn<kVectors, T>;
    const typename Means::D d;
    Means in_turn(p, means, row, out);
    const auto sums_of = [&](Extent pixels) HWY_ATTR {
        sum_columns(row, row.pixel(pixels.begin),
                    static_cast<std::size_t>(pixels.size()) * row.channels, columns);
    };
    each_window(p.x, sums_of, [&](Extent window, auto is_whole) HWY_ATTR {
        const std::uint16_t* pixel =
            columns + static_cast<std::size_t>(window.begin) * row.channels;
        typename Means::Sums sums;
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
            hn::LoadU(d, pixel + v * hn::Lanes(d));
        for (std::int32_t x = 1; x < window.size(); ++x) {
            pixel += row.channels;
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
                hn::Add(sums[v], hn::LoadU(d, pixel + v * hn::Lanes(d)));
        }
        in_turn.put(window.size(), is_whole, sums);
    });
}

/// Of kVectors times 8 channels.
template <std::size_t kVectors, typename T>
void average_by_pixels(const Pooling& p, const ByteMean* means, const WindowRow<T>& row, T* out) {
    using Means = MeansInTurn<kVectors, T>;
    const typename Means::D d;
    const hn::Rebind<std::uint8_t, typename Means::D> d8;
    Means in_turn(p, means, row, out);
    const T* HWY_RESTRICT first = row.first;
    const auto begin = [&](Extent pixels) { first = row.pixel(pixels.begin); };
    each_window(p.x, begin, [&](Extent window, auto is_whole) HWY_ATTR {
        typename Means::Sums sums;
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
        const T* HWY_RESTRICT corner =
            first + static_cast<std::size_t>(window.begin) * row.channels;
        each_pixel(row.rows, static_cast<std::size_t>(window.size()),
                   [&](std::size_t y, std::size_t x) HWY_ATTR {
                       const T* pixel = corner + y * row.pitch + x * row.channels;
                       REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
                           const auto elements = load_from_least(d8, pixel + v * hn::Lanes(d));
                           sums[v] = hn::Add(sums[v], hn::PromoteTo(d, elements));
                       }
                   });
        in_turn.put(window.size(), is_whole, sums);
    });
}

#if HWY_TARGET == HWY_SCALAR

template <typename T>
bool average_pairs(const Pooling& /*p*/, const ByteMean* /*means*/, const WindowRow<T>& /*row*/,
                   T* /*out*/) {
    return false;
}

#else

/// Windows of two columns and 8 channels beside each other, all of whose columns lie inside the
/// input: 16 bytes of a row of theirs are a block, whose pixels' bytes are added in pairs. False
/// where there are others, or fewer than fill a vector.
template <typename T>
bool average_pairs(const Pooling& p, const ByteMean* means, const WindowRow<T>& row, T* out) {
    using D16 = hn::RebindToUnsigned<WordTag>;
    const ByteTag d8;
    const D16 d16;
    constexpr std::size_t channels = 8, block = 2 * channels;
    const std::size_t at_once = hn::Lanes(d8) / channels;
    const auto windows = static_cast<std::size_t>(p.x.output);
    const Extent whole = p.x.whole_windows();
    if (row.channels != channels || p.x.filter != 2 || p.x.stride != 2 || p.x.padding != 0 ||
        whole.end != p.x.output || windows < at_once)
        return false;
    const RoundedMean<T, D16> mean(d16, means[row.rows * 2]);
    const ByteLimits limits = limits_from_least<T>(p);
    const auto least = hn::Set(d8, limits.min), most = hn::Set(d8, limits.max);
    const auto from_least_value = hn::Set(
        d16, static_cast<std::uint16_t>(static_cast<std::int32_t>(row.rows) * -2 * least_value<T>));
    alignas(16) static constexpr std::uint8_t by_turns[16] = {0, 8,  1, 9,  2, 10, 3, 11,
                                                              4, 12, 5, 13, 6, 14, 7, 15};
    const auto turns = hn::LoadDup128(d8, by_turns), ones = hn::Set(d8, 1);
    // Every other window: narrowing two vectors puts their blocks by turns.
    const auto means_of = [&](std::size_t first) HWY_ATTR {
        auto sum = from_least_value;
        for (std::size_t y = 0; y < row.rows; ++y) {
            const T* const pixels = row.first + y * row.pitch + first * block;
            const auto pairs = hn::TableLookupBytes(
                joined_blocks([&](std::size_t b) HWY_ATTR {
                    return hn::LoadU(hn::CappedTag<std::uint8_t, block>(),
                                     reinterpret_cast<const std::uint8_t*>(pixels) + 2 * b * block);
                }),
                turns);
            const auto added =
                std::is_signed_v<T>
                    ? reef::HWY_NAMESPACE::pair_products_of_bytes(WordTag(), ones, pairs)
                    : reef::HWY_NAMESPACE::pair_products_of_bytes(WordTag(), pairs, ones);
            sum = hn::Add(sum, hn::BitCast(d16, added));
        }
        return hn::BitCast(WordTag(), mean(sum));
    };
    const auto group_at = [&](std::size_t first) HWY_ATTR {
        const auto bytes = narrowed_words<std::uint8_t>(means_of(first), means_of(first + 1));
        store_from_least(d8, hn::Min(hn::Max(bytes, least), most), out + first * channels);
    };
    std::size_t first = 0;
    for (; first + at_once <= windows; first += at_once) group_at(first);
    // The last ones may be averaged a second time.
    if (first < windows) group_at(windows - at_once);
    return true;
}

#endif

template <std::size_t kVectors, typename T>
void average_few_channels(const Pooling& p, FewChannels how, const ByteMean* means,
                          const WindowRow<T>& row, std::uint16_t* columns, T* out) {
    if (how == FewChannels::by_pixels) {
        if (kVectors > 1 || !average_pairs(p, means, row, out))
            average_by_pixels<kVectors>(p, means, row, out);
        return;
    }
    average_by_columns<kVectors>(p, means, row, columns, out);
}

/// One window of any size.
template <typename T, class D, class D32 = hn::Repartition<std::int32_t, D>>
HWY_INLINE void average_many(D d, const T* in, const Window& window, const Quotient& by,
                             ClampRange clamp, T* out) {
    const D32 d32;
    QuadSums<D32> sums[1];
    sum_quads(d, in, window, sums);
    const auto half = static_cast<std::int32_t>(window.rows * window.columns / 2);
    for (auto& lane : sums[0].of) {
        const auto mean = rounded_quotients(d32, lane, half, by);
        const auto value = hn::Min(hn::Max(mean, hn::Set(d32, clamp.min)), hn::Set(d32, clamp.max));
        lane = hn::Sub(value, hn::Set(d32, least_value<T>));
    }
    store_from_least(d, bytes_of(d32, sums[0]), out);
}

template <typename T>
T average_many_of_one(const T* in, const Window& window, ClampRange clamp) {
    std::int32_t sum = 0;
    for (std::size_t y = 0; y < window.rows; ++y)
        for (std::size_t x = 0; x < window.columns; ++x)
            sum += in[y * window.row_pitch + x * window.channels];
    const auto count = static_cast<std::int32_t>(window.rows * window.columns);
    const std::int32_t mean = (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
    return static_cast<T>(std::clamp(mean, clamp.min, clamp.max));
}

/// Windows of any size, with a division for each that has no vector of channels.
template <typename T>
void average_each_of_many(const Pooling& p, const WindowRow<T>& row, T* out) {
    for (std::int32_t x = 0; x < p.x.output; ++x, out += row.channels) {
        const Extent columns = p.x.window(x);
        const Window window = row.window(columns.size());
        const T* in = row.pixel(columns.begin);
        const Quotient by = quotient_by(static_cast<std::int32_t>(window.rows * window.columns));
        each_channel_vector<std::uint8_t>(row.channels, [&](auto d, std::size_t c) HWY_ATTR {
            if constexpr (hn::MaxLanes(d) >= least_byte_lanes)
                average_many(d, in + c, window, by, p.clamp, out + c);
            else
                for (std::size_t k = c; k < c + hn::Lanes(d); ++k)
                    out[k] = average_many_of_one(in + k, window, p.clamp);
        });
    }
}

/// One output row: p.x.output pixels. `in` is the batch's first element. `means` has those of every
/// number of pixels in a window, or is nullptr where a window has more than ByteMean::most;
/// `columns` has sliding_sums() or, of few channels, what average_by_columns wants; nullptr where
/// no sums of columns are needed.
template <typename T>
void average_row(const Pooling& p, const ByteMean* means, const T* in, std::int32_t out_y,
                 std::uint16_t* columns, T* out) {
    const WindowRow<T> row(p, in, out_y);
    constexpr bool vectors = hn::MaxLanes(hn::ScalableTag<std::uint8_t>()) >= least_byte_lanes;
    if (!vectors || means == nullptr) return average_each_of_many(p, row, out);
    if constexpr (vectors) {
        const FewChannels how = few_channels_of_means(p);
        const bool fit_one_vector = row.channels <= few_pooled_channels / 2;
        if (how != FewChannels::no && fit_one_vector)
            return average_few_channels<1>(p, how, means, row, columns, out);
        if (how != FewChannels::no)
            return average_few_channels<2>(p, how, means, row, columns, out);
    }
    if (columns == nullptr) return average_each(p, means, row, out);
    average_sliding(p, means, row, columns, out);
}

/// The mean of kVectors vectors of one window's channels, summed in the order of the pixels:
/// several of them, because each sum waits for the one before it.
template <std::size_t kVectors, class D>
HWY_INLINE void average_floats(D d, const float* HWY_RESTRICT in, const Window& window,
                               Limits<float> limits, float* HWY_RESTRICT out) {
    const std::size_t lanes = hn::Lanes(d);
    hn::Vec<D> sums[kVectors];
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
    for (std::size_t y = 0; y < window.rows; ++y) {
        const float* HWY_RESTRICT pixel = in + y * window.row_pitch;
        for (std::size_t x = 0; x < window.columns; ++x, pixel += window.channels)
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
                hn::Add(sums[v], hn::LoadU(d, pixel + v * lanes));
    }
    const auto count = hn::Set(d, static_cast<float>(window.rows * window.columns));
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v)
        hn::StoreU(clamp_floats(d, hn::Div(sums[v], count), limits), d, out + v * lanes);
}

void average_row_f32(const Pooling& p, const float* in, std::int32_t out_y, float* out) {
    const WindowRow<float> row(p, in, out_y);
    for (std::int32_t x = 0; x < p.x.output; ++x, out += row.channels) {
        const Extent columns = p.x.window(x);
        each_channel_vectors<float, 4>(
            row.channels, [&](auto d, std::size_t c, auto vectors) HWY_ATTR {
                average_floats<vectors()>(d, row.pixel(columns.begin) + c,
                                          row.window(columns.size()), p.float_clamp, out + c);
            });
    }
}

void average_row_u8(const Pooling& p, const ByteMean* means, const std::uint8_t* in, std::int32_t y,
                    std::uint16_t* columns, std::uint8_t* out) {
    average_row(p, means, in, y, columns, out);
}
void average_row_i8(const Pooling& p, const ByteMean* means, const std::int8_t* in, std::int32_t y,
                    std::uint16_t* columns, std::int8_t* out) {
    average_row(p, means, in, y, columns, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(average_row_u8);
HWY_EXPORT(average_row_i8);
HWY_EXPORT(average_row_f32);

void average_row_fast(const Pooling& p, const ByteMean* means, const std::uint8_t* in,
                      std::int32_t y, std::uint16_t* columns, std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(average_row_u8)(p, means, in, y, columns, out);
}
void average_row_fast(const Pooling& p, const ByteMean* means, const std::int8_t* in,
                      std::int32_t y, std::uint16_t* columns, std::int8_t* out) {
    HWY_DYNAMIC_DISPATCH(average_row_i8)(p, means, in, y, columns, out);
}
void average_row_fast(const Pooling& p, const ByteMean* /*means*/, const float* in, std::int32_t y,
                      std::uint16_t* /*columns*/, float* out) {
    HWY_DYNAMIC_DISPATCH(average_row_f32)(p, in, y, out);
}

template <typename T>
class FastAveragePool final : public Kernel {
  public:
    FastAveragePool(const Pooling& pooling, int threads)
        : p_(pooling), threads_(static_cast<std::size_t>(threads)) {
        if (std::is_floating_point_v<T>) return;
        const std::int64_t most = std::int64_t{longest(p_.y)} * longest(p_.x);
        if (most > ByteMean::most) return;
        means_.resize(static_cast<std::size_t>(most) + 1);
        for (std::int32_t count = 1; count <= most; ++count)
            means_[static_cast<std::size_t>(count)] = byte_mean<T>(count);
        // Of overlapping windows each column is added once and subtracted once. Filters wider than
        // the input would want sums of more columns than it has.
        const bool overlap =
            p_.x.filter >= 3 * p_.x.stride && p_.x.filter <= p_.x.input && p_.x.output > 1;
        const auto channels = static_cast<std::size_t>(p_.channels);
        const auto few = HWY_NAMESPACE::few_channels_of_means(p_);
        if (few == HWY_NAMESPACE::FewChannels::by_columns)
            columns_ = HWY_NAMESPACE::few_channels_scratch(p_.x, channels);
        else if (overlap && few == HWY_NAMESPACE::FewChannels::no)
            columns_ = HWY_NAMESPACE::sliding_sums(p_.x.filter, channels);
    }

    [[nodiscard]] std::string name() const override {
        return "average_pool_2d fast " + std::string(simd_target());
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return threads_ * columns_ * sizeof(std::uint16_t);
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto rows = static_cast<std::size_t>(p_.y.output);
        const std::size_t image = static_cast<std::size_t>(p_.y.input) *
                                  static_cast<std::size_t>(p_.x.input) *
                                  static_cast<std::size_t>(p_.channels);
        const std::size_t row =
            static_cast<std::size_t>(p_.x.output) * static_cast<std::size_t>(p_.channels);
        auto* columns = reinterpret_cast<std::uint16_t*>(frame.scratch.data());
        frame.pool.parallel_for(static_cast<std::size_t>(p_.batches) * rows,
                                grain_of(p_.elements_to_a_row() * sizeof(T), pooled_bytes),
                                [&](std::size_t begin, std::size_t end, std::size_t worker) {
                                    for (std::size_t i = begin; i < end; ++i)
                                        average_row_fast(
                                            p_, means_.empty() ? nullptr : means_.data(),
                                            frame.in<T>(0) + i / rows * image,
                                            static_cast<std::int32_t>(i % rows),
                                            columns_ == 0 ? nullptr : columns + worker * columns_,
                                            frame.out<T>(0) + i * row);
                                });
        return {};
    }

  private:
    static std::int32_t longest(const PoolingAxis& axis) {
        return std::min(axis.filter, axis.input);
    }

    Pooling p_;
    std::size_t threads_;
    std::vector<ByteMean> means_;  ///< of as many pixels as the index says
    std::size_t columns_ = 0;      ///< elements of a worker's sums of columns
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

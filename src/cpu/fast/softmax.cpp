// SOFTMAX of bytes: a lane for each row, because a row's exponentials are added in order.
#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/softmax.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/worker_pool.h"
#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/bytes_256-inl.h"
#include "cpu/fast/fixed_point-inl.h"
#include "cpu/reference/byte_table.h"
#include "cpu/reference/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// One lane has no neighbours that hold other rows.
template <typename T>
void softmax_rows(const SoftmaxTable& table, const T* in, std::size_t rows, std::size_t length,
                  T* out) {
    constexpr std::int32_t least = std::numeric_limits<T>::min();
    for (; rows > 0; --rows, in += length, out += length) {
        const float* exponentials =
            table.exponentials.data() + 255 - *std::max_element(in, in + length);
        float sum = 0;
        for (std::size_t i = 0; i < length; ++i) sum += exponentials[in[i]];
        const float factor = 1.0F / (sum * SoftmaxTable::output_scale);
        for (std::size_t i = 0; i < length; ++i) {
            const auto result =
                static_cast<std::int32_t>(exponentials[in[i]] * factor + SoftmaxTable::half<T>);
            out[i] = static_cast<T>(std::min(result, 255) + least);
        }
    }
}

#else

using Floats = hn::ScalableTag<float>;
using Bytes = hn::Repartition<std::uint8_t, Floats>;
using Words = hn::Repartition<std::uint16_t, Floats>;
using Integers = hn::Repartition<std::int32_t, Floats>;
using Quads = hn::Repartition<std::uint32_t, Floats>;

constexpr std::size_t rows_at_once = hn::MaxLanes(Floats());
constexpr std::size_t blocks = rows_at_once / 4;
/// So many rows are faster one by one.
constexpr std::size_t most_alone = HWY_TARGET == HWY_AVX3_DL ? rows_at_once / 8 : rows_at_once / 2;
/// Columns that are taken at once: what a block of 16 bytes has of a row.
constexpr std::size_t chunk = 16;

/// 16 columns of rows_at_once rows, each of which is a lane of results. In vector v, lane q of 32
/// bits of block b has column 4 v + q of the rows of lanes 4 b to 4 b + 3.
struct Columns {
    // One that the compiler makes is not for the target's instructions (byte_sums-inl.h).
    HWY_INLINE Columns() {}

    hn::Vec<Bytes> of[4];
};

/// Block b is what lies at rows(first + 4 * b).
template <class Rows>
HWY_INLINE hn::Vec<Bytes> load_blocks(const Rows& rows, std::size_t first) {
    const hn::CappedTag<std::uint8_t, chunk> d;
    return joined_blocks([&](std::size_t b) HWY_ATTR {
        return hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(rows(first + 4 * b)));
    });
}

/// From 16 columns of the row of lane 4 b + k in block b of vector k.
HWY_INLINE Columns columns_of(const hn::Vec<Bytes> (&rows)[4]) {
    const Bytes d8;
    const Words d16;
    const auto lower = [&](std::size_t k) HWY_ATTR {
        return hn::BitCast(d16, hn::InterleaveLower(d8, rows[k], rows[k + 1]));
    };
    const auto upper = [&](std::size_t k) HWY_ATTR {
        return hn::BitCast(d16, hn::InterleaveUpper(d8, rows[k], rows[k + 1]));
    };
    Columns columns;
    columns.of[0] = hn::BitCast(d8, hn::InterleaveLower(d16, lower(0), lower(2)));
    columns.of[1] = hn::BitCast(d8, hn::InterleaveUpper(d16, lower(0), lower(2)));
    columns.of[2] = hn::BitCast(d8, hn::InterleaveLower(d16, upper(0), upper(2)));
    columns.of[3] = hn::BitCast(d8, hn::InterleaveUpper(d16, upper(0), upper(2)));
    return columns;
}

/// The first 16 columns of rows, which a function gives by their index; T's least value where
/// `valid` is 0.
template <typename T, class Rows>
HWY_INLINE Columns load_columns(const Rows& row, hn::Vec<Bytes> valid) {
    const auto least = from_least<T>(Bytes(), hn::Zero(Bytes()));
    hn::Vec<Bytes> rows[4];
    for (std::size_t k = 0; k < 4; ++k)
        rows[k] = hn::IfVecThenElse(valid, load_blocks(row, k), least);
    return columns_of(rows);
}

/// 255 in the first `columns` bytes of each block.
hn::Vec<Bytes> first_bytes(std::size_t columns) {
    alignas(64) std::uint8_t bytes[blocks * chunk] = {};
    for (std::size_t i = 0; i < blocks * chunk; ++i) bytes[i] = i % chunk < columns ? 255 : 0;
    return hn::Load(Bytes(), bytes);
}

template <typename T>
HWY_INLINE hn::Vec<Bytes> larger(hn::Vec<Bytes> a, hn::Vec<Bytes> b) {
    const hn::Repartition<T, Floats> d;
    return hn::BitCast(Bytes(), hn::Max(hn::BitCast(d, a), hn::BitCast(d, b)));
}

template <typename T>
HWY_INLINE hn::Vec<Bytes> largest_of(const Columns& columns) {
    return larger<T>(larger<T>(columns.of[0], columns.of[1]),
                     larger<T>(columns.of[2], columns.of[3]));
}

/// What makes a row's bytes of T, when added modulo 256, indices of exponentials, the last of which
/// is the largest byte's: in every byte that is the row's, from what is largest of each lane.
template <typename T>
HWY_INLINE hn::Vec<Bytes> shift_of_rows(hn::Vec<Bytes> largest) {
    const Bytes d8;
    const Quads d32;
    const auto pairs =
        larger<T>(largest, hn::BitCast(d8, hn::Shuffle2301(hn::BitCast(d32, largest))));
    return hn::Not(larger<T>(pairs, hn::BitCast(d8, hn::Shuffle1032(hn::BitCast(d32, pairs)))));
}

/// The four columns of one vector as 32 bits of each row, whose bytes are those of b0 to b3.
template <class Store>
HWY_INLINE void widen(hn::Vec<Bytes> b0, hn::Vec<Bytes> b1, hn::Vec<Bytes> b2, hn::Vec<Bytes> b3,
                      const Store& store) {
    const Bytes d8;
    const Words d16;
    const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, b0, b1));
    const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d8, b2, b3));
    const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, b0, b1));
    const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, b2, b3));
    store(0, hn::InterleaveLower(d16, low01, low23));
    store(1, hn::InterleaveUpper(d16, low01, low23));
    store(2, hn::InterleaveLower(d16, high01, high23));
    store(3, hn::InterleaveUpper(d16, high01, high23));
}

/// The exponentials of four columns of rows.
class Exponentials {
  public:
#if HWY_TARGET == HWY_AVX3_DL
    HWY_INLINE explicit Exponentials(const SoftmaxTable& table)
        : p0_(table.bytes[0].data()),
          p1_(table.bytes[1].data()),
          p2_(table.bytes[2].data()),
          p3_(table.bytes[3].data()) {}
    HWY_INLINE void operator()(hn::Vec<Bytes> index, float* out) const {
        widen(p0_[index], p1_[index], p2_[index], p3_[index], [&](std::size_t q, auto v) HWY_ATTR {
            hn::Store(hn::BitCast(Floats(), v), Floats(), out + q * rows_at_once);
        });
    }

  private:
    Bytes256 p0_, p1_, p2_, p3_;
#else
    HWY_INLINE explicit Exponentials(const SoftmaxTable& table)
        : table_(table.exponentials.data()) {}
    HWY_INLINE void operator()(hn::Vec<Bytes> index, float* out) const {
        // Loads of one element each are faster than gathers.
        alignas(64) std::uint8_t indices[blocks * chunk];
        hn::Store(index, Bytes(), indices);
        for (std::size_t b = 0; b < blocks; ++b)
            REEF_UNROLL for (std::size_t i = 0; i < chunk; ++i)
                out[i / 4 * rows_at_once + 4 * b + i % 4] = table_[indices[b * chunk + i]];
    }

  private:
    const float* table_;
#endif
};

/// Up to 256: whoever narrows it to a byte saturates.
template <typename T>
HWY_INLINE hn::Vec<Integers> rounded(hn::Vec<Floats> products) {
    return truncated(hn::Add(products, hn::Set(Floats(), SoftmaxTable::half<T>)));
}

/// TFLite's 1 / (sum * scale), exactly: the scale is a power of two.
HWY_INLINE hn::Vec<Floats> factors_of(hn::Vec<Floats> sums) {
    return hn::Div(hn::Set(Floats(), 1 / SoftmaxTable::output_scale), sums);
}

/// In each block: 4 columns of 4 rows, which become 4 rows of 4 columns.
HWY_INLINE hn::Vec<Quads> rows_of_4(hn::Vec<Bytes> columns) {
    alignas(chunk) static constexpr std::uint8_t order[chunk] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                                 2, 6, 10, 14, 3, 7, 11, 15};
    return hn::BitCast(Quads(), hn::TableLookupBytes(columns, hn::LoadDup128(Bytes(), order)));
}

/// Results of 4 columns for each of some vectors, from their exponentials: block b of results[l]
/// has those of lane l of the block, and behind them what is of no column.
template <typename T>
HWY_INLINE void results_of(const float* exponentials, hn::Vec<Floats> factors, std::size_t vectors,
                           hn::Vec<Bytes> (&results)[4]) {
    const Quads d32;
    const hn::Repartition<std::uint64_t, Floats> d64;
    hn::Vec<Quads> rows[4];
    for (auto& row : rows) row = hn::Zero(d32);
    for (std::size_t v = 0; v < vectors; ++v) {
        Quarter columns[4];
        REEF_UNROLL for (std::size_t q = 0; q < 4; ++q) {
            const float* column = exponentials + (4 * v + q) * rows_at_once;
            columns[q] = rounded<T>(hn::Mul(hn::Load(Floats(), column), factors));
        }
        rows[v] = rows_of_4(narrowed_bytes<std::uint8_t>(columns));
    }
    const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d32, rows[0], rows[1]));
    const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d32, rows[2], rows[3]));
    const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d32, rows[0], rows[1]));
    const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d32, rows[2], rows[3]));
    const auto of_lane = [](auto bytes) HWY_ATTR {
        return from_least<T>(Bytes(), hn::BitCast(Bytes(), bytes));
    };
    results[0] = of_lane(hn::InterleaveLower(d64, low01, low23));
    results[1] = of_lane(hn::InterleaveUpper(d64, low01, low23));
    results[2] = of_lane(hn::InterleaveLower(d64, high01, high23));
    results[3] = of_lane(hn::InterleaveUpper(d64, high01, high23));
}

/// Those of row r in the 16 bytes at out + r * step.
template <typename T>
HWY_INLINE void store_rows(const hn::Vec<Bytes> (&results)[4], T* out, std::size_t step) {
    alignas(64) std::uint8_t bytes[4][blocks * chunk];
    for (std::size_t l = 0; l < 4; ++l) hn::Store(results[l], Bytes(), bytes[l]);
    // In order: a row may write over the beginning of the next one.
    for (std::size_t r = 0; r < rows_at_once; ++r)
        std::memcpy(out + r * step, bytes[r % 4] + r / 4 * chunk, chunk);
}

/// Rows of up to so many values keep their exponentials.
constexpr std::size_t short_row = 256;

/// rows_at_once short rows, side by side, in the order of lanes. Of rows shorter than `chunk`, as
/// many bytes behind the last as are missing to one are read and written: those of the next rows,
/// which are computed afterwards, so that input and output may not be the same memory.
class ShortRows {
  public:
    explicit ShortRows(std::size_t length)
        : length_(length),
          chunks_((length + chunk - 1) / chunk),
          vectors_(length < chunk ? (length + 3) / 4 : 4),
          valid_(first_bytes(length)) {}

    template <typename T>
    HWY_INLINE void read(const Exponentials& exponential, const T* in) {
        Columns columns[short_row / chunk];
        auto largest = from_least<T>(Bytes(), hn::Zero(Bytes()));
        for (std::size_t i = 0; i < chunks_; ++i) {
            const T* first = in + start_of(i);
            columns[i] =
                load_columns<T>([&](std::size_t r) { return first + r * length_; }, valid_);
            largest = larger<T>(largest, largest_of<T>(columns[i]));
        }
        const auto shift = shift_of_rows<T>(largest);
        for (std::size_t i = 0; i < chunks_; ++i)
            for (std::size_t v = 0; v < vectors_; ++v)
                exponential(hn::Add(columns[i].of[v], shift),
                            exponentials_ + (start_of(i) + 4 * v) * rows_at_once);
        auto sums = hn::Zero(Floats());
        for (std::size_t column = 0; column < length_; ++column)
            sums = hn::Add(sums, hn::Load(Floats(), exponentials_ + column * rows_at_once));
        hn::Store(factors_of(sums), Floats(), factors_);
    }

    template <typename T>
    HWY_INLINE void write(T* out) const {
        for (std::size_t i = 0; i < chunks_; ++i) {
            hn::Vec<Bytes> results[4];
            results_of<T>(exponentials_ + start_of(i) * rows_at_once, hn::Load(Floats(), factors_),
                          vectors_, results);
            store_rows(results, out + start_of(i), length_);
        }
    }

  private:
    [[nodiscard]] std::size_t start_of(std::size_t i) const {
        return length_ < chunk ? 0 : std::min(i * chunk, length_ - chunk);
    }

    alignas(64) float exponentials_[short_row * rows_at_once];
    alignas(64) float factors_[rows_at_once];
    std::size_t length_, chunks_, vectors_;
    hn::Vec<Bytes> valid_;
};

/// rows_at_once rows of `chunk` values, one behind the other: their vectors have rows in blocks, as
/// they lie in memory, so that lane l of block b is row l * blocks + b.
class BlockRows {
  public:
    template <typename T>
    HWY_INLINE void read(const Exponentials& exponential, const T* in) {
        hn::Vec<Bytes> rows[4];
        REEF_UNROLL for (std::size_t l = 0; l < 4; ++l) rows[l] =
            hn::LoadU(Bytes(), reinterpret_cast<const std::uint8_t*>(in + l * vector));
        const Columns columns = columns_of(rows);
        const auto shift = shift_of_rows<T>(largest_of<T>(columns));
        REEF_UNROLL for (std::size_t v = 0; v < 4; ++v)
            exponential(hn::Add(columns.of[v], shift), exponentials_ + 4 * v * rows_at_once);
        auto sums = hn::Load(Floats(), exponentials_);
        REEF_UNROLL for (std::size_t column = 1; column < chunk; ++column) sums =
            hn::Add(sums, hn::Load(Floats(), exponentials_ + column * rows_at_once));
        hn::Store(factors_of(sums), Floats(), factors_);
    }

    template <typename T>
    HWY_INLINE void write(T* out) const {
        hn::Vec<Bytes> results[4];
        results_of<T>(exponentials_, hn::Load(Floats(), factors_), 4, results);
        REEF_UNROLL for (std::size_t l = 0; l < 4; ++l)
            hn::StoreU(results[l], Bytes(), reinterpret_cast<std::uint8_t*>(out + l * vector));
    }

  private:
    static constexpr std::size_t vector = blocks * chunk;

    alignas(64) float exponentials_[chunk * rows_at_once];
    alignas(64) float factors_[rows_at_once];
};

/// Some times rows_at_once rows. The next ones are read before the results of those in front are
/// written, which wait for the sums of a row.
template <class Rows, typename T>
HWY_INLINE void softmax_of_groups(Rows& first, Rows& second, const Exponentials& exponential,
                                  const T* in, std::size_t groups, std::size_t length, T* out) {
    const std::size_t group = rows_at_once * length;
    Rows *now = &first, *next = &second;
    now->read(exponential, in);
    for (; groups > 1; --groups, out += group) {
        in += group;
        next->read(exponential, in);
        now->write(out);
        std::swap(now, next);
    }
    now->write(out);
}

template <typename T>
void softmax_of_short(const Exponentials& exponential, const T* in, std::size_t groups,
                      std::size_t length, T* out) {
    if (length == chunk) {
        BlockRows first, second;
        softmax_of_groups(first, second, exponential, in, groups, length, out);
    } else {
        ShortRows first(length), second(length);
        softmax_of_groups(first, second, exponential, in, groups, length, out);
    }
}

/// The result of each byte as its row's: table.exponentials begins with that of the lowest value.
template <typename T>
HWY_INLINE void fill(const float* exponentials, float factor, ByteTable& results) {
    const hn::Rebind<std::uint8_t, Floats> d8;
    constexpr std::size_t flip = std::is_signed_v<T> ? 128 : 0;
    for (std::size_t i = 0; i < results.size(); i += rows_at_once) {
        const auto products =
            hn::Mul(hn::LoadU(Floats(), exponentials + i), hn::Set(Floats(), factor));
        const auto bytes = hn::DemoteTo(d8, rounded<T>(products));
        hn::StoreU(hn::Xor(bytes, hn::Set(d8, flip)), d8, results.data() + (i ^ flip));
    }
}

/// Up to rows_at_once rows of more than short_row values.
template <typename T>
HWY_INLINE void softmax_of_long(const SoftmaxTable& table, const Exponentials& exponential,
                                const T* in, std::size_t rows, std::size_t length, T* out) {
    const auto valid = first_bytes(chunk);
    const T* row[rows_at_once];
    for (std::size_t r = 0; r < rows_at_once; ++r) row[r] = in + std::min(r, rows - 1) * length;
    const auto columns_at = [&](std::size_t start) HWY_ATTR {
        return load_columns<T>([&](std::size_t r) { return row[r] + start; }, valid);
    };
    auto largest = from_least<T>(Bytes(), hn::Zero(Bytes()));
    for (std::size_t i = 0; i < length; i += chunk)
        largest = larger<T>(largest, largest_of<T>(columns_at(std::min(i, length - chunk))));
    const auto shift = shift_of_rows<T>(largest);
    auto sums = hn::Zero(Floats());
    for (std::size_t i = 0; i < length; i += chunk) {
        const std::size_t start = std::min(i, length - chunk);
        const Columns columns = columns_at(start);
        alignas(64) float exponentials[chunk * rows_at_once];
        for (std::size_t v = 0; v < 4; ++v)
            exponential(hn::Add(columns.of[v], shift), exponentials + 4 * v * rows_at_once);
        for (std::size_t column = i - start; column < chunk; ++column)
            sums = hn::Add(sums, hn::Load(Floats(), exponentials + column * rows_at_once));
    }
    alignas(64) float factors[rows_at_once];
    alignas(64) std::uint8_t shifts[blocks * chunk];
    hn::Store(factors_of(sums), Floats(), factors);
    hn::Store(from_least<T>(Bytes(), shift), Bytes(), shifts);
    for (std::size_t r = 0; r < rows; ++r) {
        ByteTable results;
        fill<T>(table.exponentials.data() + shifts[r / 4 * chunk + r % 4], factors[r], results);
        look_up_bytes(results, reinterpret_cast<const std::uint8_t*>(row[r]),
                      reinterpret_cast<std::uint8_t*>(out + r * length), length);
    }
}

/// Up to rows_at_once short rows, with nothing behind them.
template <typename T>
void softmax_of_copy(const Exponentials& exponential, const T* in, std::size_t rows,
                     std::size_t length, T* out) {
    constexpr std::size_t most = rows_at_once * short_row + chunk;
    T copy[most], results[most];
    std::copy_n(in, rows * length, copy);
    std::fill(copy + rows * length, copy + rows_at_once * length + chunk, T{});
    softmax_of_short(exponential, copy, 1, length, results);
    std::copy_n(results, rows * length, out);
}

/// One row: its sum is all that takes time.
template <typename T>
void softmax_of_one(const SoftmaxTable& table, const T* in, std::size_t length, T* out) {
    const auto largest = *std::max_element(in, in + length);
    const float* exponentials = table.exponentials.data() + 255 - largest;
    float sum = 0;
    for (std::size_t i = 0; i < length; ++i) sum += exponentials[in[i]];
    const float factor = 1.0F / (sum * SoftmaxTable::output_scale);
    ByteTable results;
    fill<T>(exponentials + std::numeric_limits<T>::min(), factor, results);
    look_up_bytes(results, reinterpret_cast<const std::uint8_t*>(in),
                  reinterpret_cast<std::uint8_t*>(out), length);
}

/// A group after the other, and what is left: how many rows are left.
template <typename T>
std::size_t softmax_of_wholes(const SoftmaxTable& table, const Exponentials& exponential,
                              const T* in, std::size_t rows, std::size_t length, T* out) {
    std::size_t groups = rows / rows_at_once;
    if (length > short_row) {
        for (; groups > 0; --groups, in += rows_at_once * length, out += rows_at_once * length)
            softmax_of_long(table, exponential, in, rows_at_once, length, out);
        return rows % rows_at_once;
    }
    // Of the shortest rows, what is read and written behind the last group's.
    const auto left_bytes = [&] { return (rows - groups * rows_at_once) * length; };
    if (length < chunk)
        while (groups > 0 && left_bytes() < chunk) --groups;
    if (groups > 0) softmax_of_short(exponential, in, groups, length, out);
    return rows - groups * rows_at_once;
}

template <typename T>
void softmax_rows(const SoftmaxTable& table, const T* in, std::size_t rows, std::size_t length,
                  T* out) {
    const Exponentials exponential(table);
    std::size_t left = softmax_of_wholes(table, exponential, in, rows, length, out);
    in += (rows - left) * length;
    out += (rows - left) * length;
    while (left > most_alone && length <= short_row) {
        const std::size_t next = std::min(left, rows_at_once);
        softmax_of_copy(exponential, in, next, length, out);
        left -= next, in += next * length, out += next * length;
    }
    if (left > most_alone) return softmax_of_long(table, exponential, in, left, length, out);
    for (; left > 0; --left, in += length, out += length) softmax_of_one(table, in, length, out);
}

#endif

void softmax_u8(const SoftmaxTable& table, const std::uint8_t* in, std::size_t rows,
                std::size_t length, std::uint8_t* out) {
    softmax_rows(table, in, rows, length, out);
}
void softmax_i8(const SoftmaxTable& table, const std::int8_t* in, std::size_t rows,
                std::size_t length, std::int8_t* out) {
    softmax_rows(table, in, rows, length, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(softmax_u8);
HWY_EXPORT(softmax_i8);

void softmax_fast(const SoftmaxTable& table, const std::uint8_t* in, std::size_t rows,
                  std::size_t length, std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(softmax_u8)(table, in, rows, length, out);
}
void softmax_fast(const SoftmaxTable& table, const std::int8_t* in, std::size_t rows,
                  std::size_t length, std::int8_t* out) {
    HWY_DYNAMIC_DISPATCH(softmax_i8)(table, in, rows, length, out);
}

template <typename T>
class FastSoftmax final : public Kernel {
  public:
    FastSoftmax(const SoftmaxShape& shape, const SoftmaxTable& table)
        : shape_(shape), table_(table) {}

    [[nodiscard]] std::string name() const override {
        return "softmax fast " + std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const std::size_t groups = (shape_.rows + group - 1) / group;
        frame.pool.parallel_for(groups, values_at_once / (group * shape_.length) + 1,
                                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                    const std::size_t first = begin * group * shape_.length;
                                    const std::size_t rows =
                                        std::min(end * group, shape_.rows) - begin * group;
                                    softmax_fast(table_, frame.in<T>(0) + first, rows,
                                                 shape_.length, frame.out<T>(0) + first);
                                });
        return {};
    }

  private:
    /// Rows that no target takes apart.
    static constexpr std::size_t group = 16;
    /// Of a piece that a thread is worth.
    static constexpr std::size_t values_at_once = 1 << 14;

    SoftmaxShape shape_;
    SoftmaxTable table_;
};

}  // namespace

std::unique_ptr<Kernel> fast_softmax(const SoftmaxShape& shape, const SoftmaxTable& table,
                                     ElementType type) {
    if (type == ElementType::uint8)
        return std::make_unique<FastSoftmax<std::uint8_t>>(shape, table);
    return std::make_unique<FastSoftmax<std::int8_t>>(shape, table);
}

}  // namespace reef::cpu
#endif

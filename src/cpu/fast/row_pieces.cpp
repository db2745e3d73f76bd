#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/row_pieces.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>
#include <span>
#include <type_traits>

#include "base/sums_of_products-inl.h"
#include "cpu/fast/byte_blocks-inl.h"
#include "cpu/fast/resize_rounding-inl.h"
#include "cpu/fast/row_pieces.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

#if HWY_TARGET == HWY_SCALAR

template <typename T>
void resize(const RowsOfPieces<T>& /*rows*/, const RowOfPieces& /*row*/) {}

#else

HWY_INLINE hn::Vec<ByteTag> joined_pieces(const std::uint8_t* HWY_RESTRICT in,
                                          const std::uint32_t* HWY_RESTRICT begins) {
    const hn::CappedTag<std::uint8_t, RowOfPieces::piece> of_piece;
    const hn::CappedTag<std::uint8_t, 2 * RowOfPieces::piece> of_block;
    return joined_blocks([&](std::size_t b) HWY_ATTR {
        return hn::Combine(of_block, hn::LoadU(of_piece, in + begins[2 * b + 1]),
                           hn::LoadU(of_piece, in + begins[2 * b]));
    });
}

/// Of the vector of that number; `kIsOne`: they are neighbours in the input.
template <bool kIsOne>
HWY_INLINE hn::Vec<ByteTag> pieces_of(const std::uint8_t* HWY_RESTRICT in,
                                      const PiecesBeside& beside, std::size_t number) {
    const ByteTag d8;
    const std::uint32_t* const begins =
        beside.begins.data() + number * hn::Lanes(d8) / RowOfPieces::piece;
    if constexpr (kIsOne) return hn::LoadU(d8, in + *begins);
#if HWY_MAX_BYTES >= 32
    if (const std::uint32_t begin = beside.vector_begins[number]; begin != PiecesBeside::apart) {
        const hn::Repartition<std::int32_t, ByteTag> d32;
        const hn::Rebind<std::uint8_t, decltype(d32)> d_quarters;
        const auto quarters = hn::PromoteTo(
            d32, hn::LoadU(d_quarters, beside.quarters.get() + number * hn::Lanes(d32)));
        const auto all = hn::BitCast(d32, hn::LoadU(d8, in + begin));
        return hn::BitCast(d8, hn::TableLookupLanes(all, hn::IndicesFromVec(d32, quarters)));
    }
#endif
    return joined_pieces(in, begins);
}

/// For each byte of bytes taken apart, where the weights of its piece are: a block of 16 bytes has
/// two pieces, the first of which is in the lower words.
struct PlacesOfWeights {
    alignas(HWY_MAX_BYTES) std::uint8_t at[HWY_MAX_BYTES]{};

    explicit constexpr PlacesOfWeights(std::size_t piece_of_block) {
        for (std::size_t i = 0; i < HWY_MAX_BYTES; ++i)
            at[i] = static_cast<std::uint8_t>(2 * (i / 16 * 2 + piece_of_block) + i % 2);
    }
};
constexpr PlacesOfWeights lower_places(0), upper_places(1);

/// Blends along a row: the lower and the upper words of 16 bytes each.
template <typename T>
struct Blends {
    hn::Vec<WordTag> lower, upper;

    template <bool kIsOne>
    HWY_INLINE static Blends of(const T* in, const RowOfPieces& row, std::size_t number,
                                hn::Vec<ByteTag> lower_weights, hn::Vec<ByteTag> upper_weights) {
        const ByteTag d8;
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(in);
        const auto left = pieces_of<kIsOne>(bytes, row.left, number);
        const auto right = pieces_of<kIsOne>(bytes, row.right, number);
        return {sums(hn::InterleaveLower(d8, left, right), lower_weights),
                sums(hn::InterleaveUpper(d8, left, right), upper_weights)};
    }

  private:
    HWY_INLINE static hn::Vec<WordTag> sums(hn::Vec<ByteTag> pixels, hn::Vec<ByteTag> weights) {
        if constexpr (std::is_signed_v<T>)
            return reef::HWY_NAMESPACE::pair_products_of_bytes(WordTag(), weights, pixels);
        else
            return reef::HWY_NAMESPACE::pair_products_of_bytes(WordTag(), pixels, weights);
    }
};

/// Bytes between two blended rows.
template <typename T>
HWY_INLINE hn::Vec<ByteTag> mixed(const Blends<T>& a, const Blends<T>& b, std::int16_t of_a,
                                  std::int16_t of_b) {
    const WordTag d16;
    const auto weight_a = hn::Set(d16, of_a), weight_b = hn::Set(d16, of_b);
    const auto words = [&](hn::Vec<WordTag> x, hn::Vec<WordTag> y) HWY_ATTR {
        return narrow_rounded(d16, hn::Add(hn::Mul(x, weight_a), hn::Mul(y, weight_b)), T{});
    };
    return narrowed_words<T>(words(a.lower, b.lower), words(a.upper, b.upper));
}

/// Whose blends an output row takes over from the one before it.
enum class Takes : std::uint8_t {
    both,   ///< it lies between the same two input rows
    upper,  ///< its lower one is the upper one of the row before
    none,
};

template <typename T>
struct Mix {
    const T *lower = nullptr, *upper = nullptr;
    std::int16_t of_lower = 0, of_upper = 0;
    Takes takes = Takes::none;
    bool is_one = false;  ///< at a border: both are one row
};

template <typename T>
Mix<T> mix_of(const RowsOfPieces<T>& rows, std::size_t r, std::size_t input_row) {
    const FixedSample& at = rows.rows[r];
    Mix<T> mix{.lower = rows.image + static_cast<std::size_t>(at.lower) * input_row,
               .upper = rows.image + static_cast<std::size_t>(at.upper) * input_row,
               .of_lower = static_cast<std::int16_t>((1 << rows.bits) - at.fraction),
               .of_upper = static_cast<std::int16_t>(at.fraction),
               .is_one = at.lower == at.upper};
    if (r == 0) return mix;
    const FixedSample& before = rows.rows[r - 1];
    if (at.lower == before.lower && at.upper == before.upper)
        mix.takes = Takes::both;
    else if (at.lower == before.upper)
        mix.takes = Takes::upper;
    return mix;
}

template <bool kIsOne, typename T>
void resize_from(const RowsOfPieces<T>& rows, const RowOfPieces& row) {
    const ByteTag d8;
    const auto places_lower = hn::Load(d8, lower_places.at),
               places_upper = hn::Load(d8, upper_places.at);
    const std::size_t lanes = hn::Lanes(d8), length = row.length();
    Mix<T> mixes[most_rows_of_pieces];
    for (std::size_t r = 0; r < rows.count; ++r) mixes[r] = mix_of(rows, r, row.row.length);
    // store(r, bytes) gets the vector of that number of every row.
    const auto each_row = [&](std::size_t number, const auto& store) HWY_ATTR {
        const auto weights =
            hn::LoadDup128(d8, row.weights.get() + number * RowOfPieces::weights_of_vector);
        const auto lower_weights = hn::TableLookupBytes(weights, places_lower);
        const auto upper_weights = hn::TableLookupBytes(weights, places_upper);
        const auto blends = [&](const T* in) HWY_ATTR {
            return Blends<T>::template of<kIsOne>(in, row, number, lower_weights, upper_weights);
        };
        Blends<T> a = blends(mixes[0].lower), b = mixes[0].is_one ? a : blends(mixes[0].upper);
        for (std::size_t r = 0; r < rows.count; ++r) {
            const Mix<T>& mix = mixes[r];
            if (r > 0 && mix.takes != Takes::both) {
                a = mix.takes == Takes::upper ? b : blends(mix.lower);
                b = mix.is_one ? a : blends(mix.upper);
            }
            store(r, mixed<T>(a, b, mix.of_lower, mix.of_upper));
        }
    };
    auto* const out = reinterpret_cast<std::uint8_t*>(rows.out);
    std::size_t i = 0;
    for (; i + lanes <= length; i += lanes)
        each_row(i / lanes, [&](std::size_t r, hn::Vec<ByteTag> bytes)
                                HWY_ATTR { hn::StoreU(bytes, d8, out + r * length + i); });
    if (i == length) return;
    each_row(i / lanes, [&](std::size_t r, hn::Vec<ByteTag> bytes) HWY_ATTR {
        std::uint8_t last[HWY_MAX_BYTES];
        hn::StoreU(bytes, d8, last);
        std::copy_n(last, length - i, out + r * length + i);
    });
}

template <typename T>
void resize(const RowsOfPieces<T>& rows, const RowOfPieces& row) {
    if (row.row.channels % hn::Lanes(ByteTag()) == 0)
        resize_from<true>(rows, row);
    else
        resize_from<false>(rows, row);
}

#endif

}  // namespace

std::size_t bytes_of_row_pieces() {
    return HWY_TARGET == HWY_SCALAR ? 0 : hn::Lanes(hn::ScalableTag<std::uint8_t>());
}
void resize_pieces_u8(const RowsOfPieces<std::uint8_t>& rows, const RowOfPieces& row) {
    resize(rows, row);
}
void resize_pieces_i8(const RowsOfPieces<std::int8_t>& rows, const RowOfPieces& row) {
    resize(rows, row);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(bytes_of_row_pieces);
HWY_EXPORT(resize_pieces_u8);
HWY_EXPORT(resize_pieces_i8);

/// Where a vector of the input row begins that has all of these pieces, or PiecesBeside::apart.
std::uint32_t begin_of_vector(std::span<const std::uint32_t> begins, std::size_t row_bytes,
                              std::size_t vector_bytes) {
    if (row_bytes < vector_bytes) return PiecesBeside::apart;
    const auto [least, most] = std::ranges::minmax(begins);
    // Not beyond the row's end, behind which there may be no memory.
    const auto begin = std::min(least, static_cast<std::uint32_t>(row_bytes - vector_bytes));
    return most + RowOfPieces::piece > begin + vector_bytes ? PiecesBeside::apart : begin;
}

void find_vectors(PiecesBeside& beside, std::size_t row_bytes, std::size_t vector_bytes) {
    constexpr std::size_t quarter = 4, of_piece = RowOfPieces::piece / quarter;
    const std::size_t of_vector = vector_bytes / RowOfPieces::piece;
    const std::size_t quarters = vector_bytes / quarter;
    const std::size_t vectors = beside.begins.size() / of_vector;
    beside.quarters = aligned_array<std::uint8_t>(vectors * quarters);
    for (std::size_t v = 0; v < vectors; ++v) {
        const auto begins = std::span(beside.begins).subspan(v * of_vector, of_vector);
        const std::uint32_t begin = begin_of_vector(begins, row_bytes, vector_bytes);
        beside.vector_begins.push_back(begin);
        for (std::size_t i = 0; i < quarters && begin != PiecesBeside::apart; ++i)
            beside.quarters[v * quarters + i] =
                static_cast<std::uint8_t>((begins[i / of_piece] - begin) / quarter + i % of_piece);
    }
}

}  // namespace

RowOfPieces row_of_pieces(const std::vector<FixedSample>& columns, RowOfPixels row, int bits) {
    RowOfPieces pieces{.columns = columns.size(), .row = row};
    const std::size_t vector_bytes = HWY_DYNAMIC_DISPATCH(bytes_of_row_pieces)();
    const std::size_t of_vector = vector_bytes / RowOfPieces::piece;
    const std::size_t of_pixel = row.channels / RowOfPieces::piece;
    const std::size_t count = pieces.length() / RowOfPieces::piece;
    const std::size_t vectors = (count + of_vector - 1) / of_vector;
    pieces.weights = aligned_array<std::uint8_t>(vectors * RowOfPieces::weights_of_vector);
    std::fill_n(pieces.weights.get(), vectors * RowOfPieces::weights_of_vector, std::uint8_t{0});
    for (std::size_t i = 0; i < vectors * of_vector; ++i) {
        const std::size_t at = std::min(i, count - 1);
        const FixedSample& column = columns[at / of_pixel];
        assert(column.fraction >= 0 && column.fraction <= 1 << bits);
        const auto begin_of = [&](std::int32_t pixel) {
            return static_cast<std::uint32_t>(static_cast<std::size_t>(pixel) * row.channels +
                                              at % of_pixel * RowOfPieces::piece);
        };
        pieces.left.begins.push_back(begin_of(column.lower));
        pieces.right.begins.push_back(begin_of(column.upper));
        std::uint8_t* const weights = pieces.weights.get() +
                                      i / of_vector * RowOfPieces::weights_of_vector +
                                      2 * (i % of_vector);
        weights[0] = static_cast<std::uint8_t>((1 << bits) - column.fraction);
        weights[1] = static_cast<std::uint8_t>(column.fraction);
    }
    if (vector_bytes < 32 || row.channels % vector_bytes == 0) return pieces;
    for (PiecesBeside* beside : {&pieces.left, &pieces.right})
        find_vectors(*beside, row.length, vector_bytes);
    return pieces;
}

bool has_row_pieces() {
    return HWY_DYNAMIC_DISPATCH(bytes_of_row_pieces)() > 0;
}

void resize_pieces(const RowsOfPieces<std::uint8_t>& rows, const RowOfPieces& row) {
    HWY_DYNAMIC_DISPATCH(resize_pieces_u8)(rows, row);
}
void resize_pieces(const RowsOfPieces<std::int8_t>& rows, const RowOfPieces& row) {
    HWY_DYNAMIC_DISPATCH(resize_pieces_i8)(rows, row);
}

}  // namespace reef::cpu
#endif

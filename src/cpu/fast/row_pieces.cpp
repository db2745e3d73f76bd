#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/row_pieces.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>
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

bool has_pieces() {
    return false;
}
template <typename T>
void blend(const T* /*in*/, const RowOfPieces& /*row*/, std::int16_t* /*out*/) {}
template <typename T>
void mix(const RowPair<std::int16_t>& /*rows*/, std::size_t /*count*/, T* /*out*/) {}

#else

bool has_pieces() {
    return true;
}

/// A vector of pieces; `kIsOne`: of neighbours in the input.
template <bool kIsOne>
HWY_INLINE hn::Vec<ByteTag> joined_pieces(const std::uint8_t* HWY_RESTRICT in,
                                          const std::uint32_t* HWY_RESTRICT begins) {
    if constexpr (kIsOne) return hn::LoadU(ByteTag(), in + *begins);
    const hn::CappedTag<std::uint8_t, RowOfPieces::piece> of_piece;
    const hn::CappedTag<std::uint8_t, 2 * RowOfPieces::piece> of_block;
    return joined_blocks([&](std::size_t b) HWY_ATTR {
        return hn::Combine(of_block, hn::LoadU(of_piece, in + begins[2 * b + 1]),
                           hn::LoadU(of_piece, in + begins[2 * b]));
    });
}

/// For each byte of bytes taken apart, where the weights of its piece are: a block of 16 bytes has
/// two pieces, the first of which is in the lower words.
HWY_INLINE hn::Vec<ByteTag> places_of_weights(std::size_t piece_of_block) {
    alignas(HWY_MAX_BYTES) std::uint8_t places[HWY_MAX_BYTES];
    for (std::size_t i = 0; i < HWY_MAX_BYTES; ++i)
        places[i] = static_cast<std::uint8_t>(2 * (i / 16 * 2 + piece_of_block) + i % 2);
    return hn::Load(ByteTag(), places);
}

template <bool kIsOne, typename T>
void blend_vectors(const T* in, const RowOfPieces& row, std::int16_t* HWY_RESTRICT out) {
    const ByteTag d8;
    const WordTag d16;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(in);
    const auto places_lower = places_of_weights(0), places_upper = places_of_weights(1);
    const auto sums = [&](hn::Vec<ByteTag> pixels, hn::Vec<ByteTag> weights) HWY_ATTR {
        if constexpr (std::is_signed_v<T>)
            return reef::HWY_NAMESPACE::pair_products_of_bytes(d16, weights, pixels);
        else
            return reef::HWY_NAMESPACE::pair_products_of_bytes(d16, pixels, weights);
    };
    const std::size_t lanes = hn::Lanes(d8), length = row.length();
    const std::uint32_t *lefts = row.left.data(), *rights = row.right.data();
    const std::uint8_t* of_vector = row.weights.get();
    for (std::size_t i = 0; i < length; i += lanes) {
        const auto left = joined_pieces<kIsOne>(bytes, lefts);
        const auto right = joined_pieces<kIsOne>(bytes, rights);
        const auto weights = hn::LoadDup128(d8, of_vector);
        hn::Store(
            sums(hn::InterleaveLower(d8, left, right), hn::TableLookupBytes(weights, places_lower)),
            d16, out + i);
        hn::Store(
            sums(hn::InterleaveUpper(d8, left, right), hn::TableLookupBytes(weights, places_upper)),
            d16, out + i + lanes / 2);
        lefts += lanes / RowOfPieces::piece;
        rights += lanes / RowOfPieces::piece;
        of_vector += RowOfPieces::weights_of_vector;
    }
}

template <typename T>
void blend(const T* in, const RowOfPieces& row, std::int16_t* out) {
    if (row.row.channels % hn::Lanes(ByteTag()) == 0)
        blend_vectors<true>(in, row, out);
    else
        blend_vectors<false>(in, row, out);
}

template <typename T>
void mix(const RowPair<std::int16_t>& rows, std::size_t count, T* out) {
    const ByteTag d8;
    const NarrowMix<T> words(rows);
    const std::size_t lanes = hn::Lanes(d8);
    each_result(d8, count, out, [&](std::size_t i, T* to) HWY_ATTR {
        hn::StoreU(narrowed_words<T>(words(i), words(i + lanes / 2)), d8,
                   reinterpret_cast<std::uint8_t*>(to));
    });
}

#endif

}  // namespace

std::size_t bytes_of_row_pieces() {
    return has_pieces() ? hn::Lanes(hn::ScalableTag<std::uint8_t>()) : 0;
}
void blend_pieces_u8(const std::uint8_t* in, const RowOfPieces& row, std::int16_t* out) {
    blend(in, row, out);
}
void blend_pieces_i8(const std::int8_t* in, const RowOfPieces& row, std::int16_t* out) {
    blend(in, row, out);
}
void mix_pieces_u8(const RowPair<std::int16_t>& rows, std::size_t count, std::uint8_t* out) {
    mix(rows, count, out);
}
void mix_pieces_i8(const RowPair<std::int16_t>& rows, std::size_t count, std::int8_t* out) {
    mix(rows, count, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(bytes_of_row_pieces);
HWY_EXPORT(blend_pieces_u8);
HWY_EXPORT(blend_pieces_i8);
HWY_EXPORT(mix_pieces_u8);
HWY_EXPORT(mix_pieces_i8);

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
        pieces.left.push_back(begin_of(column.lower));
        pieces.right.push_back(begin_of(column.upper));
        std::uint8_t* const weights = pieces.weights.get() +
                                      i / of_vector * RowOfPieces::weights_of_vector +
                                      2 * (i % of_vector);
        weights[0] = static_cast<std::uint8_t>((1 << bits) - column.fraction);
        weights[1] = static_cast<std::uint8_t>(column.fraction);
    }
    return pieces;
}

bool has_row_pieces() {
    return HWY_DYNAMIC_DISPATCH(bytes_of_row_pieces)() > 0;
}

void blend_pieces(const std::uint8_t* in, const RowOfPieces& row, std::int16_t* out) {
    HWY_DYNAMIC_DISPATCH(blend_pieces_u8)(in, row, out);
}
void blend_pieces(const std::int8_t* in, const RowOfPieces& row, std::int16_t* out) {
    HWY_DYNAMIC_DISPATCH(blend_pieces_i8)(in, row, out);
}
void mix_pieces(const RowPair<std::int16_t>& rows, std::size_t count, std::uint8_t* out) {
    HWY_DYNAMIC_DISPATCH(mix_pieces_u8)(rows, count, out);
}
void mix_pieces(const RowPair<std::int16_t>& rows, std::size_t count, std::int8_t* out) {
    HWY_DYNAMIC_DISPATCH(mix_pieces_i8)(rows, count, out);
}

}  // namespace reef::cpu
#endif

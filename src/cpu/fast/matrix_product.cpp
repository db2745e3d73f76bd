#include "cpu/fast/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/matrix_product.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/channel_blocks-inl.h"
#include "cpu/fast/matrix_output-inl.h"
#include "cpu/fast/matrix_tile_i8mm-inl.h"
#include "cpu/fast/pixel_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const MatrixFunctions* target_functions() {
    return nullptr;
}

#else
namespace {

// Sums of rows x 2 vectors, the weights and one broadcast pair stay in registers.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr std::size_t most_rows = 8;
#elif HWY_TARGET == HWY_EMU128
constexpr std::size_t most_rows = 2;
#else
constexpr std::size_t most_rows = 6;
#endif

/// Of the vectors of a block of eight channels.
constexpr std::size_t narrow_lanes = HWY_MAX_BYTES >= 32 ? 8 : 4;

/// The ways to multiply: what a value is in a row, the bytes of rows and those of packed weights
/// that become a vector of groups, and the sum of a group's products.
struct WidePairs {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::pairs;
    [[maybe_unused]] static constexpr std::size_t weight_bytes = row_bytes_in(group);
    using Value = std::int16_t;
    template <class D>
    using Row = hn::Repartition<std::uint8_t, D>;
    template <class D>
    using Packed = Row<D>;
    template <class D, class V8>
    static HWY_INLINE auto values(D /*d*/, V8 row) {
        return hn::BitCast(hn::Repartition<std::int16_t, D>(), row);
    }
    template <class D, class V8>
    static HWY_INLINE auto weights(D d, V8 widened) {
        return values(d, widened);
    }
    template <class D, class V16, class V>
    static HWY_INLINE V add(D d, V16 values, V16 weights, V sum) {
        return add_pair_products(d, values, weights, sum);
    }
};
/// With weights as they are packed. Many rows have them widened once.
struct Pairs : WidePairs {
    using Widened = WidePairs;
    [[maybe_unused]] static constexpr std::size_t weight_bytes = weight_bytes_in(group);
    template <class D>
    using Packed = hn::Rebind<std::uint8_t, hn::Repartition<std::int16_t, D> >;
    template <class D, class V8>
    static HWY_INLINE auto weights(D /*d*/, V8 packed) {
        const hn::Repartition<std::int16_t, D> d16;
        return hn::PromoteTo(d16, hn::BitCast(hn::Rebind<std::int8_t, decltype(d16)>(), packed));
    }
};
/// Of signed bytes, two of which have half the size of their sum.
struct SignedPairs {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::signed_pairs;
    [[maybe_unused]] static constexpr std::size_t weight_bytes = weight_bytes_in(group);
    using Value = std::int8_t;
    template <class D>
    using Row = hn::Half<hn::Repartition<std::uint8_t, D> >;
    template <class D>
    using Packed = Row<D>;
    template <class D, class V8>
    static HWY_INLINE auto values(D /*d*/, V8 row) {
        return hn::BitCast(hn::Half<hn::Repartition<std::int8_t, D> >(), row);
    }
    template <class D, class V8>
    static HWY_INLINE auto weights(D d, V8 packed) {
        return values(d, packed);
    }
    template <class D, class V8, class V>
    static HWY_INLINE V add(D d, V8 values, V8 weights, V sum) {
        return reef::HWY_NAMESPACE::add_signed_pair_products(d, values, weights, sum);
    }
};
/// Fours of bytes.
struct InBytes {
    [[maybe_unused]] static constexpr std::size_t weight_bytes = 4;
    template <class D>
    using Row = hn::Repartition<std::uint8_t, D>;
    template <class D>
    using Packed = Row<D>;
    template <class D, class V8>
    static HWY_INLINE hn::Vec<D> values(D d, V8 row) {
        return hn::BitCast(d, row);
    }
    template <class D, class V8>
    static HWY_INLINE hn::Vec<D> weights(D d, V8 packed) {
        return hn::BitCast(d, packed);
    }
};
struct Quads : InBytes {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::quads;
    using Value = std::uint8_t;
    template <class D, class V>
    static HWY_INLINE V add(D d, V values, V weights, V sum) {
        return reef::HWY_NAMESPACE::add_quad_products(d, values, weights, sum);
    }
};
/// With weights that saturate no sum.
struct BoundedQuads : InBytes {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::bounded_quads;
    using Value = std::uint8_t;
    template <class D, class V>
    static HWY_INLINE V add(D d, V values, V weights, V sum) {
        return reef::HWY_NAMESPACE::add_bounded_quad_products(d, values, weights, sum);
    }
    template <class D, class V>
    static HWY_INLINE V add_undivided(D d, V values, V weights, V sum) {
        return reef::HWY_NAMESPACE::add_undivided_quad_products(d, values, weights, sum);
    }
};
struct SignedQuads : InBytes {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::signed_quads;
    using Value = std::int8_t;
    template <class D, class V>
    static HWY_INLINE V add(D d, V values, V weights, V sum) {
        return reef::HWY_NAMESPACE::add_signed_quad_products(d, values, weights, sum);
    }
};

/// Whole rows and sums of rows are made of fours here, too: who multiplies matrices has them.
struct SignedOctets : SignedQuads {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::signed_octets;
    /// 2 x 2 sums, of two rows and two channels.
    template <class D, class V>
    static HWY_INLINE V add_matrix(D d, V rows, V channels, V sums) {
        return reef::HWY_NAMESPACE::add_matrix_products(d, rows, channels, sums);
    }
};

/// Blocks of whole rows are not divided: their weights may saturate.
template <class Form, class D, class V8, class V>
HWY_INLINE V add_of_whole_row(D d, V8 values, V8 weights, V sum) {
    if constexpr (Form::group == GroupOf::bounded_quads)
        return Form::add_undivided(d, values, weights, sum);
    else
        return Form::add(d, values, weights, sum);
}

/// Fewer bytes than a vector holds, zeros behind them. Without masks for bytes Highway would read
/// the whole vector, beyond the end of the last row.
template <class D>
HWY_INLINE hn::Vec<D> first_bytes(D d8, const std::uint8_t* from, std::size_t count) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    return hn::MaskedLoad(hn::FirstN(d8, count), d8, from);
#else
    alignas(64) std::uint8_t bytes[hn::MaxLanes(d8)] = {};
    std::copy_n(from, count, bytes);
    return hn::Load(d8, bytes);
#endif
}

/// A vector of weights; whole rows stand at any address.
template <class Form, class D>
HWY_INLINE auto load_weights(D d, const std::byte* from) {
    const typename Form::template Packed<D> d8;
    return Form::weights(d, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from)));
}

template <class Form, class D>
HWY_INLINE auto broadcast_group(D d, const std::byte* at) {
    using Group = std::conditional_t<row_bytes_in(Form::group) == 2, std::int16_t, std::int32_t>;
    const typename Form::template Row<D> d8;
    Group group = 0;
    std::memcpy(&group, at, sizeof(group));
    return Form::values(d, hn::BitCast(d8, hn::Set(hn::Repartition<Group, decltype(d8)>(), group)));
}

/// kChains independent sums per row and channel hide the latency of the additions where few rows
/// leave nothing else to do.
template <class Form, std::size_t kLanes, std::size_t kVectors, std::size_t kRows,
          std::size_t kChains>
HWY_INLINE void multiply_tile(const Target& to) {
    const PackedMatrix& matrix = to.matrix;
    const ChannelBlock& block = to.block;
    const std::byte* HWY_RESTRICT rows = to.rows.values;
    const std::int32_t* HWY_RESTRICT row_sums = to.rows.sums;
    const Sums<kLanes> d;
    using V = SumVector<kLanes>;
    const std::size_t groups = matrix.groups;
    const std::size_t row_bytes = matrix.row_bytes();
    constexpr std::size_t vector_bytes = kLanes * Form::weight_bytes;
    const std::byte* HWY_RESTRICT weights = to.weights;
    // Arrays of sums become registers only when no loop is left that indexes them.
    V sums[kChains][kRows][kVectors];
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
            sums[0][r][v] = bias_of<kLanes>(matrix.stage, block, v);
            REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) sums[chain][r][v] =
                hn::Zero(d);
        }
    }
    if (row_sums != nullptr) {
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            const auto more = hn::Set(d, row_sums[r]);
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[0][r][v] =
                hn::Add(sums[0][r][v], more);
        }
    }
    const auto add = [&](V(&chain)[kRows][kVectors], std::size_t k) HWY_ATTR {
        decltype(load_weights<Form>(d, weights)) factors[kVectors];
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) factors[v] =
            load_weights<Form>(d, weights + v * vector_bytes);
        weights += kVectors * vector_bytes;
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            const auto group =
                broadcast_group<Form>(d, rows + r * row_bytes + k * row_bytes_in(Form::group));
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) chain[r][v] =
                Form::add(d, group, factors[v], chain[r][v]);
        }
    };
    std::size_t k = 0;
    for (; k + kChains <= groups; k += kChains) {
        REEF_UNROLL for (std::size_t chain = 0; chain < kChains; ++chain)
            add(sums[chain], k + chain);
    }
    if constexpr (kChains > 1)
        for (; k < groups; ++k) add(sums[0], k);
    if constexpr (Form::group == GroupOf::bounded_quads)
        for (const std::uint32_t group : to.divided) add(sums[0], group);
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
            REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) sums[0][r][v] =
                hn::Add(sums[0][r][v], sums[chain][r][v]);
        }
    }
    store_tile<kLanes>(sums[0], to);
}

template <class Form, std::size_t kLanes, std::size_t kVectors, std::size_t kRows>
HWY_NOINLINE void multiply_rows(const Target& to) {
    multiply_tile<Form, kLanes, kVectors, kRows, kRows == 1 ? 4 : (kRows <= 3 ? 2 : 1)>(to);
}

/// Fewer rows than a full step takes.
template <class Form, std::size_t kLanes, std::size_t kVectors, std::size_t kRows>
HWY_INLINE void multiply_rest(std::size_t count, const Target& to) {
    if constexpr (kRows > 0) {
        if (count == kRows)
            multiply_rows<Form, kLanes, kVectors, kRows>(to);
        else
            multiply_rest<Form, kLanes, kVectors, kRows - 1>(count, to);
    }
}

/// The full steps of many rows, with the block's weights widened once; returns the number of rows
/// that it did. Widening them in every step takes 5 percent more time.
template <class Form, std::size_t kLanes, std::size_t kVectors>
HWY_NOINLINE std::size_t multiply_widened(const Target& to, std::size_t count) {
    constexpr std::size_t least_steps = 6, most_bytes = std::size_t{64} << 10;
    const Sums<kLanes> d;
    const hn::Repartition<std::int16_t, decltype(d)> d16;
    const std::size_t vectors = to.matrix.groups * kVectors;
    if (count < least_steps * most_rows || vectors * sizeof(SumVector<kLanes>) > most_bytes)
        return 0;
    alignas(64) std::int16_t widened[most_bytes / sizeof(std::int16_t)];
    for (std::size_t v = 0; v < vectors; ++v)
        hn::Store(load_weights<Form>(d, to.weights + v * kLanes * Form::weight_bytes), d16,
                  widened + v * 2 * kLanes);
    Target wide = to;
    wide.weights = reinterpret_cast<const std::byte*>(widened);
    std::size_t r = 0;
    for (; r + most_rows <= count; r += most_rows)
        multiply_rows<typename Form::Widened, kLanes, kVectors, most_rows>(wide.from(r));
    return r;
}

template <class Form, std::size_t kLanes, std::size_t kVectors>
void multiply_block(const Target& to, std::size_t count) {
    std::size_t r = 0;
    if constexpr (requires { typename Form::Widened; })
        r = multiply_widened<Form, kLanes, kVectors>(to, count);
    for (; r + most_rows <= count; r += most_rows)
        multiply_rows<Form, kLanes, kVectors, most_rows>(to.from(r));
    multiply_rest<Form, kLanes, kVectors, most_rows - 1>(count - r, to.from(r));
}

/// The sum of the products of a row of `bytes` bytes and a channel's weights.
template <class Form>
HWY_INLINE std::int32_t multiply_whole_row(const std::byte* row, const std::byte* weights,
                                           std::size_t bytes) {
    const hn::ScalableTag<std::int32_t> d;
    const typename Form::template Row<decltype(d)> d8;
    const typename Form::template Packed<decltype(d)> packed;
    constexpr std::size_t narrower = row_bytes_in(Form::group) / weight_bytes_in(Form::group);
    const std::size_t lanes = hn::Lanes(d8);
    const auto* x = reinterpret_cast<const std::uint8_t*>(row);
    const auto* w = reinterpret_cast<const std::uint8_t*>(weights);
    auto even = hn::Zero(d), odd = hn::Zero(d);
    const auto add = [&](std::size_t i, auto sums) HWY_ATTR {
        return add_of_whole_row<Form>(d, Form::values(d, hn::LoadU(d8, x + i)),
                                      load_weights<Form>(d, weights + i / narrower), sums);
    };
    std::size_t i = 0;
    for (; i + 2 * lanes <= bytes; i += 2 * lanes) {
        even = add(i, even);
        odd = add(i + lanes, odd);
    }
    for (; i + lanes <= bytes; i += lanes) even = add(i, even);
    if (i != bytes)
        odd = add_of_whole_row<Form>(
            d, Form::values(d, first_bytes(d8, x + i, bytes - i)),
            Form::weights(d, first_bytes(packed, w + i / narrower, (bytes - i) / narrower)), odd);
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

template <class Form, std::size_t kLanes, std::size_t kVectors>
HWY_NOINLINE void multiply_whole_rows(const Target& to, std::size_t count) {
    const Sums<kLanes> d;
    const std::size_t row_bytes = to.matrix.row_bytes();
    const std::size_t channel_bytes = to.matrix.channel_bytes();
    const std::byte* weights = to.weights;
    for (std::size_t r = 0; r < count; ++r) {
        const Target row = to.from(r);
        alignas(64) std::int32_t products[kLanes * kVectors] = {};
        for (std::size_t channel = 0; channel < to.block.valid; ++channel)
            products[channel] = multiply_whole_row<Form>(
                row.rows.values, weights + channel * channel_bytes, row_bytes);
        const auto more = hn::Set(d, row.rows.sums == nullptr ? 0 : *row.rows.sums);
        SumVector<kLanes> sums[kVectors];
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[v] =
            hn::Add(hn::Add(bias_of<kLanes>(to.matrix.stage, to.block, v), more),
                    hn::Load(d, products + v * kLanes));
        store_row<kLanes>(sums, to.matrix, to.block, row.rows.scales, 0, row.out);
    }
}

template <class Form>
void multiply(const PackedMatrix& matrix, Rows rows, std::size_t count, std::size_t begin,
              std::size_t end, std::byte* out, std::size_t out_stride) {
    const std::size_t value_bytes = matrix.float_output.is_used() ? sizeof(float) : 1;
    for (std::size_t i = begin; i < end; ++i) {
        const ChannelBlock& block = matrix.blocks[i];
        const Target to{matrix,
                        block,
                        matrix.weights.get() + block.weights,
                        matrix.divided_in(i),
                        rows,
                        reinterpret_cast<std::uint8_t*>(out) + block.first * value_bytes,
                        out_stride};
        if (matrix.has_whole_rows(block)) {
            multiply_whole_rows<Form, narrow_lanes, 8 / narrow_lanes>(to, count);
            continue;
        }
#if HWY_MAX_BYTES >= 64
        if (block.width == 32)
            multiply_block<Form, 16, 2>(to, count);
        else if (block.width == 16)
            multiply_block<Form, 16, 1>(to, count);
        else
            multiply_block<Form, 8, 1>(to, count);
#elif HWY_MAX_BYTES >= 32
        if (block.width == 16)
            multiply_block<Form, 8, 2>(to, count);
        else
            multiply_block<Form, 8, 1>(to, count);
#else
        if constexpr (Form::group == GroupOf::signed_octets)
            multiply_octets<Form>(to, count);
        else
            multiply_block<Form, 4, 2>(to, count);
#endif
    }
}

/// Whether the input is made of the rows as they are.
template <class Form>
[[nodiscard]] bool stands_in_rows(const Convolution& c, std::size_t row) {
    constexpr auto same =
        std::is_signed_v<typename Form::Value> ? ElementType::int8 : ElementType::uint8;
    return sizeof(typename Form::Value) == 1 && c.type == same && reads_in_order(c) &&
           static_cast<std::size_t>(c.depth) == row;
}

/// The parts of 128 bits added up.
template <class D>
HWY_INLINE SumVector<4> sum_of_parts(D /*d*/, hn::Vec<D> sums) {
    if constexpr (hn::MaxLanes(D()) == 4) {
        return sums;
    } else {
        const hn::Half<D> half;
        return sum_of_parts(half, hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums)));
    }
}

/// What every row's sums want besides: the row factor times the sum of its values, modulo 2^32.
/// Four rows at a time, whose partial sums are then added up together. `behind`: whether a vector
/// may be read behind the last row.
template <class Form>
void sum_rows(const PackedMatrix& matrix, std::size_t values, std::size_t count, bool behind,
              const Rows& rows) {
    const std::size_t bytes = values * sizeof(typename Form::Value);
    constexpr std::size_t at_once = 4;
    const hn::ScalableTag<std::int32_t> d;
    const typename Form::template Row<decltype(d)> d8;
    const hn::Repartition<std::int64_t, decltype(d)> d64;
    const std::size_t lanes = hn::Lanes(d8);
    const hn::Repartition<typename Form::Value, decltype(d8)> dv;
    const auto ones = Form::values(d, hn::BitCast(d8, hn::Set(dv, 1)));
    const std::size_t whole = bytes / lanes * lanes, rest = bytes - whole;
    const auto in_rest = hn::FirstN(d8, rest);
    const auto row_sum = [&](std::size_t row) HWY_ATTR {
        const auto* from =
            reinterpret_cast<const std::uint8_t*>(rows.values + row * matrix.row_bytes());
        auto sums = hn::Zero(d);
        for (std::size_t i = 0; i < whole; i += lanes)
            sums = Form::add(d, Form::values(d, hn::LoadU(d8, from + i)), ones, sums);
        if (rest == 0) return sums;
        // The next row's values may stand there, too: they are masked out.
        const bool readable = behind || (count - row) * matrix.row_bytes() >= whole + lanes;
        const auto last = readable ? hn::IfThenElseZero(in_rest, hn::LoadU(d8, from + whole))
                                   : first_bytes(d8, from + whole, rest);
        return Form::add(d, Form::values(d, last), ones, sums);
    };
    const auto by_two = [&](auto a, auto b) HWY_ATTR {
        return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
    };
    const Sums<at_once> d4;
    const auto factor = hn::Set(d4, matrix.row_factor);
    for (std::size_t r = 0; r < count; r += at_once) {
        const std::size_t last = count - 1;
        const auto first = hn::BitCast(d64, by_two(row_sum(r), row_sum(std::min(r + 1, last))));
        const auto second = hn::BitCast(
            d64, by_two(row_sum(std::min(r + 2, last)), row_sum(std::min(r + 3, last))));
        // Of the four rows in each part of 128 bits.
        const auto parts = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, first, second)),
                                   hn::BitCast(d, hn::InterleaveUpper(d64, first, second)));
        hn::StoreU(hn::Mul(sum_of_parts(d, parts), factor), d4, rows.sums + r);
    }
}

template <class Form>
Rows gather(const Convolution& c, const PackedMatrix& matrix, const std::byte* input,
            std::int32_t zero, PixelRange pixels, std::byte* values, std::int32_t* sums) {
    using Value = typename Form::Value;
    const std::size_t row = matrix.groups * values_in(Form::group);
    const std::size_t count = pixels.end - pixels.begin;
    Rows rows{.values = values, .sums = matrix.row_factor == 0 ? nullptr : sums};
    if (stands_in_rows<Form>(c, row))
        rows.values = input + pixels.begin * row;
    else if (c.type == ElementType::uint8)
        gather_rows<std::uint8_t>(c, input, zero, pixels, row, reinterpret_cast<Value*>(values));
    else
        gather_rows<std::int8_t>(c, input, zero, pixels, row, reinterpret_cast<Value*>(values));
    if (rows.sums != nullptr)
        sum_rows<Form>(matrix, static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth), count,
                       rows.values == values, rows);
    return rows;
}

}  // namespace

template <class Form>
const MatrixFunctions* in_bounded_quads_beside();

template <class Form>
const MatrixFunctions* functions_of() {
    // Only one target's name goes with a form.
    static const MatrixFunctions functions{
        .target = simd_target_name().data(),
        .group = Form::group,
        .widest_block = widest_block,
        .rows_at_once = Form::group == GroupOf::signed_octets ? most_octet_rows : most_rows,
        .gather = gather<Form>,
        .multiply = multiply<Form>,
        .in_bounded_quads = in_bounded_quads_beside<Form>()};
    return &functions;
}

/// Only pairs take more instructions.
template <class Form>
const MatrixFunctions* in_bounded_quads_beside() {
    if constexpr (Form::group == GroupOf::pairs && reef::HWY_NAMESPACE::has_bounded_quad_products)
        return functions_of<BoundedQuads>();
    else
        return nullptr;
}

const MatrixFunctions* target_functions() {
    if constexpr (reef::HWY_NAMESPACE::has_quad_products) {
        return functions_of<Quads>();
    } else {
        if constexpr (reef::HWY_NAMESPACE::may_have_quad_products)
            if (byte_products() == ByteProducts::dot) return functions_of<Quads>();
        if constexpr (reef::HWY_NAMESPACE::may_have_matrix_products)
            if (byte_products() == ByteProducts::matrix) return functions_of<SignedOctets>();
        if constexpr (reef::HWY_NAMESPACE::may_have_signed_quad_products)
            if (byte_products() == ByteProducts::dot) return functions_of<SignedQuads>();
        if constexpr (reef::HWY_NAMESPACE::has_signed_pair_products)
            return functions_of<SignedPairs>();
        else
            return functions_of<Pairs>();
    }
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(target_functions);

const MatrixFunctions* matrix_functions() {
    return HWY_DYNAMIC_DISPATCH(target_functions)();
}

}  // namespace reef::cpu
#endif

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
#include "cpu/fast/float_output-inl.h"
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

/// The ways to multiply: what a value is in a row, and the sum of a group's products.
struct Pairs {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::pairs;
    using Value = std::int16_t;
    template <class D, class V>
    static HWY_INLINE V add(D d, V activations, V weights, V sum) {
        const hn::Repartition<std::int16_t, D> d16;
        return add_pair_products(d, hn::BitCast(d16, activations), hn::BitCast(d16, weights), sum);
    }
};
struct Quads {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::quads;
    using Value = std::uint8_t;
    template <class D, class V>
    static HWY_INLINE V add(D d, V activations, V weights, V sum) {
        return reef::HWY_NAMESPACE::add_quad_products(d, activations, weights, sum);
    }
};
struct SignedQuads {
    [[maybe_unused]] static constexpr GroupOf group = GroupOf::signed_quads;
    using Value = std::int8_t;
    template <class D, class V>
    static HWY_INLINE V add(D d, V activations, V weights, V sum) {
        return reef::HWY_NAMESPACE::add_signed_quad_products(d, activations, weights, sum);
    }
};

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

template <class D>
HWY_INLINE hn::Vec<D> broadcast_group(D d, const std::byte* at) {
    std::int32_t group = 0;
    std::memcpy(&group, at, sizeof(group));
    return hn::Set(d, group);
}

template <std::size_t kLanes, Ties kTies, std::size_t kVectors>
HWY_INLINE void store_sums(const SumVector<kLanes> (&sums)[kVectors],
                           const std::int32_t* HWY_RESTRICT stage, const OutputStage& how,
                           std::size_t valid, std::uint8_t* HWY_RESTRICT out) {
    if constexpr (kVectors == 1)
        store_bytes<kLanes>(output_bytes<kLanes, kTies>(sums[0], stage, how), valid, out);
    else
        store_bytes<2 * kLanes>(output_bytes<kLanes, kTies>(sums[0], sums[1], stage, how), valid,
                                out);
}

/// TRANSPOSE_CONV alone rounds this way; hybrid operators do not round.
template <std::size_t kLanes, std::size_t kVectors>
HWY_NOINLINE void store_otherwise(SumVector<kLanes> (&sums)[kVectors], const PackedMatrix& matrix,
                                  const ChannelBlock& block, const RowScale* scale,
                                  std::uint8_t* out) {
    if (scale != nullptr)
        return store_as_floats<kLanes>(sums, matrix.float_output, block.first, block.valid, *scale,
                                       reinterpret_cast<float*>(out));
    store_sums<kLanes, Ties::away_from_zero>(sums, matrix.stage.rows.get() + block.stage,
                                             matrix.stage, block.valid, out);
}

/// `scales`: of the rows, or null; `row` is one of them.
template <std::size_t kLanes, std::size_t kVectors>
HWY_INLINE void store_row(const SumVector<kLanes> (&sums)[kVectors], const PackedMatrix& matrix,
                          const ChannelBlock& block, const RowScale* scales, std::size_t row,
                          std::uint8_t* out) {
    if (HWY_LIKELY(matrix.stage.ties == Ties::upwards))
        return store_sums<kLanes, Ties::upwards>(sums, matrix.stage.rows.get() + block.stage,
                                                 matrix.stage, block.valid, out);
    // A copy: what a call can reach is no register.
    SumVector<kLanes> reachable[kVectors];
    REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) reachable[v] = sums[v];
    store_otherwise<kLanes>(reachable, matrix, block, scales == nullptr ? nullptr : scales + row,
                            out);
}

/// kChains independent sums per row and channel hide the latency of the additions where few rows
/// leave nothing else to do.
template <class Form, std::size_t kLanes, std::size_t kVectors, std::size_t kRows,
          std::size_t kChains>
HWY_INLINE void multiply_tile(const PackedMatrix& matrix, const ChannelBlock& block,
                              const std::byte* HWY_RESTRICT rows,
                              const std::int32_t* HWY_RESTRICT row_sums, const RowScale* scales,
                              std::uint8_t* HWY_RESTRICT out, std::size_t out_stride) {
    const Sums<kLanes> d;
    using V = SumVector<kLanes>;
    const std::size_t groups = matrix.groups;
    const std::size_t row_bytes = matrix.row_bytes();
    const auto* HWY_RESTRICT weights =
        reinterpret_cast<const std::int32_t*>(matrix.weights.get() + block.weights);
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
    const auto add = [&](V(&to)[kRows][kVectors], std::size_t k) HWY_ATTR {
        V factors[kVectors];
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) factors[v] =
            hn::Load(d, weights + v * kLanes);
        weights += kVectors * kLanes;
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            const auto group = broadcast_group(d, rows + r * row_bytes + k * group_bytes);
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) to[r][v] =
                Form::add(d, group, factors[v], to[r][v]);
        }
    };
    std::size_t k = 0;
    for (; k + kChains <= groups; k += kChains) {
        REEF_UNROLL for (std::size_t chain = 0; chain < kChains; ++chain)
            add(sums[chain], k + chain);
    }
    if constexpr (kChains > 1)
        for (; k < groups; ++k) add(sums[0], k);
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
            REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) sums[0][r][v] =
                hn::Add(sums[0][r][v], sums[chain][r][v]);
        }
        store_row<kLanes>(sums[0][r], matrix, block, scales, r, out + r * out_stride);
    }
}

/// Where the product of some rows and a block goes.
struct Target {
    const PackedMatrix& matrix;
    const ChannelBlock& block;
    Rows rows;
    std::uint8_t* out;
    std::size_t out_stride;

    [[nodiscard]] Target from(std::size_t row) const {
        return {matrix,
                block,
                {rows.values + row * matrix.row_bytes(),
                 rows.sums == nullptr ? nullptr : rows.sums + row,
                 rows.scales == nullptr ? nullptr : rows.scales + row},
                out + row * out_stride,
                out_stride};
    }
};

template <class Form, std::size_t kLanes, std::size_t kVectors, std::size_t kRows>
HWY_NOINLINE void multiply_rows(const Target& to) {
    multiply_tile<Form, kLanes, kVectors, kRows, kRows == 1 ? 4 : (kRows <= 3 ? 2 : 1)>(
        to.matrix, to.block, to.rows.values, to.rows.sums, to.rows.scales, to.out, to.out_stride);
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

template <class Form, std::size_t kLanes, std::size_t kVectors>
void multiply_block(const Target& to, std::size_t count) {
    std::size_t r = 0;
    for (; r + most_rows <= count; r += most_rows)
        multiply_rows<Form, kLanes, kVectors, most_rows>(to.from(r));
    multiply_rest<Form, kLanes, kVectors, most_rows - 1>(count - r, to.from(r));
}

/// The sum of the products of two rows of `bytes` bytes.
template <class Form>
HWY_INLINE std::int32_t multiply_whole_row(const std::byte* row, const std::byte* weights,
                                           std::size_t bytes) {
    const hn::ScalableTag<std::int32_t> d;
    const hn::Repartition<std::uint8_t, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d8);
    const auto* x = reinterpret_cast<const std::uint8_t*>(row);
    const auto* w = reinterpret_cast<const std::uint8_t*>(weights);
    auto even = hn::Zero(d), odd = hn::Zero(d);
    const auto add = [&](std::size_t i, auto sums) HWY_ATTR {
        return Form::add(d, hn::BitCast(d, hn::LoadU(d8, x + i)),
                         hn::BitCast(d, hn::LoadU(d8, w + i)), sums);
    };
    std::size_t i = 0;
    for (; i + 2 * lanes <= bytes; i += 2 * lanes) {
        even = add(i, even);
        odd = add(i + lanes, odd);
    }
    for (; i + lanes <= bytes; i += lanes) even = add(i, even);
    if (i != bytes)
        odd = Form::add(d, hn::BitCast(d, first_bytes(d8, x + i, bytes - i)),
                        hn::BitCast(d, first_bytes(d8, w + i, bytes - i)), odd);
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

template <class Form, std::size_t kLanes, std::size_t kVectors>
HWY_NOINLINE void multiply_whole_rows(const Target& to, std::size_t count) {
    const Sums<kLanes> d;
    const std::size_t row_bytes = to.matrix.row_bytes();
    const std::byte* weights = to.matrix.weights.get() + to.block.weights;
    for (std::size_t r = 0; r < count; ++r) {
        const Target row = to.from(r);
        alignas(64) std::int32_t products[kLanes * kVectors] = {};
        for (std::size_t channel = 0; channel < to.block.valid; ++channel)
            products[channel] =
                multiply_whole_row<Form>(row.rows.values, weights + channel * row_bytes, row_bytes);
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
        const Target to{matrix, block, rows,
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
        multiply_block<Form, 4, 2>(to, count);
#endif
    }
}

/// Whether the input is made of the rows as they are.
template <class Form>
[[nodiscard]] bool stands_in_rows(const Convolution& c, std::size_t row) {
    constexpr auto same =
        std::is_signed_v<typename Form::Value> ? ElementType::int8 : ElementType::uint8;
    return Form::group != GroupOf::pairs && c.type == same && reads_in_order(c) &&
           static_cast<std::size_t>(c.depth) == row;
}

/// What every row's sums want besides: the row factor times the sum of its values, modulo 2^32.
/// Four rows at a time, whose partial sums are then added up together.
template <class Form>
void sum_rows(const PackedMatrix& matrix, std::size_t values, std::size_t count, const Rows& rows) {
    constexpr std::size_t at_once = 4;
    const hn::ScalableTag<std::int32_t> d;
    const hn::Repartition<std::uint8_t, decltype(d)> d8;
    const hn::Repartition<std::int64_t, decltype(d)> d64;
    const std::size_t lanes = hn::Lanes(d8);
    const auto ones = hn::BitCast(d, hn::Set(d8, 1));
    const auto row_sum = [&](std::size_t row) HWY_ATTR {
        const auto* from =
            reinterpret_cast<const std::uint8_t*>(rows.values + row * matrix.row_bytes());
        auto sums = hn::Zero(d);
        std::size_t i = 0;
        for (; i + lanes <= values; i += lanes)
            sums = Form::add(d, hn::BitCast(d, hn::LoadU(d8, from + i)), ones, sums);
        if (i == values) return sums;
        const auto rest = first_bytes(d8, from + i, values - i);
        return Form::add(d, hn::BitCast(d, rest), ones, sums);
    };
    const auto by_two = [&](auto a, auto b) HWY_ATTR {
        return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
    };
    for (std::size_t r = 0; r < count; r += at_once) {
        const std::size_t last = count - 1;
        const auto first = hn::BitCast(d64, by_two(row_sum(r), row_sum(std::min(r + 1, last))));
        const auto second = hn::BitCast(
            d64, by_two(row_sum(std::min(r + 2, last)), row_sum(std::min(r + 3, last))));
        // Of the four rows in each part of 128 bits; the parts are to be added up.
        auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, first, second)),
                            hn::BitCast(d, hn::InterleaveUpper(d64, first, second)));
        alignas(64) std::int32_t parts[hn::MaxLanes(d)];
        hn::Store(hn::Mul(sums, hn::Set(d, matrix.row_factor)), d, parts);
        for (std::size_t row = r; row < std::min(r + at_once, count); ++row) {
            std::uint32_t total = 0;
            for (std::size_t part = 0; part < hn::Lanes(d); part += at_once)
                total += static_cast<std::uint32_t>(parts[part + row - r]);
            rows.sums[row] = static_cast<std::int32_t>(total);
        }
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
    // Pairs leave no weight's zero point to the sums.
    if constexpr (Form::group != GroupOf::pairs)
        if (rows.sums != nullptr)
            sum_rows<Form>(matrix, static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth), count,
                           rows);
    return rows;
}

}  // namespace

template <class Form>
const MatrixFunctions* functions_of() {
    // Only one target's name goes with a form.
    static const MatrixFunctions functions{.target = simd_target_name().data(),
                                           .group = Form::group,
                                           .widest_block = widest_block,
                                           .rows_at_once = most_rows,
                                           .gather = gather<Form>,
                                           .multiply = multiply<Form>};
    return &functions;
}

const MatrixFunctions* target_functions() {
    if constexpr (reef::HWY_NAMESPACE::has_quad_products) {
        return functions_of<Quads>();
    } else {
        if constexpr (reef::HWY_NAMESPACE::may_have_quad_products)
            if (has_byte_products()) return functions_of<Quads>();
        if constexpr (reef::HWY_NAMESPACE::may_have_signed_quad_products)
            if (has_byte_products()) return functions_of<SignedQuads>();
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

namespace {

constexpr std::int32_t middle = 128;

/// What is taken off weights of that type before they are packed.
std::int32_t packed_zero(const Convolution& c, GroupOf group) {
    if (group == GroupOf::pairs) return c.weight_zero;
    return c.type == ElementType::uint8 ? middle : 0;
}

/// What activations have more in rows of bytes, where those are of the other sign.
std::int32_t flipped(const Convolution& c, GroupOf group) {
    if (group == GroupOf::quads) return c.type == ElementType::int8 ? middle : 0;
    if (group == GroupOf::signed_quads) return c.type == ElementType::uint8 ? -middle : 0;
    return 0;
}

/// A group of four int8, from `count` bytes of a row.
std::uint32_t quad_of(const std::byte* from, std::size_t count, std::uint32_t flip) {
    std::uint32_t group = 0;
    std::memcpy(&group, from, count);
    const std::uint32_t all = 0xFFFFFFFFU >> (8 * (group_bytes - count));
    return group ^ (flip & all);
}

/// A group of two int16, from `count` weights of a row.
template <typename T>
std::uint32_t pair_of(const std::byte* from, std::size_t count, std::int32_t zero) {
    const auto value = [&](std::size_t i) {
        const auto weight = static_cast<T>(std::to_integer<std::uint8_t>(from[i]));
        return static_cast<std::uint32_t>(static_cast<std::uint16_t>(weight - zero));
    };
    return count == 1 ? value(0) : value(0) | value(1) << 16;
}

/// Every row's groups where their lane has them; group(from, count) packs `count` values.
template <typename Group>
void pack_rows(const Convolution& c, const PackedMatrix& packed, std::size_t row,
               std::size_t value_bytes, std::byte* weights, const Group& group) {
    const std::size_t values = values_in(packed.group);
    for (const ChannelBlock& block : packed.blocks) {
        const bool whole = packed.has_whole_rows(block);
        const std::size_t step = whole ? group_bytes : block.width * group_bytes;
        for (std::size_t lane = 0; lane < block.width; ++lane) {
            const std::size_t channel =
                packed.group == GroupOf::floats ? lane : block.channel_of(lane);
            if (channel >= block.valid) continue;
            const std::byte* from =
                c.weights.view().data() + (block.first + channel) * row * value_bytes;
            std::byte* to = weights + block.weights;
            to += whole ? channel * packed.row_bytes() : lane * group_bytes;
            for (std::size_t k = 0; k < row; k += values, to += step) {
                const std::uint32_t one = group(from + k * value_bytes, std::min(values, row - k));
                std::memcpy(to, &one, group_bytes);
            }
        }
    }
}

PackedBytes pack_weights(const Convolution& c, const PackedMatrix& packed, std::size_t row) {
    const auto bytes = allocate_packed(packed.weights_bytes);
    if (packed.group == GroupOf::floats) {
        pack_rows(c, packed, row, sizeof(float), bytes.get(),
                  [](const std::byte* from, std::size_t) {
                      std::uint32_t one = 0;
                      std::memcpy(&one, from, sizeof(one));
                      return one;
                  });
    } else if (packed.group != GroupOf::pairs) {
        // Less 128, a byte has its highest bit flipped.
        const std::uint32_t flip = packed_zero(c, packed.group) == middle ? 0x80808080U : 0;
        pack_rows(c, packed, row, 1, bytes.get(),
                  [flip](const std::byte* from, std::size_t n) { return quad_of(from, n, flip); });
    } else if (c.type == ElementType::int8) {
        pack_rows(c, packed, row, 1, bytes.get(), [&c](const std::byte* from, std::size_t n) {
            return pair_of<std::int8_t>(from, n, c.weight_zero);
        });
    } else {
        pack_rows(c, packed, row, 1, bytes.get(), [&c](const std::byte* from, std::size_t n) {
            return pair_of<std::uint8_t>(from, n, c.weight_zero);
        });
    }
    return bytes;
}

template <typename T>
std::int32_t sum_of(Bytes weights) {
    std::uint32_t sum = 0;
    for (const std::byte weight : weights)
        sum += static_cast<std::uint32_t>(static_cast<T>(std::to_integer<std::uint8_t>(weight)));
    return static_cast<std::int32_t>(sum);
}

/// Of the bias alone, in floats.
void pack_float_stage(const Convolution& c, PackedMatrix& packed) {
    packed.stage.rows = hwy::AllocateAligned<std::int32_t>(packed.stage.size);
    std::fill_n(packed.stage.rows.get(), packed.stage.size, 0);
    for (const ChannelBlock& block : packed.blocks)
        std::memcpy(packed.stage.rows.get() + block.bias, &c.floats->bias[block.first],
                    block.valid * sizeof(float));
}

}  // namespace

PackedMatrix lay_out_matrix(const Convolution& c, GroupOf group, std::size_t widest) {
    PackedMatrix packed;
    packed.group = group;
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    const auto channels = static_cast<std::size_t>(c.out_channels);
    packed.groups = (row + values_in(group) - 1) / values_in(group);
    packed.blocks = cover_channels(channels, widest);
    for (ChannelBlock& block : packed.blocks) {
        block.weights = packed.weights_bytes;
        packed.weights_bytes +=
            packed.row_bytes() * (packed.has_whole_rows(block) ? block.valid : block.width);
    }
    if (group != GroupOf::floats && c.floats) {
        place_empty_stage(packed.blocks, packed.stage);
        return packed;
    }
    if (group != GroupOf::floats) {
        packed.row_factor = packed_zero(c, group) - c.weight_zero;
        packed.stage.size = place_output_stage(c, packed.blocks);
        return packed;
    }
    packed.float_clamp = c.floats->clamp;
    for (ChannelBlock& block : packed.blocks) {
        block.bias = packed.stage.size;
        packed.stage.size += block.width;
    }
    return packed;
}

/// Sums of (x + flip) * w, and the row factor times sums of x + flip, are to become sums of
/// (x - input zero) * (w - weight zero): what they lack is in the bias.
void pack_matrix(const Convolution& c, PackedMatrix& packed) {
    const auto row = static_cast<std::size_t>(c.h.taps * c.w.taps * c.depth);
    const std::int32_t taken_off = c.floats ? 0 : packed_zero(c, packed.group);
    packed.weights =
        share_packed(c.weights,
                     {static_cast<std::int64_t>(packed.group), static_cast<std::int64_t>(c.type),
                      static_cast<std::int64_t>(packed.blocks.front().width),
                      static_cast<std::int64_t>(packed.blocks.front().vectors), c.out_channels,
                      static_cast<std::int64_t>(row), taken_off},
                     [&] { return pack_weights(c, packed, row); });
    if (packed.group == GroupOf::floats) return pack_float_stage(c, packed);
    if (c.floats) {
        for (std::size_t channel = 0; channel < c.floats->bias.size(); ++channel)
            packed.float_output.weight_sums[channel] =
                sum_of<std::int8_t>(c.weights.view().subspan(channel * row, row));
        return;
    }
    const auto zero = static_cast<std::uint32_t>(c.input_zero + flipped(c, packed.group));
    const auto bias_of_channel = [&](const ChannelBlock&, std::size_t channel) {
        const Bytes weights = c.weights.view().subspan(channel * row, row);
        const std::int32_t sum = c.type == ElementType::int8 ? sum_of<std::int8_t>(weights)
                                                             : sum_of<std::uint8_t>(weights);
        const auto less_zero =
            static_cast<std::uint32_t>(sum) -
            static_cast<std::uint32_t>(row) * static_cast<std::uint32_t>(c.weight_zero);
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(c.bias[channel]) -
                                         zero * less_zero);
    };
    pack_output_stage(c, bias_of_channel, packed.blocks, packed.stage);
}

}  // namespace reef::cpu
#endif

#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/float_arg_max.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/worker_pool.h"
#include "cpu/prepare/arg_max.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr std::size_t float_lanes = hn::MaxLanes(hn::ScalableTag<float>());

/// What is no number beats nothing and is not beaten.
template <Extreme kWanted, class V>
HWY_INLINE auto beats(V later, V earlier) {
    if constexpr (kWanted == Extreme::largest)
        return hn::Gt(later, earlier);
    else
        return hn::Lt(later, earlier);
}

template <Extreme kWanted, class D, class V>
HWY_INLINE V extreme_of_lanes(D d, V values) {
    if constexpr (kWanted == Extreme::largest)
        return hn::MaxOfLanes(d, values);
    else
        return hn::MinOfLanes(d, values);
}

template <class D, class M>
HWY_INLINE std::uint64_t bits_of(D d, M mask) {
    std::uint8_t bytes[8];
    hn::StoreMaskBits(d, mask, bytes);
    // A load of what was not stored as one waits for the memory.
    std::conditional_t<(hn::MaxLanes(D()) > 8), std::uint16_t, std::uint8_t> bits = 0;
    static_assert(hn::MaxLanes(D()) <= 16 && std::endian::native == std::endian::little);
    std::memcpy(&bits, bytes, sizeof(bits));
    return bits;
}

/// Calls use(i) for vectors of kLanes that cover [begin, end); the last one may begin before the
/// end of the one before it, and before `begin` where there are fewer.
template <std::size_t kLanes, class Use>
HWY_INLINE void each_place(std::size_t begin, std::size_t end, const Use& use) {
    for (std::size_t i = std::min(begin, end - kLanes);;) {
        use(i);
        if (i + kLanes >= end) return;
        i = std::min(i + kLanes, end - kLanes);
    }
}

/// Index of the first largest or smallest element of a row. Where the first is no number, it is
/// that.
template <Extreme kWanted, std::size_t kLanes = float_lanes>
HWY_INLINE std::size_t first_in_row(const float* HWY_RESTRICT in, std::size_t length) {
    if constexpr (kLanes > 1)
        if (length < kLanes) return first_in_row<kWanted, kLanes / 2>(in, length);
    const hn::CappedTag<float, kLanes> d;
    auto best = hn::Set(d, in[0]);
    each_place<kLanes>(0, length, [&](std::size_t i) HWY_ATTR {
        const auto values = hn::LoadU(d, in + i);
        best = hn::IfThenElse(beats<kWanted>(values, best), values, best);
    });
    best = extreme_of_lanes<kWanted>(d, best);
    // Of as many vectors at once as the bits of a word: where the first is found is chance, and a
    // branch for each would be guessed wrong.
    constexpr std::size_t at_once = 64;
    for (std::size_t begin = 0; begin < length; begin += at_once) {
        const std::size_t end = std::min(begin + at_once, length);
        const std::size_t first = std::min(begin, end - kLanes);
        std::uint64_t found = 0;
        each_place<kLanes>(begin, end, [&](std::size_t i) HWY_ATTR {
            found |= bits_of(d, hn::Eq(hn::LoadU(d, in + i), best)) << (i - first);
        });
        if (found != 0) return first + static_cast<std::size_t>(std::countr_zero(found));
    }
    return 0;
}

/// Index of the first largest or smallest of values[0], [1], ... in each lane.
template <Extreme kWanted, class D, class Values>
HWY_INLINE void first_in_lanes(D /*d*/, std::size_t length, const Values& values,
                               std::int32_t* HWY_RESTRICT indices) {
    const hn::RebindToSigned<D> di;
    auto best = values(0);
    auto index = hn::Zero(di);
    for (std::size_t k = 1; k < length; ++k) {
        const auto later = values(k);
        const auto wins = beats<kWanted>(later, best);
        best = hn::IfThenElse(wins, later, best);
        index = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<std::int32_t>(k)),
                               index);
    }
    hn::StoreU(index, di, indices);
}

/// Rows of two to four elements: the same element of many rows becomes one vector. Returns how many
/// rows are done.
template <Extreme kWanted, typename Index>
HWY_INLINE std::size_t in_short_rows(const float* HWY_RESTRICT in, std::size_t rows,
                                     std::size_t length, Index* HWY_RESTRICT out) {
    const hn::ScalableTag<float> d;
    std::size_t row = 0;
    for (; row + float_lanes <= rows; row += float_lanes, in += length * float_lanes) {
        hn::Vec<decltype(d)> columns[4];
        if (length == 2)
            hn::LoadInterleaved2(d, in, columns[0], columns[1]);
        else if (length == 3)
            hn::LoadInterleaved3(d, in, columns[0], columns[1], columns[2]);
        else
            hn::LoadInterleaved4(d, in, columns[0], columns[1], columns[2], columns[3]);
        std::int32_t indices[float_lanes];
        first_in_lanes<kWanted>(
            d, length, [&](std::size_t k) HWY_ATTR { return columns[k]; }, indices);
        std::copy_n(indices, float_lanes, out + row);
    }
    return row;
}

template <Extreme kWanted, typename Index>
HWY_INLINE void in_rows(const float* HWY_RESTRICT in, std::size_t rows, std::size_t length,
                        Index* HWY_RESTRICT out) {
    const bool is_short = length >= 2 && length <= 4;
    for (std::size_t i = is_short ? in_short_rows<kWanted>(in, rows, length, out) : 0; i < rows;
         ++i)
        out[i] = static_cast<Index>(first_in_row<kWanted>(in + i * length, length));
}

/// Along `length` rows of which each begins `stride` elements behind the one before it: the
/// `columns` elements of each.
template <Extreme kWanted, typename Index, std::size_t kLanes = float_lanes>
HWY_INLINE void in_columns(const float* HWY_RESTRICT in, std::size_t length, std::size_t stride,
                           std::size_t columns, Index* HWY_RESTRICT out) {
    if constexpr (kLanes > 1)
        if (columns < kLanes)
            return in_columns<kWanted, Index, kLanes / 2>(in, length, stride, columns, out);
    const hn::CappedTag<float, kLanes> d;
    each_place<kLanes>(0, columns, [&](std::size_t i) HWY_ATTR {
        std::int32_t indices[kLanes];
        first_in_lanes<kWanted>(
            d, length, [&](std::size_t k) HWY_ATTR { return hn::LoadU(d, in + k * stride + i); },
            indices);
        std::copy_n(indices, kLanes, out + i);
    });
}

template <typename Index>
HWY_INLINE void find(Extreme wanted, const FloatPiece& piece, Index* out) {
    const bool largest = wanted == Extreme::largest;
    if (piece.stride > 1 && largest)
        in_columns<Extreme::largest>(piece.in, piece.length, piece.stride, piece.count, out);
    else if (piece.stride > 1)
        in_columns<Extreme::smallest>(piece.in, piece.length, piece.stride, piece.count, out);
    else if (largest)
        in_rows<Extreme::largest>(piece.in, piece.count, piece.length, out);
    else
        in_rows<Extreme::smallest>(piece.in, piece.count, piece.length, out);
}

}  // namespace

void find_i32(Extreme wanted, const FloatPiece& piece, std::int32_t* out) {
    find(wanted, piece, out);
}
void find_i64(Extreme wanted, const FloatPiece& piece, std::int64_t* out) {
    find(wanted, piece, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(find_i32);
HWY_EXPORT(find_i64);

void find_fast(Extreme wanted, const FloatPiece& piece, std::int32_t* out) {
    HWY_DYNAMIC_DISPATCH(find_i32)(wanted, piece, out);
}
void find_fast(Extreme wanted, const FloatPiece& piece, std::int64_t* out) {
    HWY_DYNAMIC_DISPATCH(find_i64)(wanted, piece, out);
}

template <typename Index>
class FloatArgMax final : public Kernel {
  public:
    FloatArgMax(const ArgMaxShape& shape, Extreme wanted) : shape_(shape), wanted_(wanted) {}

    [[nodiscard]] std::string name() const override {
        return std::string(wanted_ == Extreme::largest ? "arg_max" : "arg_min") + " fast " +
               std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        const auto* in = frame.in<float>(0);
        auto* out = frame.out<Index>(0);
        const std::size_t slab = shape_.length * shape_.inner;
        if (shape_.inner == 1) {
            frame.pool.parallel_for(
                shape_.outer, grain / slab + 1,
                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                    find_fast(wanted_, {in + begin * slab, shape_.length, 1, end - begin},
                              out + begin);
                });
            return {};
        }
        const std::size_t blocks = (shape_.inner + columns_at_once - 1) / columns_at_once;
        const std::size_t block = std::min(shape_.inner, columns_at_once) * shape_.length;
        frame.pool.parallel_for(
            shape_.outer * blocks, grain / block + 1,
            [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                for (std::size_t i = begin; i < end; ++i) {
                    const std::size_t o = i / blocks, first = i % blocks * columns_at_once;
                    find_fast(wanted_,
                              {in + o * slab + first, shape_.length, shape_.inner,
                               std::min(columns_at_once, shape_.inner - first)},
                              out + o * shape_.inner + first);
                }
            });
        return {};
    }

  private:
    /// Elements below which a second thread costs more than it gives.
    static constexpr std::size_t grain = 16384;
    static constexpr std::size_t columns_at_once = 256;

    ArgMaxShape shape_;
    Extreme wanted_;
};

}  // namespace

std::unique_ptr<Kernel> fast_float_arg_max(const ArgMaxShape& shape, Extreme wanted,
                                           ElementType index_type) {
    if (index_type == ElementType::int64)
        return std::make_unique<FloatArgMax<std::int64_t>>(shape, wanted);
    return std::make_unique<FloatArgMax<std::int32_t>>(shape, wanted);
}

}  // namespace reef::cpu
#endif

#include "base/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/arg_max.cpp"
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

/// Index of the first largest of `length` bytes; `flip` (0x80 for int8) makes them unsigned.
/// value * 256 + (255 - index) is largest exactly there. `ranks` holds 255 - index.
HWY_INLINE std::size_t first_largest(const std::uint8_t* HWY_RESTRICT in, std::size_t length,
                                     std::uint16_t flip, const std::uint16_t* HWY_RESTRICT ranks) {
    // Half a register of 16-bit lanes suits the class counts of segmentation networks.
    const hn::CappedTag<std::uint16_t, 8> d;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    const std::size_t lanes = hn::Lanes(d);
    if (length < lanes) {
        std::size_t largest = 0;
        for (std::size_t i = 1; i < length; ++i)
            if ((in[i] ^ flip) > (in[largest] ^ flip)) largest = i;
        return largest;
    }
    const auto flips = hn::Set(d, flip);
    const auto keys_at = [&](std::size_t i) HWY_ATTR {
        const auto values = hn::Xor(hn::PromoteTo(d, hn::LoadU(d8, in + i)), flips);
        return hn::Or(hn::ShiftLeft<8>(values), hn::LoadU(d, ranks + i));
    };
    auto keys = keys_at(length - lanes);
    for (std::size_t i = 0; i + lanes < length; i += lanes) keys = hn::Max(keys, keys_at(i));
    return 255U - (hn::GetLane(hn::MaxOfLanes(d, keys)) & 0xFFU);
}

template <typename Index>
HWY_INLINE void arg_max(const std::uint8_t* HWY_RESTRICT in, std::size_t rows, std::size_t length,
                        std::uint16_t flip, const std::uint16_t* HWY_RESTRICT ranks,
                        Index* HWY_RESTRICT out) {
    for (std::size_t i = 0; i < rows; ++i)
        out[i] = static_cast<Index>(first_largest(in + i * length, length, flip, ranks));
}

void arg_max_i32(const std::uint8_t* in, std::size_t rows, std::size_t length, std::uint16_t flip,
                 const std::uint16_t* ranks, std::int32_t* out) {
    arg_max(in, rows, length, flip, ranks, out);
}
void arg_max_i64(const std::uint8_t* in, std::size_t rows, std::size_t length, std::uint16_t flip,
                 const std::uint16_t* ranks, std::int64_t* out) {
    arg_max(in, rows, length, flip, ranks, out);
}

/// Of columns: `columns` of them, at most a vector's lanes, `inner` bytes from row to row. Nothing
/// is read from `end` on.
template <typename Index>
HWY_INLINE void first_largest_rows(const std::uint8_t* HWY_RESTRICT in, const std::uint8_t* end,
                                   const ArgMaxShape& shape, std::size_t columns, std::uint8_t flip,
                                   Index* HWY_RESTRICT out) {
    const hn::CappedTag<std::uint8_t, 64> d;
    const std::size_t lanes = hn::Lanes(d);
    const auto row = [&](std::size_t k) HWY_ATTR {
        const std::uint8_t* at = in + k * shape.inner;
        if (HWY_LIKELY(static_cast<std::size_t>(end - at) >= lanes))
            return hn::Xor(hn::LoadU(d, at), hn::Set(d, flip));
        alignas(64) std::uint8_t bytes[hn::MaxLanes(d)] = {};
        std::copy_n(at, columns, bytes);
        return hn::Xor(hn::Load(d, bytes), hn::Set(d, flip));
    };
    auto most = row(0);
    for (std::size_t k = 1; k < shape.length; ++k) most = hn::Max(most, row(k));
    std::uint64_t wanted = ~std::uint64_t{0} >> (64 - columns);
    for (std::size_t k = 0; wanted != 0; ++k) {
        std::uint8_t bytes[8] = {};
        hn::StoreMaskBits(d, hn::Eq(row(k), most), bytes);
        std::uint64_t found = 0;
        std::memcpy(&found, bytes, sizeof(found));
        found &= wanted;
        wanted &= ~found;
        for (; found != 0; found &= found - 1) out[std::countr_zero(found)] = static_cast<Index>(k);
    }
}

/// Along the rows of `slabs` matrices of length x inner bytes.
template <typename Index>
HWY_INLINE void arg_max_of_columns(const std::uint8_t* HWY_RESTRICT in, std::size_t slabs,
                                   const ArgMaxShape& shape, std::uint8_t flip,
                                   Index* HWY_RESTRICT out) {
    const std::size_t lanes = hn::Lanes(hn::CappedTag<std::uint8_t, 64>());
    const std::size_t slab = shape.length * shape.inner;
    for (std::size_t o = 0; o < slabs; ++o)
        for (std::size_t i = 0; i < shape.inner; i += lanes)
            first_largest_rows(in + o * slab + i, in + slabs * slab, shape,
                               std::min(lanes, shape.inner - i), flip, out + o * shape.inner + i);
}

void columns_i32(const std::uint8_t* in, std::size_t slabs, const ArgMaxShape& shape,
                 std::uint8_t flip, std::int32_t* out) {
    arg_max_of_columns(in, slabs, shape, flip, out);
}
void columns_i64(const std::uint8_t* in, std::size_t slabs, const ArgMaxShape& shape,
                 std::uint8_t flip, std::int64_t* out) {
    arg_max_of_columns(in, slabs, shape, flip, out);
}

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <array>

namespace reef::cpu {
namespace {

HWY_EXPORT(arg_max_i32);
HWY_EXPORT(arg_max_i64);
HWY_EXPORT(columns_i32);
HWY_EXPORT(columns_i64);

constexpr auto ranks = [] {
    std::array<std::uint16_t, 256> table{};
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint16_t>(255 - i);
    return table;
}();

void arg_max_fast(const std::uint8_t* in, std::size_t rows, std::size_t length, std::uint16_t flip,
                  std::int32_t* out) {
    HWY_DYNAMIC_DISPATCH(arg_max_i32)(in, rows, length, flip, ranks.data(), out);
}
void arg_max_fast(const std::uint8_t* in, std::size_t rows, std::size_t length, std::uint16_t flip,
                  std::int64_t* out) {
    HWY_DYNAMIC_DISPATCH(arg_max_i64)(in, rows, length, flip, ranks.data(), out);
}

void arg_max_of_columns(const std::uint8_t* in, std::size_t slabs, const ArgMaxShape& shape,
                        std::uint8_t flip, std::int32_t* out) {
    HWY_DYNAMIC_DISPATCH(columns_i32)(in, slabs, shape, flip, out);
}
void arg_max_of_columns(const std::uint8_t* in, std::size_t slabs, const ArgMaxShape& shape,
                        std::uint8_t flip, std::int64_t* out) {
    HWY_DYNAMIC_DISPATCH(columns_i64)(in, slabs, shape, flip, out);
}

template <typename Index>
class FastArgMax final : public Kernel {
  public:
    FastArgMax(const ArgMaxShape& shape, ElementType type)
        : shape_(shape), flip_(type == ElementType::int8 ? 0x80 : 0) {}

    [[nodiscard]] std::string name() const override {
        return "arg_max fast " + std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        if (shape_.inner > 1) {
            const std::size_t slab = shape_.length * shape_.inner;
            frame.pool.parallel_for(
                shape_.outer, 32768 / slab + 1,
                [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                    arg_max_of_columns(frame.in<std::uint8_t>(0) + begin * slab, end - begin,
                                       shape_, static_cast<std::uint8_t>(flip_),
                                       frame.out<Index>(0) + begin * shape_.inner);
                });
            return {};
        }
        frame.pool.parallel_for(
            shape_.outer, 1024, [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                arg_max_fast(frame.in<std::uint8_t>(0) + begin * shape_.length, end - begin,
                             shape_.length, flip_, frame.out<Index>(0) + begin);
            });
        return {};
    }

  private:
    ArgMaxShape shape_;
    std::uint16_t flip_;
};

}  // namespace

std::unique_ptr<Kernel> fast_arg_max(const ArgMaxShape& shape, ElementType type,
                                     ElementType index_type) {
    if (index_type == ElementType::int64)
        return std::make_unique<FastArgMax<std::int64_t>>(shape, type);
    return std::make_unique<FastArgMax<std::int32_t>>(shape, type);
}

}  // namespace reef::cpu
#endif

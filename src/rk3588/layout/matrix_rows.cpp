#include "rk3588/layout/matrix_rows.h"

#include <cstdint>
#include <cstring>

#include "base/vector_targets.h"
#include "reef_spec/rk3588_machine.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rk3588/layout/matrix_rows.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace reef::rk3588::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t lanes = spec::kernel_lanes;

/// A line of each row, which are read once: rows a power of two apart share few places of the
/// cache.
template <typename T>
struct Lines {
    static constexpr std::size_t columns = turned_bytes / sizeof(T);
    alignas(turned_bytes) T at[lanes][columns];
};

#if HWY_TARGET == HWY_SCALAR
template <bool past_caches, typename T>
HWY_INLINE void turn(const Lines<T>& lines, std::size_t column, T* to) {
    constexpr std::size_t side = 16 / sizeof(T);
    for (std::size_t i = 0; i < side; ++i)
        for (std::size_t lane = 0; lane < lanes; ++lane)
            to[i * lanes + lane] = lines.at[lane][column + i];
}
#else
/// Rows of as many squares of 16 bytes a side as a vector has blocks, one below the other.
template <typename T, class D>
HWY_INLINE hn::Vec<D> rows_of(D d, const Lines<T>& lines, std::size_t lane, std::size_t column) {
    constexpr std::size_t side = 16 / sizeof(T);
    const hn::CappedTag<T, side> block;
    if constexpr (hn::MaxLanes(D{}) == side) {
        return hn::LoadU(d, &lines.at[lane][column]);
    } else {
        return hn::Combine(d, hn::LoadU(block, &lines.at[lane + side][column]),
                           hn::LoadU(block, &lines.at[lane][column]));
    }
}

/// Past the caches: nobody reads weights soon, and lines that are written whole are not read
/// before.
template <bool past_caches, typename T, class D>
HWY_INLINE void store(D d, hn::Vec<D> values, T* to) {
    constexpr std::size_t side = 16 / sizeof(T);
    const hn::CappedTag<T, side> block;
    if constexpr (!past_caches) {
        hn::StoreU(values, d, to);
    } else if constexpr (hn::MaxLanes(D{}) == side) {
        hn::Stream(values, d, to);
    } else {
        hn::Stream(hn::LowerHalf(block, values), block, to);
        hn::Stream(hn::UpperHalf(block, values), block, to + side);
    }
}

/// Columns of a square become its rows: kernels with all their lanes.
template <bool past_caches, typename T>
HWY_INLINE void turn(const Lines<T>& lines, std::size_t column, T* to) {
    constexpr std::size_t side = 16 / sizeof(T);
    const hn::CappedTag<T, 2 * side> d;
    using V = hn::Vec<decltype(d)>;
    constexpr std::size_t step = hn::MaxLanes(decltype(d){});
    for (std::size_t lane = 0; lane < lanes; lane += step) {
        // In registers only when nothing is a loop.
        V rows[side], next[side];
#pragma GCC unroll 16
        for (std::size_t i = 0; i < side; ++i) rows[i] = rows_of<T>(d, lines, lane + i, column);
#pragma GCC unroll 4
        for (std::size_t round = 1; round < side; round *= 2) {
#pragma GCC unroll 8
            for (std::size_t i = 0; i < side / 2; ++i) {
                next[2 * i] = hn::InterleaveLower(d, rows[i], rows[i + side / 2]);
                next[2 * i + 1] = hn::InterleaveUpper(d, rows[i], rows[i + side / 2]);
            }
#pragma GCC unroll 16
            for (std::size_t i = 0; i < side; ++i) rows[i] = next[i];
        }
#pragma GCC unroll 16
        for (std::size_t i = 0; i < side; ++i)
            store<past_caches>(d, rows[i], to + i * lanes + lane);
    }
}
#endif

template <bool past_caches, typename T, std::size_t group>
HWY_INLINE void turn_all(const T* from, std::size_t pitch, std::size_t columns,
                         std::size_t group_pitch, T* to) {
    // Memory is asked so far ahead of the line that is read.
    constexpr std::size_t ahead = 2 * turned_bytes / sizeof(T);
    constexpr std::size_t side = 16 / sizeof(T);
    Lines<T> lines;
    for (std::size_t c = 0; c < columns; c += Lines<T>::columns) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const T* row = from + lane * pitch + c;
            if (c + ahead < columns) hwy::Prefetch(row + ahead);
            std::memcpy(lines.at[lane], row, turned_bytes);
        }
        for (std::size_t k = 0; k < Lines<T>::columns; k += side)
            turn<past_caches>(lines, k,
                              to + (c + k) / group * group_pitch + (c + k) % group * lanes);
    }
}

/// Stores past the caches take places at multiples of 16 bytes, and end before others read.
template <typename T, std::size_t group>
HWY_INLINE void turn_to_place(const T* from, std::size_t pitch, std::size_t columns,
                              std::size_t group_pitch, T* to) {
    if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0)
        return turn_all<false, T, group>(from, pitch, columns, group_pitch, to);
    turn_all<true, T, group>(from, pitch, columns, group_pitch, to);
    hwy::FlushStream();
}

void turn_bytes(const std::uint8_t* from, std::size_t pitch, std::size_t columns,
                std::size_t group_pitch, std::uint8_t* to) {
    turn_to_place<std::uint8_t, spec::int8_group_kernels>(from, pitch, columns, group_pitch, to);
}
void turn_halves(const std::uint16_t* from, std::size_t pitch, std::size_t columns,
                 std::size_t group_pitch, std::uint16_t* to) {
    turn_to_place<std::uint16_t, spec::fp16_group_kernels>(from, pitch, columns, group_pitch, to);
}

}  // namespace reef::rk3588::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::rk3588 {

HWY_EXPORT(turn_bytes);
HWY_EXPORT(turn_halves);

void turn_rows(const std::uint8_t* from, std::size_t pitch, std::size_t columns,
               std::size_t group_pitch, std::uint8_t* to) {
    HWY_DYNAMIC_DISPATCH(turn_bytes)(from, pitch, columns, group_pitch, to);
}
void turn_rows(const std::uint16_t* from, std::size_t pitch, std::size_t columns,
               std::size_t group_pitch, std::uint16_t* to) {
    HWY_DYNAMIC_DISPATCH(turn_halves)(from, pitch, columns, group_pitch, to);
}

}  // namespace reef::rk3588
#endif

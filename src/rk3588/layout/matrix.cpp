// Matrices as weights. The bytes go through squares of 16 bytes a side, so that both sides are read
// and written in whole runs: of rows, so that reading goes on where it was, a block of lanes at a
// time.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "reef/rk3588/layout.h"
#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

constexpr std::size_t lanes = spec::kernel_lanes;

/// A block of weights: `group` kernels of 32 lanes, and which of them the matrix has.
struct Block {
    std::size_t first_kernel = 0, kernels = 0;
    std::size_t first_lane = 0, known = 0;
};

/// A row of a square, which compilers keep in a vector register. Of two rows the lower or the upper
/// halves, element by element in turns.
struct Bytes16 {
    typedef std::uint8_t Row __attribute__((vector_size(16)));
    static Row lower(Row a, Row b) {
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                       23);
    }
    static Row upper(Row a, Row b) {
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                       15, 31);
    }
};
struct Halves8 {
    typedef std::uint16_t Row __attribute__((vector_size(16)));
    static Row lower(Row a, Row b) {
        return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    }
    static Row upper(Row a, Row b) {
        return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
};
template <typename T>
using RowsOf = std::conditional_t<sizeof(T) == 1, Bytes16, Halves8>;

/// Rows of a square become its columns. Pitches in elements.
template <typename T>
void transpose_square(const T* from, std::size_t from_pitch, T* to, std::size_t to_pitch) {
    constexpr std::size_t side = 16 / sizeof(T);
    using Rows = RowsOf<T>;
    typename Rows::Row rows[side], next[side];
    for (std::size_t i = 0; i < side; ++i)
        std::memcpy(&rows[i], from + i * from_pitch, sizeof rows[i]);
    for (std::size_t round = 1; round < side; round *= 2) {
        for (std::size_t i = 0; i < side / 2; ++i) {
            next[2 * i] = Rows::lower(rows[i], rows[i + side / 2]);
            next[2 * i + 1] = Rows::upper(rows[i], rows[i + side / 2]);
        }
        for (std::size_t i = 0; i < side; ++i) rows[i] = next[i];
    }
    for (std::size_t i = 0; i < side; ++i) std::memcpy(to + i * to_pitch, &rows[i], sizeof rows[i]);
}

template <typename T>
T element(const MatrixStretch& s, const T* matrix, std::size_t lane, std::size_t kernel) {
    return s.by_columns ? matrix[kernel * s.k + s.first + lane]
                        : matrix[(s.first + lane) * s.n + kernel];
}

/// A block at an edge of the matrix.
template <typename T>
void pack_edge(const MatrixStretch& s, const T* matrix, std::size_t group, const Block& b, T* to) {
    for (std::size_t k = 0; k < group; ++k)
        for (std::size_t lane = 0; lane < lanes; ++lane)
            to[k * lanes + lane] = k < b.kernels && lane < b.known
                                       ? element(s, matrix, b.first_lane + lane, b.first_kernel + k)
                                       : T{0};
}

template <typename T>
void pack_whole(const MatrixStretch& s, const T* matrix, std::size_t group, const Block& b, T* to) {
    if (s.by_columns) {
        for (std::size_t k = 0; k < group; ++k)
            std::memcpy(to + k * lanes,
                        matrix + (b.first_kernel + k) * s.k + s.first + b.first_lane,
                        lanes * sizeof(T));
        return;
    }
    constexpr std::size_t side = 16 / sizeof(T);
    for (std::size_t lane = 0; lane < lanes; lane += side)
        for (std::size_t k = 0; k < group; k += side)
            transpose_square(matrix + (s.first + b.first_lane + lane) * s.n + b.first_kernel + k,
                             s.n, to + k * lanes + lane, lanes);
}

template <typename T>
void pack(const MatrixStretch& s, std::size_t group, Bytes matrix, MutableBytes packed) {
    const std::size_t blocks = (s.count + lanes - 1) / lanes, groups = (s.n + group - 1) / group;
    assert(matrix.size() == s.k * s.n * sizeof(T) &&
           packed.size() >= blocks * groups * group * lanes * sizeof(T));
    const auto* from = reinterpret_cast<const T*>(matrix.data());
    auto* to = reinterpret_cast<T*>(packed.data());
    const std::size_t stored = packed.size() / (groups * group * sizeof(T)) / lanes;
    std::fill(to, to + packed.size() / sizeof(T) * (blocks < stored ? 1 : 0), T{0});
    const auto block = [&](std::size_t g, std::size_t l) {
        const Block b{g * group, std::min(group, s.n - g * group), l * lanes,
                      std::min(lanes, s.count - l * lanes)};
        T* at = to + (g * stored + l) * group * lanes;
        if (b.kernels == group && b.known == lanes)
            pack_whole(s, from, group, b, at);
        else
            pack_edge(s, from, group, b, at);
    };
    // Along the runs of the matrix: a few are read at once.
    if (s.by_columns)
        for (std::size_t g = 0; g < groups; ++g)
            for (std::size_t l = 0; l < blocks; ++l) block(g, l);
    else
        for (std::size_t l = 0; l < blocks; ++l)
            for (std::size_t g = 0; g < groups; ++g) block(g, l);
}

}  // namespace

void pack_int8_matrix(const MatrixStretch& stretch, Bytes matrix, MutableBytes packed) {
    pack<std::uint8_t>(stretch, spec::int8_group_kernels, matrix, packed);
}

void pack_fp16_matrix(const MatrixStretch& stretch, Bytes matrix, MutableBytes packed) {
    pack<std::uint16_t>(stretch, spec::fp16_group_kernels, matrix, packed);
}

}  // namespace reef::rk3588

// Matrices as weights. The bytes go through squares of 16 bytes a side, so that both sides are read
// and written in whole runs: of rows, so that reading goes on where it was, a block of lanes at a
// time.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "reef/rk3588/layout.h"
#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

constexpr std::size_t lanes = spec::kernel_lanes;

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

/// A cache line of the matrix.
constexpr std::size_t line_bytes = 64;

/// Past the caches where the machine can and the place allows it: nobody reads weights soon.
template <typename Row>
void store(void* to, const Row& row) {
#ifdef __SSE2__
    _mm_stream_si128(static_cast<__m128i*>(to), std::bit_cast<__m128i>(row));
#else
    std::memcpy(to, &row, sizeof row);
#endif
}
void end_of_stores() {
#ifdef __SSE2__
    _mm_sfence();
#endif
}
bool is_place_for_stores(const void* to) {
    return reinterpret_cast<std::uintptr_t>(to) % 16 == 0;
}

/// Rows of a square become its columns. Pitch in elements.
template <typename T>
void transpose_square(const T* from, std::size_t pitch, typename RowsOf<T>::Row* rows) {
    constexpr std::size_t side = 16 / sizeof(T);
    using Rows = RowsOf<T>;
    // In registers only when nothing is a loop.
#pragma GCC unroll 16
    for (std::size_t i = 0; i < side; ++i) std::memcpy(&rows[i], from + i * pitch, sizeof rows[i]);
#pragma GCC unroll 4
    for (std::size_t round = 1; round < side; round *= 2) {
        typename Rows::Row next[side];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < side / 2; ++i) {
            next[2 * i] = Rows::lower(rows[i], rows[i + side / 2]);
            next[2 * i + 1] = Rows::upper(rows[i], rows[i + side / 2]);
        }
#pragma GCC unroll 16
        for (std::size_t i = 0; i < side; ++i) rows[i] = next[i];
    }
}

/// Weights of whole groups of kernels and of blocks of lanes, or with what fills them up.
template <typename T, std::size_t group>
class Packing {
  public:
    Packing(const MatrixStretch& stretch, Bytes matrix, MutableBytes packed)
        : s_(stretch),
          from_(reinterpret_cast<const T*>(matrix.data())),
          to_(reinterpret_cast<T*>(packed.data())),
          blocks_((stretch.count + lanes - 1) / lanes),
          groups_((stretch.n + group - 1) / group),
          stored_(packed.size() / (groups_ * group * sizeof(T)) / lanes),
          streams_(is_place_for_stores(packed.data())) {
        assert(matrix.size() == stretch.k * stretch.n * sizeof(T) && stored_ >= blocks_);
        if (blocks_ < stored_) std::fill_n(to_, packed.size() / sizeof(T), T{0});
    }

    void run() {
        // Along the runs of the matrix, a line of each of 32 runs at a time.
        if (s_.by_columns)
            for (std::size_t g = 0; g < groups_; ++g)
                for (std::size_t l = 0; l < blocks_;) l += by_columns(g, l);
        else
            for (std::size_t l = 0; l < blocks_; ++l)
                for (std::size_t g = 0; g < groups_;) g += by_rows(g, l);
        if (streams_) end_of_stores();
    }

  private:
    static constexpr std::size_t of_line = line_bytes / sizeof(T);
    using Row = typename RowsOf<T>::Row;

    [[nodiscard]] T* place(std::size_t g, std::size_t l) const {
        return to_ + (g * stored_ + l) * group * lanes;
    }
    [[nodiscard]] bool is_whole(std::size_t g, std::size_t l, std::size_t more_groups,
                                std::size_t more_blocks) const {
        return streams_ && (g + more_groups) * group <= s_.n &&
               (l + more_blocks) * lanes <= s_.count;
    }

    /// Blocks that were packed.
    std::size_t by_columns(std::size_t g, std::size_t l) const {
        constexpr std::size_t blocks = of_line / lanes, rows = line_bytes / sizeof(Row);
        if (!is_whole(g, l, 1, blocks)) return edge(g, l);
        for (std::size_t k = 0; k < group; ++k) {
            const T* run = from_ + (g * group + k) * s_.k + s_.first + l * lanes;
            for (std::size_t i = 0; i < rows; ++i) {
                Row row;
                std::memcpy(&row, run + i * (of_line / rows), sizeof row);
                constexpr std::size_t of_block = rows / blocks;
                T* to = place(g, l + i / of_block) + k * lanes;
                store(to + i % of_block * (of_line / rows), row);
            }
        }
        return blocks;
    }

    /// Groups that were packed.
    std::size_t by_rows(std::size_t g, std::size_t l) const {
        constexpr std::size_t groups = of_line / group, side = 16 / sizeof(T);
        if (!is_whole(g, l, groups, 1)) return edge(g, l);
        // Rows a power of two apart share few places of the cache: their lines are read once.
        alignas(line_bytes) T lines[lanes][of_line];
        for (std::size_t lane = 0; lane < lanes; ++lane)
            std::memcpy(lines[lane], from_ + (s_.first + l * lanes + lane) * s_.n + g * group,
                        line_bytes);
        for (std::size_t k = 0; k < of_line; k += side) {
            Row squares[lanes / side][side];
            for (std::size_t q = 0; q < lanes / side; ++q)
                transpose_square<T>(&lines[q * side][k], of_line, squares[q]);
            T* to = place(g + k / group, l) + k % group * lanes;
            for (std::size_t i = 0; i < side; ++i)
                for (std::size_t q = 0; q < lanes / side; ++q)
                    store(to + i * lanes + q * side, squares[q][i]);
        }
        return groups;
    }

    /// One block by its elements.
    std::size_t edge(std::size_t g, std::size_t l) const {
        T* to = place(g, l);
        for (std::size_t k = 0; k < group; ++k)
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                const std::size_t kernel = g * group + k, row = l * lanes + lane;
                const bool known = kernel < s_.n && row < s_.count;
                to[k * lanes + lane] = !known          ? T{0}
                                       : s_.by_columns ? from_[kernel * s_.k + s_.first + row]
                                                       : from_[(s_.first + row) * s_.n + kernel];
            }
        return 1;
    }

    const MatrixStretch& s_;
    const T* from_;
    T* to_;
    std::size_t blocks_, groups_, stored_;
    bool streams_;
};

}  // namespace

void pack_int8_matrix(const MatrixStretch& stretch, Bytes matrix, MutableBytes packed) {
    Packing<std::uint8_t, spec::int8_group_kernels>(stretch, matrix, packed).run();
}

void pack_fp16_matrix(const MatrixStretch& stretch, Bytes matrix, MutableBytes packed) {
    Packing<std::uint16_t, spec::fp16_group_kernels>(stretch, matrix, packed).run();
}

}  // namespace reef::rk3588

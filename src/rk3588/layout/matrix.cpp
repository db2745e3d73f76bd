// Matrices as weights: both sides are read and written in whole runs.
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "reef/rk3588/layout.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/layout/matrix_rows.h"

namespace reef::rk3588 {
namespace {

constexpr std::size_t lanes = spec::kernel_lanes;

/// A cache line of the matrix.
constexpr std::size_t line_bytes = turned_bytes;

/// Past the caches where the machine can and the place allows it: nobody reads weights soon.
void copy16(void* to, const void* from) {
#ifdef __SSE2__
    _mm_stream_si128(static_cast<__m128i*>(to), _mm_loadu_si128(static_cast<const __m128i*>(from)));
#else
    std::memcpy(to, from, 16);
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
          streams_(s_.by_columns && is_place_for_stores(packed.data())) {
        assert(matrix.size() == stretch.k * stretch.n * sizeof(T) && stored_ >= blocks_);
        if (blocks_ < stored_) std::fill_n(to_, packed.size() / sizeof(T), T{0});
    }

    void run() {
        // Along the runs of the matrix, a line of each of 32 runs at a time.
        if (s_.by_columns)
            for (std::size_t g = 0; g < groups_; ++g)
                for (std::size_t l = 0; l < blocks_;) l += by_columns(g, l);
        else
            for (std::size_t l = 0; l < blocks_; ++l) by_rows(l);
        if (streams_) end_of_stores();
    }

  private:
    static constexpr std::size_t of_line = line_bytes / sizeof(T);

    [[nodiscard]] T* place(std::size_t g, std::size_t l) const {
        return to_ + (g * stored_ + l) * group * lanes;
    }
    [[nodiscard]] bool is_whole(std::size_t g, std::size_t l, std::size_t more_groups,
                                std::size_t more_blocks) const {
        return (g + more_groups) * group <= s_.n && (l + more_blocks) * lanes <= s_.count;
    }

    /// Blocks that were packed.
    std::size_t by_columns(std::size_t g, std::size_t l) const {
        constexpr std::size_t blocks = of_line / lanes, run = 16 / sizeof(T);
        if (!streams_ || !is_whole(g, l, 1, blocks)) return edge(g, l);
        for (std::size_t k = 0; k < group; ++k) {
            const T* column = from_ + (g * group + k) * s_.k + s_.first + l * lanes;
            for (std::size_t i = 0; i < of_line; i += run)
                copy16(place(g, l + i / lanes) + k * lanes + i % lanes, column + i);
        }
        return blocks;
    }

    /// All groups.
    void by_rows(std::size_t l) const {
        const std::size_t lines = s_.n / of_line * of_line;
        std::size_t g = 0;
        if (lines > 0 && is_whole(0, l, lines / group, 1)) {
            turn_rows(from_ + (s_.first + l * lanes) * s_.n, s_.n, lines, stored_ * group * lanes,
                      place(0, l));
            g = lines / group;
        }
        while (g < groups_) g += edge(g, l);
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

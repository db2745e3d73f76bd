// The tile of a matrix product whose sums are small matrices themselves (ARM's i8mm): two rows of
// activations by two channels. Include it per target, after hwy/highway.h.
#if defined(REEF_CPU_FAST_MATRIX_TILE_I8MM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef REEF_CPU_FAST_MATRIX_TILE_I8MM_INL_H
#undef REEF_CPU_FAST_MATRIX_TILE_I8MM_INL_H
#else
#define REEF_CPU_FAST_MATRIX_TILE_I8MM_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "cpu/fast/matrix_output-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET != HWY_SCALAR

/// Their 16 sums, the weights of 16 depths and two rows are 26 of 32 registers.
inline constexpr std::size_t most_octet_rows = 8;

/// The sums of kRows rows and a block of eight channels. An odd row is its own neighbour: half of
/// what it is multiplied to is not stored. Few rows have two chains of sums, which hide the latency
/// of additions.
template <class Form, std::size_t kRows>
struct OctetTile {
    static constexpr std::size_t row_pairs = (kRows + 1) / 2, channel_pairs = 4;
    static constexpr std::size_t chains = row_pairs <= 2 ? 2 : 1;
    using D = Sums<4>;
    using D64 = hn::Repartition<std::uint64_t, D>;
    using V = SumVector<4>;

    /// Lanes 2i and 2i + 1 are channels 2j and 2j + 1 of row i of a pair.
    V sums[chains][row_pairs][channel_pairs];

    /// From the bias.
    HWY_INLINE OctetTile(const OutputStage& stage, const ChannelBlock& block) {
        const D64 d64;
        REEF_UNROLL for (std::size_t j = 0; j < channel_pairs; j += 2) {
            const auto bias = hn::BitCast(d64, bias_of<4>(stage, block, j / 2));
            REEF_UNROLL for (std::size_t p = 0; p < row_pairs; ++p) {
                sums[0][p][j] = hn::BitCast(D(), hn::InterleaveLower(d64, bias, bias));
                sums[0][p][j + 1] = hn::BitCast(D(), hn::InterleaveUpper(d64, bias, bias));
                REEF_UNROLL for (std::size_t chain = 1; chain < chains; ++chain) {
                    sums[chain][p][j] = hn::Zero(D());
                    sums[chain][p][j + 1] = hn::Zero(D());
                }
            }
        }
    }

    /// One group of depths.
    HWY_INLINE void add(V (&to)[channel_pairs], V rows, const V (&weights)[channel_pairs]) {
        REEF_UNROLL for (std::size_t j = 0; j < channel_pairs; ++j) to[j] =
            Form::add_matrix(D(), rows, weights[j], to[j]);
    }

    HWY_INLINE void multiply(const std::byte* HWY_RESTRICT values, std::size_t row_bytes,
                             const std::byte* HWY_RESTRICT packed) {
        const D64 d64;
        const std::byte* row[2 * row_pairs];
        REEF_UNROLL for (std::size_t r = 0; r < 2 * row_pairs; ++r) row[r] =
            values + std::min(r, kRows - 1) * row_bytes;
        const auto load = [](auto d, const std::byte* from) HWY_ATTR {
            const hn::Repartition<std::uint8_t, decltype(d)> bytes;
            return hn::BitCast(d, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(from)));
        };
        const auto next_weights = [&](V(&weights)[channel_pairs]) HWY_ATTR {
            REEF_UNROLL for (std::size_t j = 0; j < channel_pairs; ++j) weights[j] =
                hn::Load(D(), reinterpret_cast<const std::int32_t*>(packed) + j * 4);
            packed += channel_pairs * sizeof(V);
        };
        V weights[channel_pairs], odd_weights[channel_pairs];
        std::size_t k = 0;
        for (; k + 16 <= row_bytes; k += 16) {
            next_weights(weights);
            next_weights(odd_weights);
            REEF_UNROLL for (std::size_t p = 0; p < row_pairs; ++p) {
                const auto a = load(d64, row[2 * p] + k);
                const auto b = load(d64, row[2 * p + 1] + k);
                add(sums[0][p], hn::BitCast(D(), hn::InterleaveLower(d64, a, b)), weights);
                add(sums[chains - 1][p], hn::BitCast(D(), hn::InterleaveUpper(d64, a, b)),
                    odd_weights);
            }
        }
        if (k == row_bytes) return;
        next_weights(weights);
        REEF_UNROLL for (std::size_t p = 0; p < row_pairs; ++p) {
            const auto a = load(hn::Half<D64>(), row[2 * p] + k);
            const auto b = load(hn::Half<D64>(), row[2 * p + 1] + k);
            add(sums[0][p], hn::BitCast(D(), hn::Combine(d64, b, a)), weights);
        }
    }

    /// The sums of row r in the block's order of lanes.
    HWY_INLINE void row(std::size_t r, V (&lanes)[2]) const {
        const D64 d64;
        REEF_UNROLL for (std::size_t v = 0; v < 2; ++v) {
            const auto sum = [&](std::size_t j) HWY_ATTR {
                V all = sums[0][r / 2][j];
                REEF_UNROLL for (std::size_t chain = 1; chain < chains; ++chain) all =
                    hn::Add(all, sums[chain][r / 2][j]);
                return hn::BitCast(d64, all);
            };
            const auto first = sum(2 * v), second = sum(2 * v + 1);
            lanes[v] = hn::BitCast(D(), r % 2 == 0 ? hn::InterleaveLower(d64, first, second)
                                                   : hn::InterleaveUpper(d64, first, second));
        }
    }
};

template <class Form, std::size_t kRows>
HWY_NOINLINE void multiply_octet_rows(const Target& to) {
    OctetTile<Form, kRows> tile(to.matrix.stage, to.block);
    tile.multiply(to.rows.values, to.matrix.row_bytes(), to.weights);
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        SumVector<4> sums[2];
        tile.row(r, sums);
        if (to.rows.sums != nullptr) {
            const auto more = hn::Set(Sums<4>(), to.rows.sums[r]);
            REEF_UNROLL for (std::size_t v = 0; v < 2; ++v) sums[v] = hn::Add(sums[v], more);
        }
        store_row<4>(sums, to.matrix, to.block, to.rows.scales, r, to.out + r * to.out_stride);
    }
}

/// Fewer rows than a full step takes.
template <class Form, std::size_t kRows>
HWY_INLINE void multiply_octet_rest(std::size_t count, const Target& to) {
    if constexpr (kRows > 0) {
        if (count == kRows)
            multiply_octet_rows<Form, kRows>(to);
        else
            multiply_octet_rest<Form, kRows - 1>(count, to);
    }
}

template <class Form>
void multiply_octets(const Target& to, std::size_t count) {
    std::size_t r = 0;
    for (; r + most_octet_rows <= count; r += most_octet_rows)
        multiply_octet_rows<Form, most_octet_rows>(to.from(r));
    multiply_octet_rest<Form, most_octet_rows - 1>(count - r, to.from(r));
}

#endif
}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// The form of matrix_product.h for float32.
//
// Every value is summed in the order of its row, in as many parts as the number of rows at once
// asks for; in lanes where a block's weights are whole rows. Rows are taken at once from the first
// on, so that the number of threads changes nothing.
#include <algorithm>

#include "base/simd.h"
#include "cpu/fast/matrix_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/float_matrix_product.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "cpu/fast/channel_runs-inl.h"
#include "cpu/fast/pixel_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

const MatrixFunctions* target_float_functions() {
    return nullptr;
}

#else
namespace {

// Sums of rows x 2 vectors, the weights and one broadcast value stay in registers.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr std::size_t most_float_rows = 8;
#elif HWY_TARGET == HWY_EMU128
constexpr std::size_t most_float_rows = 2;
#else
constexpr std::size_t most_float_rows = 6;
#endif
constexpr std::size_t widest_float_block = HWY_MAX_BYTES / 2;

/// Where the product of some rows and a block goes.
struct FloatTarget {
    const PackedMatrix& matrix;
    const ChannelBlock& block;
    const float* rows;
    float* out;
    std::size_t out_stride;

    [[nodiscard]] FloatTarget from(std::size_t row) const {
        return {matrix, block, rows + row * matrix.groups, out + row * out_stride, out_stride};
    }
};

/// kChains independent sums per row and channel, as in the product of bytes.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kRows, std::size_t kChains>
HWY_INLINE void float_tile(const FloatTarget& to) {
    const hn::CappedTag<float, kLanes> d;
    using V = hn::Vec<decltype(d)>;
    const std::size_t groups = to.matrix.groups;
    const float* HWY_RESTRICT rows = to.rows;
    const auto* HWY_RESTRICT weights =
        reinterpret_cast<const float*>(to.matrix.weights.get() + to.block.weights);
    const auto* HWY_RESTRICT bias =
        reinterpret_cast<const float*>(to.matrix.stage.rows.get() + to.block.bias);
    // Arrays of sums become registers only when no loop is left that indexes them.
    V sums[kChains][kRows][kVectors];
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
            sums[0][r][v] = hn::Load(d, bias + v * kLanes);
            REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) sums[chain][r][v] =
                hn::Zero(d);
        }
    }
    const auto add = [&](std::size_t chain, std::size_t k) HWY_ATTR {
        V factors[kVectors];
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) factors[v] =
            hn::Load(d, weights + v * kLanes);
        weights += kVectors * kLanes;
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            const auto value = hn::Set(d, rows[r * groups + k]);
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sums[chain][r][v] =
                hn::MulAdd(value, factors[v], sums[chain][r][v]);
        }
    };
    std::size_t k = 0;
    for (; k + kChains <= groups; k += kChains) {
        REEF_UNROLL for (std::size_t chain = 0; chain < kChains; ++chain) add(chain, k + chain);
    }
    if constexpr (kChains > 1)
        for (; k < groups; ++k) add(0, k);
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
            REEF_UNROLL for (std::size_t chain = 1; chain < kChains; ++chain) sums[0][r][v] =
                hn::Add(sums[0][r][v], sums[chain][r][v]);
            sums[0][r][v] = clamp_floats(d, sums[0][r][v], to.matrix.float_clamp);
        }
        store_floats(d, sums[0][r], to.block.valid, to.out + r * to.out_stride);
    }
}

template <std::size_t kLanes, std::size_t kVectors, std::size_t kRows>
HWY_NOINLINE void float_rows(const FloatTarget& to) {
    float_tile<kLanes, kVectors, kRows, kRows == 1 ? 4 : (kRows <= 3 ? 2 : 1)>(to);
}

/// Fewer rows than a full step takes.
template <std::size_t kLanes, std::size_t kVectors, std::size_t kRows>
HWY_INLINE void float_rest(std::size_t count, const FloatTarget& to) {
    if constexpr (kRows > 0) {
        if (count == kRows)
            float_rows<kLanes, kVectors, kRows>(to);
        else
            float_rest<kLanes, kVectors, kRows - 1>(count, to);
    }
}

template <std::size_t kLanes, std::size_t kVectors>
void float_block(const FloatTarget& to, std::size_t count) {
    std::size_t r = 0;
    for (; r + most_float_rows <= count; r += most_float_rows)
        float_rows<kLanes, kVectors, most_float_rows>(to.from(r));
    float_rest<kLanes, kVectors, most_float_rows - 1>(count - r, to.from(r));
}

/// Rows times whole rows of weights: each product is summed in lanes of some vectors, these are
/// added up, and then what fills no vector. One load of a row serves kChannels channels, one of
/// weights kRows rows.
template <std::size_t kRows, std::size_t kChannels>
HWY_INLINE void float_whole_tile(const FloatTarget& to, std::size_t channel) {
    constexpr std::size_t chains = kRows == 1 ? 4 : 2;
    const hn::ScalableTag<float> d;
    using V = hn::Vec<decltype(d)>;
    const std::size_t lanes = hn::Lanes(d), length = to.matrix.groups;
    const float* HWY_RESTRICT rows = to.rows;
    const float* HWY_RESTRICT weights =
        reinterpret_cast<const float*>(to.matrix.weights.get() + to.block.weights) +
        channel * length;
    V sums[chains][kRows][kChannels];
    REEF_UNROLL for (std::size_t chain = 0; chain < chains; ++chain) {
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            REEF_UNROLL for (std::size_t c = 0; c < kChannels; ++c) sums[chain][r][c] = hn::Zero(d);
        }
    }
    const auto add = [&](V(&into)[kRows][kChannels], std::size_t i) HWY_ATTR {
        V factors[kChannels];
        REEF_UNROLL for (std::size_t c = 0; c < kChannels; ++c) factors[c] =
            hn::LoadU(d, weights + c * length + i);
        REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
            const V values = hn::LoadU(d, rows + r * length + i);
            REEF_UNROLL for (std::size_t c = 0; c < kChannels; ++c) into[r][c] =
                hn::MulAdd(values, factors[c], into[r][c]);
        }
    };
    std::size_t i = 0;
    for (; i + chains * lanes <= length; i += chains * lanes) {
        REEF_UNROLL for (std::size_t chain = 0; chain < chains; ++chain)
            add(sums[chain], i + chain * lanes);
    }
    for (; i + lanes <= length; i += lanes) add(sums[0], i);
    const auto* bias = reinterpret_cast<const float*>(to.matrix.stage.rows.get() + to.block.bias);
    const Limits<float> clamp = to.matrix.float_clamp;
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t c = 0; c < kChannels; ++c) {
            REEF_UNROLL for (std::size_t chain = 1; chain < chains; ++chain) sums[0][r][c] =
                hn::Add(sums[0][r][c], sums[chain][r][c]);
            float sum = hn::GetLane(hn::SumOfLanes(d, sums[0][r][c]));
            for (std::size_t rest = i; rest < length; ++rest)
                sum += rows[r * length + rest] * weights[c * length + rest];
            to.out[r * to.out_stride + channel + c] =
                std::clamp(bias[channel + c] + sum, clamp.min, clamp.max);
        }
    }
}

template <std::size_t kRows>
HWY_NOINLINE void float_whole_rows(const FloatTarget& to) {
    std::size_t channel = 0;
    for (; channel + 2 <= to.block.valid; channel += 2) float_whole_tile<kRows, 2>(to, channel);
    if (channel < to.block.valid) float_whole_tile<kRows, 1>(to, channel);
}

/// In halves of a full step, whose sums are the same wherever a thread begins, then one by one.
void float_whole_block(const FloatTarget& to, std::size_t count) {
    constexpr std::size_t half = most_float_rows / 2;
    std::size_t r = 0;
    for (; r + half <= count; r += half) float_whole_rows<half>(to.from(r));
    for (; r < count; ++r) float_whole_rows<1>(to.from(r));
}

/// Blocks below the widest are of one vector where the target has vectors as wide.
void multiply_floats(const PackedMatrix& matrix, Rows rows, std::size_t count, std::size_t begin,
                     std::size_t end, std::byte* out, std::size_t out_stride) {
    for (std::size_t i = begin; i < end; ++i) {
        const ChannelBlock& block = matrix.blocks[i];
        const FloatTarget to{matrix, block, reinterpret_cast<const float*>(rows.values),
                             reinterpret_cast<float*>(out) + block.first,
                             out_stride / sizeof(float)};
        if (matrix.has_whole_rows(block)) {
            float_whole_block(to, count);
            continue;
        }
#if HWY_MAX_BYTES >= 64
        if (block.width == 32)
            float_block<16, 2>(to, count);
        else if (block.width == 16)
            float_block<16, 1>(to, count);
        else
            float_block<8, 1>(to, count);
#elif HWY_MAX_BYTES >= 32
        if (block.width == 16)
            float_block<8, 2>(to, count);
        else
            float_block<8, 1>(to, count);
#else
        float_block<4, 2>(to, count);
#endif
    }
}

Rows gather_floats(const Convolution& c, const PackedMatrix& matrix, const std::byte* input,
                   std::int32_t zero, PixelRange pixels, std::byte* values,
                   std::int32_t* /*sums*/) {
    if (reads_in_order(c)) return {.values = input + pixels.begin * matrix.row_bytes()};
    gather_rows<float>(c, input, zero, pixels, matrix.groups, reinterpret_cast<float*>(values));
    return {.values = values};
}

}  // namespace

const MatrixFunctions* target_float_functions() {
    static const MatrixFunctions functions{.target = hwy::TargetName(HWY_TARGET),
                                           .group = GroupOf::floats,
                                           .widest_block = widest_float_block,
                                           .rows_at_once = most_float_rows,
                                           .gather = gather_floats,
                                           .multiply = multiply_floats};
    return &functions;
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {

HWY_EXPORT(target_float_functions);

const MatrixFunctions* float_matrix_functions() {
    return HWY_DYNAMIC_DISPATCH(target_float_functions)();
}

}  // namespace reef::cpu
#endif

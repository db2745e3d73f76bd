#include "tensor_quads.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "edgetpu/sim/tile/tensor_quads.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include "base/sums_of_products-inl.h"
#include "base/upper_halves-inl.h"

HWY_BEFORE_NAMESPACE();
namespace reef::edgetpu::sim::HWY_NAMESPACE {
#if HWY_TARGET != HWY_AVX3_DL

const QuadKernels* target_quads() {
    return nullptr;
}

#else
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using reef::HWY_NAMESPACE::add_quad_products;
using reef::HWY_NAMESPACE::clear_upper_halves;

constexpr std::size_t step_bytes = 4;

template <class D>
HWY_INLINE hn::Vec<D> load_bytes(D d, const std::uint8_t* at) {
    return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, D>(), at));
}

/// As signed bytes: less 128.
template <class D>
HWY_INLINE hn::Vec<D> load_parameters(D d, const std::uint8_t* at) {
    return hn::Xor(load_bytes(d, at), hn::Set(d, static_cast<std::int32_t>(0x80808080U)));
}

template <class D>
HWY_INLINE hn::Vec<D> broadcast_activations(D d, const std::uint8_t* at) {
    std::int32_t four = 0;
    std::memcpy(&four, at, sizeof four);
    return hn::Set(d, four);
}

/// start and input_weight of one vector of lanes, from the sum of w - 128 of so many elements.
template <class D>
HWY_INLINE void set_start(D d, QuadParameters& p, std::size_t lane, hn::Vec<D> sum,
                          std::size_t elements) {
    const auto weight = hn::Sub(hn::Set(d, 128), hn::LoadU(d, p.zero + lane));
    const auto count = hn::Set(d, static_cast<std::int32_t>(elements));
    hn::StoreU(weight, d, p.input_weight + lane);
    hn::StoreU(hn::Mul(hn::Set(d, -p.in_zero), hn::Add(sum, hn::Mul(weight, count))), d,
               p.start + lane);
}

/// The fours of steps of one byte. Returns the end.
template <std::size_t kLanes>
std::int32_t* pack_singles(const QuadParameters& p, std::int32_t* packed) {
    const hn::FixedTag<std::int32_t, kLanes> d;
    const std::uint8_t* const* row = p.rows.data();
    const std::uint8_t* quarter = p.quarters.data();
    for (const InputRun& run : p.runs) {
        for (std::uint32_t done = 0; done < run.steps; packed += 2 * kLanes) {
            auto four = hn::Zero(d);
            std::uint32_t ones = 0;
            for (int byte = 0; byte < 4 && done < run.steps; ++byte, ++done, ++row, ++quarter) {
                const auto one = hn::And(hn::ShiftRightSame(load_parameters(d, *row), 8 * *quarter),
                                         hn::Set(d, 0xFF));
                four = hn::Or(four, hn::ShiftLeftSame(one, 8 * byte));
                ones |= 1U << 8U * static_cast<unsigned>(byte);
            }
            hn::StoreU(four, d, packed);
            hn::StoreU(hn::Set(d, static_cast<std::int32_t>(ones)), d, packed + kLanes);
        }
    }
    return packed;
}

template <std::size_t kLanes>
std::int32_t* pack_quads(const QuadParameters& p, std::int32_t* packed) {
    const hn::FixedTag<std::int32_t, kLanes> d;
    for (const std::uint8_t* row : p.rows) {
        hn::StoreU(load_parameters(d, row), d, packed);
        hn::StoreU(hn::Set(d, 0x01010101), d, packed + kLanes);
        packed += 2 * kLanes;
    }
    return packed;
}

template <std::size_t kLanes>
void prepare_few(QuadParameters& p) {
    const hn::FixedTag<std::int32_t, kLanes> d;
    auto* const packed = reinterpret_cast<std::int32_t*>(p.packed);
    const bool singles = !p.quarters.empty();
    const std::int32_t* end =
        singles ? pack_singles<kLanes>(p, packed) : pack_quads<kLanes>(p, packed);
    auto sum = hn::Zero(d);
    if (p.in_zero != 0)
        for (const std::int32_t* at = packed; at != end; at += 2 * kLanes)
            sum = add_quad_products(d, hn::LoadU(d, at + kLanes), hn::LoadU(d, at), sum);
    set_start(d, p, 0, sum, (singles ? 1 : step_bytes) * p.rows.size());
}

void prepare_wide(QuadParameters& p) {
    const hn::FixedTag<std::int32_t, 16> d;
    const auto ones = hn::Set(d, 0x01010101);
    for (std::size_t lane = 0; lane < p.lanes; lane += hn::Lanes(d)) {
        auto sum = hn::Zero(d);
        if (p.in_zero != 0)
            for (const std::uint8_t* row : p.rows)
                sum = add_quad_products(d, ones, load_parameters(d, row + step_bytes * lane), sum);
        set_start(d, p, lane, sum, step_bytes * p.rows.size());
    }
}

void prepare(QuadParameters& p, unsigned used) {
    if (p.lanes == 4)
        prepare_few<4>(p);
    else if (p.lanes == 8)
        prepare_few<8>(p);
    else
        prepare_wide(p);
    p.weighs_inputs = std::any_of(p.input_weight, p.input_weight + used,
                                  [](std::int32_t weight) { return weight != 0; });
    clear_upper_halves();
}

struct Block {
    const QuadParameters& parameters;
    std::span<const InputRun> runs;
    const std::uint8_t* narrow;
    const std::uint32_t* positions;
    const std::int32_t* input_sums;  ///< by position; null: they weigh nothing
    bool add;
    std::int32_t* sums;
};

/// Up to 8 lanes: half of the vector are parameters, half are ones.
template <std::size_t kLanes, std::size_t kRows>
HWY_NOINLINE void multiply_few(const Block& b) {
    const hn::FixedTag<std::int32_t, 2 * kLanes> d;
    const hn::Half<decltype(d)> half;
    const std::uint8_t* at[kRows];
    hn::Vec<decltype(d)> sum[kRows];
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        at[r] = b.narrow + b.positions[r];
        sum[r] = hn::Zero(d);
    }
    const std::uint8_t* parameters = b.parameters.packed;
    for (const InputRun& run : b.runs) {
        std::ptrdiff_t offset = run.offset;
        for (std::uint32_t s = 0; s < run.steps; ++s, offset += step_bytes) {
            const auto weights = load_bytes(d, parameters);
            parameters += 2 * kLanes * sizeof(std::int32_t);
            REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) sum[r] =
                add_quad_products(d, broadcast_activations(d, at[r] + offset), weights, sum[r]);
        }
    }
    const auto start = hn::LoadU(half, b.parameters.start);
    const auto weight = hn::LoadU(half, b.parameters.input_weight);
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        auto total = hn::Add(hn::LowerHalf(half, sum[r]),
                             hn::Add(start, hn::Mul(weight, hn::UpperHalf(half, sum[r]))));
        if (b.add) total = hn::Add(total, hn::LoadU(half, b.sums + r * kLanes));
        hn::StoreU(total, half, b.sums + r * kLanes);
    }
}

/// kRows positions x kVectors vectors of lanes stay in registers.
template <std::size_t kVectors, std::size_t kRows>
HWY_NOINLINE void multiply_wide(const Block& b) {
    const hn::FixedTag<std::int32_t, 16> d;
    constexpr std::size_t width = 16;
    const std::uint8_t* at[kRows];
    hn::Vec<decltype(d)> sum[kRows][kVectors];
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        at[r] = b.narrow + b.positions[r];
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] =
            hn::LoadU(d, b.parameters.start + v * width);
    }
    const std::uint8_t* const* row = b.parameters.rows.data();
    for (const InputRun& run : b.runs) {
        std::ptrdiff_t offset = run.offset;
        for (std::uint32_t s = 0; s < run.steps; ++s, offset += step_bytes, ++row) {
            hn::Vec<decltype(d)> weights[kVectors];
            REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) weights[v] =
                load_parameters(d, *row + step_bytes * width * v);
            REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
                const auto four = broadcast_activations(d, at[r] + offset);
                REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] =
                    add_quad_products(d, four, weights[v], sum[r][v]);
            }
        }
    }
    const std::size_t lanes = b.parameters.lanes;
    REEF_UNROLL for (std::size_t r = 0; r < kRows; ++r) {
        REEF_UNROLL for (std::size_t v = 0; v < kVectors; ++v) {
            std::int32_t* to = b.sums + r * lanes + v * width;
            if (b.input_sums != nullptr)
                sum[r][v] = hn::Add(sum[r][v],
                                    hn::Mul(hn::Set(d, b.input_sums[r]),
                                            hn::LoadU(d, b.parameters.input_weight + v * width)));
            if (b.add) sum[r][v] = hn::Add(sum[r][v], hn::LoadU(d, to));
            hn::StoreU(sum[r][v], d, to);
        }
    }
}

/// Calls tile(block, rows) for nearly equal numbers of rows, at most so many.
HWY_INLINE void each_tile(Block b, std::size_t count, std::size_t most, auto&& tile) {
    while (count > 0) {
        const std::size_t left = (count + most - 1) / most;
        const std::size_t rows = (count + left - 1) / left;
        tile(b, rows);
        b.positions += rows;
        if (b.input_sums != nullptr) b.input_sums += rows;
        b.sums += rows * b.parameters.lanes;
        count -= rows;
    }
}

template <std::size_t kLanes>
void multiply_few_rows(const Block& b, std::size_t rows) {
    switch (rows) {
        case 1:
            return multiply_few<kLanes, 1>(b);
        case 2:
            return multiply_few<kLanes, 2>(b);
        case 3:
            return multiply_few<kLanes, 3>(b);
        case 4:
            return multiply_few<kLanes, 4>(b);
        case 5:
            return multiply_few<kLanes, 5>(b);
        case 6:
            return multiply_few<kLanes, 6>(b);
        case 7:
            return multiply_few<kLanes, 7>(b);
        default:
            return multiply_few<kLanes, 8>(b);
    }
}

template <std::size_t kLanes>
void multiply_few_lanes(const Block& b, std::size_t count) {
    each_tile(b, count, 8, multiply_few_rows<kLanes>);
}

template <std::size_t kVectors>
void multiply_wide_rows(const Block& b, std::size_t rows) {
    switch (rows) {
        case 1:
            return multiply_wide<kVectors, 1>(b);
        case 2:
            return multiply_wide<kVectors, 2>(b);
        case 3:
            return multiply_wide<kVectors, 3>(b);
        case 4:
            return multiply_wide<kVectors, 4>(b);
        case 5:
            return multiply_wide<kVectors, 5>(b);
        default:
            return multiply_wide<kVectors, 6>(b);
    }
}

template <std::size_t kVectors>
void multiply_vectors(const Block& b, std::size_t count) {
    each_tile(b, count, 6, multiply_wide_rows<kVectors>);
}

std::int32_t sum_of_activations(const std::uint8_t* at, std::span<const InputRun> runs) {
    const hn::FixedTag<std::uint8_t, 64> d8;
    const hn::Repartition<std::uint64_t, decltype(d8)> d64;
    auto sum = hn::Zero(d64);
    for (const InputRun& run : runs) {
        const std::uint8_t* from = at + run.offset;
        std::size_t left = step_bytes * run.steps;
        for (; left >= hn::Lanes(d8); left -= hn::Lanes(d8), from += hn::Lanes(d8))
            sum = hn::Add(sum, hn::SumsOf8(hn::LoadU(d8, from)));
        if (left > 0)
            sum = hn::Add(sum, hn::SumsOf8(hn::MaskedLoad(hn::FirstN(d8, left), d8, from)));
    }
    return static_cast<std::int32_t>(hn::GetLane(hn::SumOfLanes(d64, sum)));
}

void multiply(const QuadParameters& p, std::span<const InputRun> runs, const std::uint8_t* narrow,
              std::span<const std::uint32_t> positions, bool add, std::int32_t* sums) {
    Block b{p, runs, narrow, positions.data(), nullptr, add, sums};
    if (p.lanes == 4) return multiply_few_lanes<4>(b, positions.size());
    if (p.lanes == 8) return multiply_few_lanes<8>(b, positions.size());
    std::array<std::int32_t, QuadKernels::most_positions> input_sums;
    if (p.weighs_inputs) {
        for (std::size_t i = 0; i < positions.size(); ++i)
            input_sums[i] = sum_of_activations(narrow + positions[i], runs);
        b.input_sums = input_sums.data();
    }
    if (p.lanes == 16) return multiply_vectors<1>(b, positions.size());
    if (p.lanes == 32) return multiply_vectors<2>(b, positions.size());
    static_assert(spec::lane_count == 64);
    multiply_vectors<4>(b, positions.size());
}

}  // namespace

const QuadKernels* target_quads() {
    static constexpr QuadKernels kernels{prepare, multiply};
    return &kernels;
}

#endif
}  // namespace reef::edgetpu::sim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::edgetpu::sim {

HWY_EXPORT(target_quads);

const QuadKernels* quad_kernels() {
    apply_simd_choice();
    return HWY_DYNAMIC_DISPATCH(target_quads)();
}

}  // namespace reef::edgetpu::sim
#endif

// What a block's parameters are made into.
#include "edgetpu/sim/tile/tensor_quads.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "edgetpu/sim/program/memory.h"
#include "support/upper_halves.h"

namespace reef::edgetpu::sim {
namespace {

TEST(TensorQuads, KernelsLeaveTheUpperHalvesClear) {
    const QuadKernels* kernels = quad_kernels();
    if (kernels == nullptr) GTEST_SKIP() << "this machine has no VNNI on vectors of 64 bytes";
    if (!test::processor_tells_upper_halves())
        GTEST_SKIP() << "this processor does not tell whether upper halves are in use";
    const std::vector<std::uint8_t> row(row_bytes, 7);
    const std::array<const std::uint8_t*, 3> rows = {row.data(), row.data(), row.data()};
    const std::array<std::uint8_t, 3> quarters = {0, 1, 2};
    const std::array<InputRun, 1> runs = {{{0, 3}}};
    std::vector<std::uint8_t> packed(std::size_t{8} * 8 * rows.size());
    const std::vector<std::uint8_t> narrow(1024, 9);
    std::array<std::uint32_t, 9> positions{};
    std::iota(positions.begin(), positions.end(), 0U);
    std::vector<std::int32_t> sums(positions.size() * lane_count);
    // Inputs weigh nothing where the parameters' zero point is 128.
    for (const std::int32_t zero_point : {3, 128})
        for (const unsigned lanes : {4U, 8U, 16U, 32U, 64U})
            for (const bool singles : {false, true}) {
                if (singles && lanes > 8) continue;
                const std::vector<std::int32_t> zero(lane_count, zero_point);
                QuadParameters p;
                p.rows = rows;
                p.lanes = lanes;
                p.in_zero = 5;
                p.packed = packed.data();
                p.zero = zero.data();
                if (singles) p.quarters = quarters;
                p.runs = runs;
                EXPECT_FALSE(test::leaves_upper_halves([&] { kernels->prepare(p, lanes); }))
                    << lanes << " lanes, zero point " << zero_point;
                EXPECT_EQ(p.weighs_inputs, zero_point != 128);
                const std::array<InputRun, 1> fours = {{{0, singles ? 1U : 3U}}};
                EXPECT_FALSE(test::leaves_upper_halves([&] {
                    kernels->multiply(p, fours, narrow.data(), positions, false, sums.data());
                })) << lanes
                    << " lanes, zero point " << zero_point;
            }
}

}  // namespace
}  // namespace reef::edgetpu::sim

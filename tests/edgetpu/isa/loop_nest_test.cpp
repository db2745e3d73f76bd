#include "edgetpu/isa/loop_nest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>

namespace reef::edgetpu {
namespace {

LoopNest nest_of(std::initializer_list<std::uint32_t> counts) {
    LoopNest nest{.dimensions = static_cast<unsigned>(counts.size())};
    std::ranges::copy(counts, nest.count.begin());
    return nest;
}

TEST(LoopNest, CountsPassesByHand) {
    auto nest = nest_of({3, 2, 4});
    EXPECT_EQ(nest.visits(), 24U);
    EXPECT_EQ(nest.passes_from(0), 24U);
    EXPECT_EQ(nest.passes_from(1), 8U);
    EXPECT_EQ(nest.passes_from(2), 4U);
    EXPECT_EQ(nest.passes_from(3), 1U);
    EXPECT_EQ(nest.visits_below(0), 1U);
    EXPECT_EQ(nest.visits_below(2), 6U);
    EXPECT_EQ(nest.visits_below(9), 24U);
    // Cropped to one visit where dimension 1 is at its last index: in every second pass.
    nest.crop_level = 1;
    nest.crop_count = 1;
    EXPECT_EQ(nest.visits(), 16U);
    EXPECT_EQ(nest.visits_of_pass(1, 0), 3U);
    EXPECT_EQ(nest.visits_of_pass(1, 1), 1U);
    // Where dimension 2 is: in the last two.
    nest.crop_level = 2;
    EXPECT_EQ(nest.visits(), 20U);
    EXPECT_EQ(nest.visits_of_pass(1, 5), 3U);
    EXPECT_EQ(nest.visits_of_pass(1, 6), 1U);
    // A dimension that does not exist is always at its last index.
    nest.crop_level = 3;
    EXPECT_EQ(nest.visits(), 8U);
    EXPECT_EQ(nest.visits_of_pass(1, 0), 1U);
    EXPECT_EQ(nest.longest_walk(), 24.0);
}

TEST(LoopNest, CropsTheDimensionAboveTheSideOfAMatrix) {
    auto nest = nest_of({4, 16, 4, 2});
    nest.crop_dimension = 1;
    nest.crop_level = 3;
    nest.crop_count = 6;
    EXPECT_EQ(nest.visits(), 4 * 4 * (16U + 6));
    EXPECT_EQ(nest.visits_of_pass(2, 0), 64U);
    EXPECT_EQ(nest.visits_of_pass(2, 3), 64U);
    EXPECT_EQ(nest.visits_of_pass(2, 4), 24U);
    EXPECT_EQ(nest.visits_of_pass(4, 0), nest.visits());
}

TEST(LoopNest, SumsOfVisitsAreVisits) {
    std::mt19937 random(3);
    for (unsigned i = 0; i < 500; ++i) {
        LoopNest nest{.dimensions = 1 + static_cast<unsigned>(random() % 8)};
        for (unsigned d = 0; d < nest.dimensions; ++d)
            nest.count[d] = 1 + static_cast<std::uint32_t>(random() % 4);
        nest.crop_level = static_cast<unsigned>(random() % 9);
        nest.crop_count = 1 + static_cast<std::uint32_t>(random() % 5);
        nest.crop_dimension = static_cast<unsigned>(random() % 2);
        if (nest.crop_level <= nest.crop_dimension) nest.crop_level = 0;
        for (unsigned level = nest.crop_dimension + 1; level <= nest.dimensions; ++level) {
            std::uint64_t sum = 0;
            for (std::uint64_t pass = 0; pass < nest.passes_from(level); ++pass)
                sum += nest.visits_of_pass(level, pass);
            EXPECT_EQ(nest.visits(), sum);
        }
    }
}

TEST(LoopNest, HugeNestsSaturate) {
    LoopNest nest{.dimensions = 8};
    nest.count.fill(1 << 18);
    EXPECT_EQ(nest.visits(), ~std::uint64_t{0});
    nest.crop_level = 9;
    nest.crop_count = 1 << 18;
    EXPECT_EQ(nest.visits(), ~std::uint64_t{0});
    EXPECT_GT(nest.longest_walk(), 0x1p143);
}

TEST(LoopNest, StridesAndStepsAreEachOthers) {
    std::mt19937_64 random(5);
    for (unsigned i = 0; i < 500; ++i) {
        LoopNest nest{.dimensions = 1 + static_cast<unsigned>(random() % 8)};
        Strides limits{};
        for (unsigned d = 0; d < nest.dimensions; ++d) {
            nest.step[d] = static_cast<std::int32_t>(random());
            nest.count[d] = 1 + static_cast<std::uint32_t>(random() % (1 << 20));
            limits[d] = nest.count[d] - 1;
        }
        const auto steps = steps_of(strides_of(nest), limits, nest.dimensions);
        for (unsigned d = 0; d < nest.dimensions; ++d)
            EXPECT_EQ(static_cast<std::int64_t>(steps[d]), nest.step[d]);
    }
    // 4 rows of 16 words 100 apart: the step to the next row goes back over the row.
    LoopNest rows{.dimensions = 2};
    rows.count[0] = 16;
    rows.count[1] = 4;
    rows.step[0] = 1;
    rows.step[1] = 85;
    EXPECT_EQ(strides_of(rows)[1], 100U);
}

}  // namespace
}  // namespace reef::edgetpu

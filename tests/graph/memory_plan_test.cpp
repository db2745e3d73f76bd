#include "graph/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace reef::graph {
namespace {

std::size_t most_live_bytes(const std::vector<Lifetime>& blocks, std::size_t operators) {
    std::size_t most = 0;
    for (std::size_t at = 0; at < operators; ++at) {
        std::size_t live = 0;
        for (const Lifetime& block : blocks)
            if (block.first <= at && at <= block.last) live += block.bytes;
        most = std::max(most, live);
    }
    return most;
}

void expect_sound(const std::vector<Lifetime>& blocks, const MemoryPlan& plan) {
    ASSERT_EQ(plan.offsets.size(), blocks.size());
    EXPECT_GE(plan.arena_bytes, plan.lower_bound_bytes);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        ASSERT_EQ(plan.offsets[i] % arena_alignment, 0U);
        ASSERT_LE(plan.offsets[i] + blocks[i].bytes, plan.arena_bytes);
        for (std::size_t j = 0; j < i; ++j) {
            const bool meet =
                blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
            const bool overlap = plan.offsets[i] < plan.offsets[j] + blocks[j].bytes &&
                                 plan.offsets[j] < plan.offsets[i] + blocks[i].bytes;
            ASSERT_FALSE(meet && overlap && blocks[i].bytes > 0 && blocks[j].bytes > 0)
                << i << " and " << j;
        }
    }
}

TEST(MemoryPlan, RandomLifetimesNeverOverlap) {
    std::mt19937 random(1);
    double worst = 1;
    for (int round = 0; round < 300; ++round) {
        const std::size_t operators = 1 + random() % 60;
        const std::size_t count = random() % 120;
        const std::size_t most_bytes = round % 3 == 0 ? 200 : 200000;
        std::vector<Lifetime> blocks;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t first = random() % operators;
            const std::size_t last = std::min(operators - 1, first + random() % 8);
            blocks.push_back({random() % most_bytes, first, last});
        }
        const auto plan = plan_memory(blocks);
        ASSERT_TRUE(plan);
        expect_sound(blocks, *plan);
        ASSERT_EQ(plan->lower_bound_bytes, most_live_bytes(blocks, operators));
        if (plan->lower_bound_bytes > 100000)
            worst = std::max(worst, static_cast<double>(plan->arena_bytes) /
                                        static_cast<double>(plan->lower_bound_bytes));
    }
    EXPECT_LE(worst, 1.25);
}

TEST(MemoryPlan, ManyBlocksArePlannedWithoutComparingAllPairs) {
    std::mt19937 random(2);
    std::vector<Lifetime> blocks;
    for (std::size_t i = 0; i < 200000; ++i)
        blocks.push_back({1 + random() % 500, i, i + random() % 3});
    const auto plan = plan_memory(blocks);
    ASSERT_TRUE(plan);
    EXPECT_LE(plan->arena_bytes, 2 * plan->lower_bound_bytes);
}

TEST(MemoryPlan, AChainReachesTheBound) {
    // Each tensor is read by the next operator only.
    std::vector<Lifetime> blocks;
    for (std::size_t i = 0; i < 30; ++i) blocks.push_back({64 * (1 + (i * 7) % 11), i, i + 1});
    const auto plan = plan_memory(blocks);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->arena_bytes, plan->lower_bound_bytes);
}

TEST(MemoryPlan, WhatIsAlwaysAliveCostsItsSizeAndNoMore) {
    std::mt19937 random(3);
    for (int round = 0; round < 50; ++round) {
        std::vector<Lifetime> blocks;
        for (std::size_t i = 0; i < 40; ++i)
            blocks.push_back(
                {1 + random() % 100000, i, std::min<std::size_t>(39, i + random() % 5)});
        const std::size_t without = plan_memory(blocks)->arena_bytes;
        blocks.insert(blocks.begin() + 7, {64 * (1 + random() % 1000), 0, 39});
        blocks.push_back({64 * (1 + random() % 1000), 0, 39});
        const auto plan = plan_memory(blocks);
        ASSERT_TRUE(plan);
        expect_sound(blocks, *plan);
        EXPECT_EQ(plan->arena_bytes, without + blocks[7].bytes + blocks.back().bytes);
    }
}

TEST(MemoryPlan, NothingNeedsNothing) {
    const auto plan = plan_memory({});
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->arena_bytes, 0U);
    EXPECT_EQ(plan->lower_bound_bytes, 0U);
}

TEST(MemoryPlan, AbsurdSizesAreRefused) {
    const std::vector<Lifetime> one{{arena_limit + 1, 0, 0}};
    ASSERT_FALSE(plan_memory(one));
    EXPECT_EQ(plan_memory(one).error().cause, Cause::unsupported);
    const std::vector<Lifetime> together(5, {arena_limit / 4, 0, 0});
    EXPECT_FALSE(plan_memory(together));
    const std::vector<Lifetime> apart{{arena_limit, 0, 0}, {arena_limit, 1, 1}};
    EXPECT_TRUE(plan_memory(apart));
}

}  // namespace
}  // namespace reef::graph

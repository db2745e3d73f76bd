// What the two ends of a mesh link see of each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>

#include "edgetpu/sim/tile/ring.h"

namespace reef::edgetpu::sim {
namespace {

constexpr std::ptrdiff_t step = narrow_word_bytes;

void push(MeshLink& link, std::uint32_t round, std::uint32_t first, unsigned words) {
    std::array<std::uint32_t, MeshLink::capacity> values;
    for (unsigned i = 0; i < words; ++i) values[i] = first + i;
    link.push(round, reinterpret_cast<const std::uint8_t*>(values.data()), step, words);
}

void expect_next(MeshLink& link, std::uint32_t round, std::uint32_t first, unsigned words) {
    std::array<std::uint32_t, MeshLink::capacity> values{};
    link.pop(round, reinterpret_cast<std::uint8_t*>(values.data()), step, words);
    for (unsigned i = 0; i < words; ++i) ASSERT_EQ(values[i], first + i);
}

std::unique_ptr<MeshLink> empty_link(unsigned most) {
    auto link = std::make_unique<MeshLink>();
    link->clear(most);
    return link;
}

TEST(MeshLinks, EndsSeeInARoundWhatWasDoneBefore) {
    const auto link = empty_link(8);
    push(*link, 1, 100, 5);
    EXPECT_EQ(link->size(1, 8), 0U);
    EXPECT_EQ(link->room(1, 8), 3U);
    EXPECT_EQ(link->size(2, 8), 5U);
    EXPECT_EQ(link->size(2, 2), 2U);
    push(*link, 2, 105, 1);
    EXPECT_EQ(link->size(2, 8), 5U);
    expect_next(*link, 2, 100, 4);
    EXPECT_EQ(link->size(2, 8), 1U);
    EXPECT_EQ(link->room(2, 8), 2U);
    EXPECT_EQ(link->room(3, 8), 6U);
    EXPECT_EQ(link->size(3, 8), 2U);
    EXPECT_EQ(link->waiting(), 2U);
}

TEST(MeshLinks, HoldAsManyAsMayWait) {
    const auto link = empty_link(MeshLink::capacity);
    push(*link, 1, 0, MeshLink::capacity);
    EXPECT_EQ(link->room(2, 1), 0U);
    EXPECT_EQ(link->size(2, MeshLink::capacity), MeshLink::capacity);
    expect_next(*link, 2, 0, MeshLink::capacity);
    EXPECT_EQ(link->room(2, 1), 0U);
    EXPECT_EQ(link->room(3, MeshLink::capacity), MeshLink::capacity);
    link->clear(3);
    EXPECT_EQ(link->room(4, 8), 3U);
    EXPECT_EQ(link->size(4, 8), 0U);
}

// Many more words than its counts have numbers for, against sums of them.
TEST(MeshLinks, KeepTheirOrderForLong) {
    std::mt19937 random(1);
    for (const unsigned most : {1U, 64U, MeshLink::capacity}) {
        const auto link = empty_link(most);
        std::uint32_t pushed = 0, popped = 0;
        for (std::uint32_t round = 1; pushed < 300'000 && round < 400'000; ++round) {
            const std::uint32_t pushed_before = pushed, popped_before = popped;
            for (int turn = 0; turn < 4; ++turn) {
                const unsigned wanted = random() % (most + 1);
                const unsigned words = link->room(round, wanted);
                ASSERT_EQ(words, std::min(wanted, most - (pushed - popped_before)));
                push(*link, round, pushed, words);
                pushed += words;
                const unsigned asked = random() % (most + 1);
                const unsigned come = link->size(round, asked);
                ASSERT_EQ(come, std::min(asked, pushed_before - popped));
                ASSERT_NO_FATAL_FAILURE(expect_next(*link, round, popped, come));
                popped += come;
            }
            ASSERT_EQ(link->waiting(), pushed - popped);
        }
        EXPECT_GT(pushed, 1U << 16U);
    }
}

}  // namespace
}  // namespace reef::edgetpu::sim

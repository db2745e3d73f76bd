// Whose parameters stay in a chip's memory, and whose do not.
#include <gtest/gtest.h>

#include "edgetpu/package/resident_parameters.h"

namespace reef::edgetpu {
namespace {

using Resident = ResidentParameters<int>;

std::optional<ParameterRows> rows(unsigned first, unsigned last) {
    ParameterRows all;
    for (unsigned row = first; row <= last; ++row) all[3].set(row);
    return all;
}

/// Makes room for program `name`, loads it if need be, and says what that took.
Resident::Need run(Resident& memory, int name, std::uint64_t token,
                   const std::optional<ParameterRows>& its_rows, bool caches = true) {
    const auto need =
        memory.make_room(token, caches, its_rows, [&](int other) { return other == name; });
    if (need.load) memory.add(name, its_rows);
    return need;
}

TEST(ResidentParameters, AreLoadedOnceForEachProgramOfAToken) {
    Resident memory;
    EXPECT_TRUE(run(memory, 1, 7, rows(0, 9)).load);
    EXPECT_FALSE(run(memory, 1, 7, rows(0, 9)).load);
    const auto beside = run(memory, 2, 7, rows(10, 19));
    EXPECT_TRUE(beside.load);
    EXPECT_FALSE(beside.evicted);
    EXPECT_FALSE(run(memory, 1, 7, rows(0, 9)).load);
    EXPECT_FALSE(run(memory, 2, 7, rows(10, 19)).load);
}

TEST(ResidentParameters, GiveWayToAnotherToken) {
    Resident memory;
    run(memory, 1, 7, rows(0, 9));
    const auto other = run(memory, 2, 8, rows(10, 19));
    EXPECT_TRUE(other.load);
    EXPECT_EQ(other.evicted, 7U);
    EXPECT_EQ(run(memory, 1, 7, rows(0, 9)).evicted, 8U);
}

TEST(ResidentParameters, GiveWayToTheSameTokenInTheirRows) {
    Resident memory;
    run(memory, 1, 7, rows(0, 9));
    const auto other = run(memory, 2, 7, rows(9, 12));
    EXPECT_TRUE(other.load);
    EXPECT_EQ(other.evicted, 7U);
    EXPECT_TRUE(run(memory, 1, 7, rows(0, 9)).load);
}

TEST(ResidentParameters, OfUnknownRowsStayBesideOthers) {
    Resident memory;
    run(memory, 1, 7, std::nullopt);
    EXPECT_FALSE(run(memory, 2, 7, rows(0, 2047)).evicted);
    EXPECT_FALSE(run(memory, 1, 7, std::nullopt).load);
}

TEST(ResidentParameters, WithoutATokenAreLoadedEveryTime) {
    Resident memory;
    run(memory, 1, 7, rows(0, 9));
    EXPECT_EQ(run(memory, 2, 0, rows(10, 19)).evicted, 7U);
    const auto again = run(memory, 2, 0, rows(10, 19));
    EXPECT_TRUE(again.load);
    EXPECT_FALSE(again.evicted);
}

TEST(ResidentParameters, GiveWayToAProgramThatCachesNone) {
    Resident memory;
    run(memory, 1, 7, rows(0, 9));
    const auto alone = run(memory, 2, 0, std::nullopt, false);
    EXPECT_FALSE(alone.load);
    EXPECT_EQ(alone.evicted, 7U);
    EXPECT_TRUE(run(memory, 1, 7, rows(0, 9)).load);
}

TEST(ResidentParameters, AreLoadedAgainWhenForgotten) {
    Resident memory;
    run(memory, 1, 7, rows(0, 9));
    memory.forget();
    const auto again = run(memory, 1, 7, rows(0, 9));
    EXPECT_TRUE(again.load);
    EXPECT_FALSE(again.evicted);
}

}  // namespace
}  // namespace reef::edgetpu

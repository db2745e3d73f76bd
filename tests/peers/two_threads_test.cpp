#include "peers/two_threads.h"

#include <gtest/gtest.h>

namespace reef::peers {
namespace {

TEST(TwoThreads, AreComparedByTheirLeastTimes) {
    TwoThreads threads;
    threads.note(10, 8, {});
    threads.note(12, 5, {});
    EXPECT_EQ(threads.times(), 2);
    EXPECT_EQ(threads.times_quantile(0), 1.25);
    EXPECT_EQ(threads.of_machine(), std::nullopt);
}

TEST(TwoThreads, KeepABoundByThemselves) {
    TwoThreads threads;
    threads.note(18, 10, {});
    EXPECT_TRUE(threads.keep(1.8));
    EXPECT_FALSE(threads.keep(1.81));
    threads.note(18, 10, 2);
    EXPECT_FALSE(threads.keep(1.81));
}

TEST(TwoThreads, KeepABoundByWhatTheMachineGains) {
    TwoThreads threads;
    threads.note(14, 10, 1.5);
    EXPECT_DOUBLE_EQ(*threads.of_machine(), 1.4 / 1.5);
    EXPECT_TRUE(threads.keep(1.8));
    EXPECT_FALSE(threads.keep(1.9));
}

TEST(TwoThreads, AreComparedWithTheMachineInMostRounds) {
    TwoThreads threads;
    threads.note(10, 10, 1);
    for (int round = 0; round < 2; ++round) threads.note(10, 8, 2);
    EXPECT_EQ(threads.of_machine(), 0.625);
    EXPECT_FALSE(threads.keep(1.8));
}

TEST(TwoThreads, AMachineThatGainsNothingOrMoreThanItsCoresIsNotBelieved) {
    TwoThreads lost;
    lost.note(10, 12.5, 0.5);
    EXPECT_EQ(lost.of_machine(), 0.8);
    TwoThreads won;
    won.note(18, 10, 4);
    EXPECT_EQ(won.of_machine(), 0.9);
}

}  // namespace
}  // namespace reef::peers

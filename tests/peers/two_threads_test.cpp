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

TEST(TwoThreads, AGainNearAnEndIsThatEnd) {
    TwoThreads least;
    least.note(10, 8, 0.95);
    EXPECT_EQ(least.machine(), 1);
    EXPECT_EQ(least.of_machine(), 1.25);
    TwoThreads most;
    most.note(18, 10, 2.1);
    EXPECT_EQ(most.machine(), 2);
    EXPECT_EQ(most.of_machine(), 0.9);
}

TEST(TwoThreads, AGainThatNoTwoCoresHaveIsNotBelieved) {
    for (const double gain : {0.07, 2.5}) {
        TwoThreads threads;
        threads.note(13, 10, gain);
        EXPECT_EQ(threads.machine(), std::nullopt);
        EXPECT_EQ(threads.of_machine(), std::nullopt);
        EXPECT_FALSE(threads.keep(1.8)) << gain;
    }
}

TEST(TwoThreads, AGainOfFewRoundsIsNone) {
    TwoThreads threads;
    threads.note(15, 10, 1.5);
    threads.note(15, 10, {});
    EXPECT_EQ(threads.of_machine(), 1);
    threads.note(15, 10, 0.07);
    EXPECT_EQ(threads.of_machine(), std::nullopt);
    EXPECT_FALSE(threads.keep(1.8));
}

}  // namespace
}  // namespace reef::peers

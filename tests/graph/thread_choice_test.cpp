#include "graph/thread_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace reef::graph {
namespace {

using Duration = ThreadChoice::Duration;

/// Ends runs that take so long with all threads and with one; how many took all.
int runs_with_all(ThreadChoice& choice, int runs, double by_all, double by_one) {
    int with_all = 0;
    for (int i = 0; i < runs; ++i) {
        with_all += choice.all() ? 1 : 0;
        choice.ended(choice.measures() ? Duration(choice.all() ? by_all : by_one) : Duration(0));
    }
    return with_all;
}

/// Runs of a trial of both kinds.
int trial(double by_all) {
    const int with_all = static_cast<int>(std::ceil(ThreadChoice::time_of_trial.count() / by_all));
    return std::max(with_all, ThreadChoice::runs_of_trial) + ThreadChoice::runs_of_trial;
}

TEST(ThreadChoice, OneThreadIsNeverMeasured) {
    ThreadChoice choice(1);
    for (int i = 0; i < 3 * ThreadChoice::runs_with_one; ++i) {
        ASSERT_FALSE(choice.all());
        ASSERT_FALSE(choice.measures());
        choice.ended({});
    }
}

TEST(ThreadChoice, TheFasterKindGoesOn) {
    ThreadChoice near(2), far(2);
    runs_with_all(near, trial(0.16), 0.16, 0.21);
    EXPECT_EQ(runs_with_all(near, 5000, 0.16, 0.21), 5000);
    EXPECT_EQ(runs_with_all(far, trial(0.25), 0.25, 0.21),
              trial(0.25) - ThreadChoice::runs_of_trial);
    EXPECT_EQ(runs_with_all(far, 1000, 0.25, 0.21), 0);
}

TEST(ThreadChoice, NextToNothingIsNotWorthACore) {
    ThreadChoice choice(2);
    runs_with_all(choice, trial(0.208), 0.208, 0.21);
    EXPECT_FALSE(choice.all());
}

TEST(ThreadChoice, ADisturbedRunDecidesNothing) {
    ThreadChoice choice(2);
    choice.ended(Duration(90));
    runs_with_all(choice, 2 * ThreadChoice::runs_of_trial - 1, 0.16, 0.21);
    EXPECT_TRUE(choice.all());
    EXPECT_EQ(runs_with_all(choice, 1000, 0.16, 0.21), 1000);
}

TEST(ThreadChoice, LongRunsTakeAllThreadsFromTheStart) {
    ThreadChoice choice(4);
    EXPECT_EQ(runs_with_all(choice, 5000, 6, 5.5), 5000);
}

TEST(ThreadChoice, IsMadeAgainWhereAllThreadsBecomeSlower) {
    ThreadChoice choice(2);
    runs_with_all(choice, trial(0.16), 0.16, 0.21);
    ASSERT_TRUE(choice.all());
    // A watch begins before the cores part; the next one sees it.
    runs_with_all(choice, 2 * ThreadChoice::runs_of_watch + trial(0.25), 0.25, 0.21);
    EXPECT_FALSE(choice.all());
}

TEST(ThreadChoice, IsMadeAgainAfterManyRunsWithOne) {
    ThreadChoice choice(2);
    runs_with_all(choice, trial(0.25), 0.25, 0.21);
    ASSERT_FALSE(choice.all());
    runs_with_all(choice, ThreadChoice::runs_with_one + trial(0.16), 0.16, 0.21);
    EXPECT_TRUE(choice.all());
}

}  // namespace
}  // namespace reef::graph

#include "graph/thread_choice.h"

#include <gtest/gtest.h>

namespace reef::graph {
namespace {

using namespace std::chrono_literals;
using Duration = ThreadChoice::Duration;

/// Runs that take so long with all threads and with one, one behind the other.
class Machine {
  public:
    explicit Machine(int threads) : choice(threads) {}

    /// How many of them took all threads.
    int run(int runs, Duration by_all, Duration by_one, Duration rest = 0us) {
        int with_all = 0;
        for (int i = 0; i < runs; ++i) {
            with_all += choice.all() ? 1 : 0;
            const auto begin = now_;
            now_ += choice.all() ? by_all : by_one;
            choice.ended(begin, now_);
            now_ += rest;
        }
        return with_all;
    }
    int run_for(Duration time, Duration by_all, Duration by_one) {
        int with_all = 0;
        for (const auto end = now_ + time; now_ < end;) with_all += run(1, by_all, by_one);
        return with_all;
    }

    ThreadChoice choice;

  private:
    ThreadChoice::Clock::time_point now_{};
};

TEST(ThreadChoice, OneThreadIsNeverMeasured) {
    Machine machine(1);
    EXPECT_FALSE(machine.choice.measures());
    EXPECT_EQ(machine.run(10000, 100us, 200us), 0);
}

TEST(ThreadChoice, TheFasterKindGoesOn) {
    Machine near(2), far(2);
    near.run_for(30ms, 150us, 210us);
    EXPECT_EQ(near.run(5000, 150us, 210us), 5000);
    far.run_for(30ms, 250us, 210us);
    EXPECT_EQ(far.run(5000, 250us, 210us), 0);
}

TEST(ThreadChoice, NextToNothingIsNotWorthACore) {
    Machine machine(2);
    machine.run_for(30ms, 208us, 210us);
    EXPECT_FALSE(machine.choice.all());
}

TEST(ThreadChoice, ADisturbedRunDecidesNothing) {
    Machine machine(2);
    machine.run_for(ThreadChoice::time_to_wake, 150us, 210us);
    machine.run(1, 90ms, 90ms);
    machine.run(2 * ThreadChoice::runs_of_trial - 1, 150us, 210us);
    EXPECT_EQ(machine.run(1000, 150us, 210us), 1000);
}

TEST(ThreadChoice, LongRunsTakeAllThreadsFromTheStart) {
    Machine machine(4);
    EXPECT_EQ(machine.run(5000, 6000us, 5500us), 5000);
}

TEST(ThreadChoice, IsMadeOnceLongRunsBecomeShort) {
    Machine machine(2);
    machine.run(50, 6ms, 6ms);
    machine.run(ThreadChoice::runs_of_watch, 250us, 210us);
    machine.run_for(30ms, 250us, 210us);
    EXPECT_FALSE(machine.choice.all());
}

TEST(ThreadChoice, IsMadeAgainWhereAllThreadsBecomeSlower) {
    Machine machine(2);
    machine.run_for(30ms, 150us, 210us);
    ASSERT_TRUE(machine.choice.all());
    // A watch begins before the cores part; the next one sees it.
    machine.run(2 * ThreadChoice::runs_of_watch, 250us, 210us);
    machine.run_for(30ms, 250us, 210us);
    EXPECT_FALSE(machine.choice.all());
}

TEST(ThreadChoice, IsMadeAgainSomeTimeAfterOneThreadWon) {
    Machine machine(2);
    machine.run_for(30ms, 250us, 210us);
    ASSERT_FALSE(machine.choice.all());
    machine.run_for(ThreadChoice::time_with_one, 150us, 210us);
    machine.run_for(30ms, 150us, 210us);
    EXPECT_TRUE(machine.choice.all());
}

TEST(ThreadChoice, TrialsTakeAThousandthOfTheTimeHoweverShortRunsAre) {
    for (const Duration by_one : {Duration(5us), Duration(50us), Duration(1000us)}) {
        Machine machine(2);
        const int with_all = machine.run_for(300s, by_one * 6 / 5, by_one);
        EXPECT_LT(with_all * (by_one * 6 / 5), 300ms) << by_one.count();
    }
}

TEST(ThreadChoice, AtThirtyFramesASecondATrialTakesAFewFrames) {
    Machine machine(2);
    const int with_all = machine.run(1000, 300us, 250us, 33ms);
    EXPECT_LE(with_all, 3 * (ThreadChoice::runs_to_wake + ThreadChoice::runs_of_trial));
}

TEST(ThreadChoice, OfRareRunsMostTakeTheFasterKind) {
    Machine machine(2);
    EXPECT_LT(machine.run(2000, 300us, 250us, 60s), 2000 / 20);
}

}  // namespace
}  // namespace reef::graph

#include "peers/two_threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "peers/machine_speed.h"

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

// Rounds of one thread that others slowed down, and one of two threads that they did not.
TEST(TwoThreads, KeepABoundByThemselvesWhereTheUpperQuartileDoes) {
    TwoThreads threads;
    for (int round = 0; round < 3; ++round) threads.note(17, 10, {});
    EXPECT_FALSE(threads.keep(1.8));
    threads.note(17, 9, {});
    EXPECT_GT(threads.times(), 1.8);
    EXPECT_FALSE(threads.keep(1.8));
    threads.note(17, 9, {});
    EXPECT_TRUE(threads.keep(1.8));
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

/// The cores that this thread and those it starts may use; as before when it ends.
class Cores {
  public:
    Cores() {
        CPU_ZERO(&before_);
        EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
    }
    Cores(const Cores&) = delete;
    Cores& operator=(const Cores&) = delete;
    ~Cores() { ::sched_setaffinity(0, sizeof before_, &before_); }

    [[nodiscard]] int count() const { return CPU_COUNT(&before_); }
    void keep_one() const {
        std::size_t first = 0;
        while (first + 1 < CPU_SETSIZE && !CPU_ISSET(first, &before_)) ++first;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    }

  private:
    cpu_set_t before_;
};

// Others may use the cores, even so that the second thread has none for a while.
TEST(GainOfTwoThreads, IsOfTwoCores) {
#if defined(__x86_64__)
    const bool is_measured = Cores().count() >= 2 && __builtin_cpu_supports("avx2");
#else
    const bool is_measured = false;
#endif
    auto gain = gain_of_two_threads();
    for (int tries = 1; tries < 10 && is_measured && !gain; ++tries) gain = gain_of_two_threads();
    ASSERT_EQ(gain.has_value(), is_measured);
    if (!gain) return;
    EXPECT_GT(*gain, 0.1);
    EXPECT_LT(*gain, 10);
}

TEST(GainOfTwoThreads, IsNothingOnOneCore) {
    const Cores cores;
    cores.keep_one();
    EXPECT_EQ(gain_of_two_threads(), std::nullopt);
}

}  // namespace
}  // namespace reef::peers

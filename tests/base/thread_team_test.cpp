#include "base/thread_team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/sleeping_threads.h"

namespace reef {
namespace {

using Clock = std::chrono::steady_clock;
using Help = ThreadTeam::Help;
constexpr auto soon = std::chrono::milliseconds(20);
constexpr auto at_last = std::chrono::seconds(60);

class ThreadTeams : public testing::TestWithParam<Help> {};

TEST_P(ThreadTeams, DoEveryPartOnceInEveryCall) {
    for (const unsigned threads : {1U, 2U, 5U}) {
        ThreadTeam team(threads);
        EXPECT_EQ(team.threads(), threads);
        std::vector<std::atomic<unsigned>> done(threads * ThreadTeam::most_parts);
        std::atomic<unsigned> faults = 0;
        for (unsigned call = 1; call <= 3000; ++call) {
            const unsigned owners = 1 + call % threads;
            const unsigned parts = call % 500 == 0 ? ThreadTeam::most_parts : 1 + call % 7;
            for (auto& part : done) part = 0;
            team.each(owners, parts, GetParam(), call,
                      [&](unsigned owner, unsigned part, unsigned worker, std::uint64_t argument) {
                          if (worker >= owners || argument != call) ++faults;
                          ++done[owner * parts + part];
                      });
            for (unsigned i = 0; i < done.size(); ++i)
                ASSERT_EQ(done[i], i < owners * parts ? 1U : 0U) << threads << " threads, " << i;
        }
        EXPECT_EQ(faults, 0U);
    }
}

// A stale thread would read what is long gone: each call's work is its own, and ends with it.
TEST_P(ThreadTeams, NobodyTouchesACallThatIsOver) {
    ThreadTeam team(5);
    for (unsigned call = 1; call <= 2000; ++call) {
        auto sum = std::make_unique<std::atomic<unsigned>>(0);
        team.each(5, 2, GetParam(), 0, [&, own = sum.get()](auto owner, auto part, auto, auto) {
            *own += owner * 2 + part;
        });
        ASSERT_EQ(*sum, 45U);
        if (call % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

TEST_P(ThreadTeams, SleepWhenThereIsNothingToDo) {
    ThreadTeam team(5);
    std::atomic<int> done = 0;
    team.each(5, 4, GetParam(), 0, [&](auto...) { ++done; });
    EXPECT_EQ(done, 20);
    EXPECT_TRUE(test::others_fall_asleep());
}

/// Whether in some call every thread was at work: whoever does a part waits there for the others.
/// One that the system did not run in time gets nothing of the next call.
bool all_come(ThreadTeam& team, Help help) {
    std::mutex mutex;
    std::condition_variable came;
    std::set<std::thread::id> at_work;
    std::set<unsigned> workers;
    const auto end = Clock::now() + at_last;
    while (at_work.size() < team.threads() && Clock::now() < end) {
        at_work.clear();
        workers.clear();
        team.each(team.threads(), 3, help, 0, [&](unsigned, unsigned, unsigned worker, auto) {
            std::unique_lock lock(mutex);
            at_work.insert(std::this_thread::get_id());
            workers.insert(worker);
            came.notify_all();
            came.wait_for(lock, soon, [&] { return at_work.size() == team.threads(); });
        });
    }
    return at_work.size() == team.threads() && workers.size() == team.threads();
}

TEST_P(ThreadTeams, WorkOnAsManyThreads) {
    for (const unsigned threads : {2U, 5U}) {
        ThreadTeam team(threads);
        EXPECT_TRUE(all_come(team, GetParam()));
    }
}

TEST_P(ThreadTeams, ComeAgainWhenTheyHaveSlept) {
    ThreadTeam team(3);
    ASSERT_TRUE(test::others_fall_asleep());
    EXPECT_TRUE(all_come(team, GetParam()));
}

TEST_P(ThreadTeams, ComeAgainWhenTheyWereLate) {
    ThreadTeam team(3);
    ASSERT_TRUE(test::others_fall_asleep());
    for (int i = 0; i < 3; ++i) team.each(3, 1, GetParam(), 0, [](auto...) {});
    EXPECT_TRUE(all_come(team, GetParam()));
}

// One that did not come at all loses all of its parts: only some call has to be so.
TEST_P(ThreadTeams, WhoDoesNotGetOnLosesWhatItHasNotBegun) {
    ThreadTeam team(2);
    const auto end = Clock::now() + at_last;
    std::array<unsigned, 2> done{};
    while (done != std::array<unsigned, 2>{3, 1} && Clock::now() < end) {
        std::array<std::atomic<unsigned>, 2> did{};
        std::atomic<bool> begun = false;
        team.each(2, 2, GetParam(), 0, [&](unsigned, unsigned, unsigned worker, auto) {
            if (worker == 1) begun = true;
            const auto late = Clock::now() + soon;
            while ((worker == 1 ? did[0] < 3 : !begun) && Clock::now() < late)
                std::this_thread::yield();
            ++did[worker];
        });
        done = {did[0], did[1]};
        ASSERT_EQ(done[0] + done[1], 4U);
    }
    EXPECT_THAT(done, testing::ElementsAre(3, 1));
}

INSTANTIATE_TEST_SUITE_P(Helping, ThreadTeams, testing::Values(Help::all, Help::late),
                         [](const auto& helping) {
                             return helping.param == Help::all ? "All" : "Late";
                         });

/// Whether in some call the last worker did the two parts that another owner had not begun, while
/// all others waited in theirs.
bool last_helps(unsigned threads, unsigned owner) {
    ThreadTeam team(threads);
    const auto end = Clock::now() + at_last;
    unsigned most = 0;
    while (most != 2 && Clock::now() < end) {
        std::atomic<unsigned> helped = 0;
        team.each(threads, 3, Help::all, 0, [&](unsigned of, unsigned, unsigned worker, auto) {
            const bool is_last = worker == threads - 1;
            if (of == owner && is_last) ++helped;
            const auto late = Clock::now() + soon;
            while (!is_last && helped < 2 && Clock::now() < late) std::this_thread::yield();
        });
        most = helped;
    }
    return most == 2;
}

TEST(ThreadTeam, OthersHelpTheCallerAndEachOtherWhereAllHelp) {
    EXPECT_TRUE(last_helps(2, 0));
    EXPECT_TRUE(last_helps(3, 1));
}

}  // namespace
}  // namespace reef

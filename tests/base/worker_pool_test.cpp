#include "base/worker_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "support/sleeping_threads.h"

namespace reef {
namespace {

class WorkerPoolTest : public testing::TestWithParam<int> {};

TEST_P(WorkerPoolTest, CoversEveryIndexOnceInPiecesOfAtLeastTheGrain) {
    WorkerPool pool(GetParam());
    for (const std::size_t count : {0U, 1U, 2U, 5U, 16U, 17U, 1000U}) {
        for (const std::size_t grain : {1U, 3U, 16U, 999U, 5000U}) {
            std::vector<std::atomic<int>> seen(count);
            std::atomic<bool> short_piece = false;
            pool.parallel_for(count, grain,
                              [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                                  if (end - begin < std::min(grain, count)) short_piece = true;
                                  for (std::size_t i = begin; i < end; ++i) ++seen[i];
                              });
            EXPECT_FALSE(short_piece) << count << " by " << grain;
            for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(seen[i], 1) << i << " of " << count;
        }
    }
}

TEST_P(WorkerPoolTest, NoTwoCallsAtATimeShareAWorker) {
    const auto threads = static_cast<std::size_t>(GetParam());
    WorkerPool pool(GetParam());
    std::vector<std::atomic<int>> busy(threads);
    std::atomic<int> faults = 0;
    for (int round = 0; round < 20; ++round) {
        pool.parallel_for(64, 1, [&](std::size_t begin, std::size_t end, std::size_t worker) {
            if (worker >= threads || busy[worker].fetch_add(1) != 0) {
                ++faults;
                return;
            }
            std::this_thread::sleep_for(std::chrono::microseconds(20 * (end - begin)));
            busy[worker].fetch_sub(1);
        });
    }
    EXPECT_EQ(faults, 0);
}

TEST_P(WorkerPoolTest, NobodyLooksForWorkForever) {
    WorkerPool pool(GetParam());
    std::atomic<std::size_t> done = 0;
    pool.parallel_for(1000, 1, [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
        done += end - begin;
    });
    EXPECT_EQ(done, 1000U);
    EXPECT_TRUE(test::others_fall_asleep());
}

// 14 rows are 7 for each of two threads, however many pieces these are.
TEST(WorkerPool, EveryThreadHasAShareOfEqualLength) {
    WorkerPool pool(2);
    for (const std::size_t grain : {1U, 2U, 3U, 7U}) {
        std::atomic<unsigned> in_the_middle = 0;
        pool.parallel_for(14, grain, [&](std::size_t begin, std::size_t, std::size_t) {
            if (begin == 7) ++in_the_middle;
        });
        EXPECT_EQ(in_the_middle, 1U) << "pieces of " << grain;
    }
}

// Of a thread that is slower others take the end.
TEST(WorkerPool, PiecesOfAShareGetShorter) {
    constexpr std::size_t share = 1600;
    WorkerPool pool(2);
    std::mutex mutex;
    std::map<std::size_t, std::size_t> ends;  // by begin
    pool.parallel_for(2 * share, 10, [&](std::size_t begin, std::size_t end, std::size_t) {
        const std::lock_guard lock(mutex);
        ends.emplace(begin, end);
    });
    for (const std::size_t first : {std::size_t{0}, share}) {
        std::vector<std::size_t> lengths;
        for (auto piece = ends.find(first); piece != ends.end() && piece->first < first + share;
             ++piece)
            lengths.push_back(piece->second - piece->first);
        ASSERT_FALSE(lengths.empty()) << "no second thread";
        EXPECT_TRUE(std::ranges::is_sorted(lengths, std::greater<>()));
        EXPECT_LE(lengths.front(), share / 3);
        EXPECT_EQ(lengths.back(), share / 16);
    }
}

TEST(WorkerPool, OneThreadRunsOnTheCaller) {
    WorkerPool pool(1);
    int calls = 0;
    pool.parallel_for(100, 1,
                      [&, caller = std::this_thread::get_id()](std::size_t begin, std::size_t end,
                                                               std::size_t worker) {
                          EXPECT_EQ(std::this_thread::get_id(), caller);
                          EXPECT_EQ(begin, 0U);
                          EXPECT_EQ(end, 100U);
                          EXPECT_EQ(worker, 0U);
                          ++calls;
                      });
    EXPECT_EQ(calls, 1);
}

TEST(WorkerPool, OfSeveralThreadsOnlyTheCallersMayBeUsed) {
    WorkerPool pool(4);
    pool.use_all(false);
    int calls = 0;
    pool.parallel_for(100, 1, [&](std::size_t begin, std::size_t end, std::size_t worker) {
        EXPECT_EQ(end - begin, 100U);
        EXPECT_EQ(worker, 0U);
        ++calls;
    });
    EXPECT_EQ(calls, 1);
    pool.use_all(true);
    std::atomic<int> pieces = 0;
    pool.parallel_for(100, 1, [&](std::size_t, std::size_t, std::size_t) { ++pieces; });
    EXPECT_GT(pieces, 1);
    EXPECT_EQ(pool.threads(), 4);
}

TEST(WorkerPool, ThreadsReallyWorkAtTheSameTimeMoreThanTheMachineHasToo) {
    const int threads = 1 + static_cast<int>(std::thread::hardware_concurrency());
    WorkerPool pool(threads);
    // Each piece waits for all others; alone, a thread would give up.
    std::atomic<int> met = 0;
    std::atomic<bool> timed_out = false;
    pool.parallel_for(
        static_cast<std::size_t>(threads), 1, [&](std::size_t, std::size_t, std::size_t) {
            ++met;
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
            while (met < threads && std::chrono::steady_clock::now() < deadline)
                std::this_thread::yield();
            if (met < threads) timed_out = true;
        });
    EXPECT_FALSE(timed_out);
}

INSTANTIATE_TEST_SUITE_P(Threads, WorkerPoolTest, testing::Values(1, 2, 3, 8),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace reef

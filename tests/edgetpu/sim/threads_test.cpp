// Tiles side by side: the same memories, bytes and errors with any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "copy_program.h"
#include "edgetpu/sim/machine/tile_shares.h"
#include "machine_run.h"
#include "same_memory.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

std::atomic<std::thread::id> fast_thread;

/// On which all threads but one take four times as long.
std::chrono::nanoseconds uneven_time() {
    thread_local std::chrono::nanoseconds time{};
    const bool is_fast = std::this_thread::get_id() == fast_thread.load();
    return time += std::chrono::milliseconds(is_fast ? 1 : 4);
}

/// The same, on which the fast thread waits before its tiles, so that others come in time.
std::chrono::nanoseconds patient_time() {
    constexpr unsigned calls_of_round = 1 + TileShares::parts;
    static unsigned calls = 0;
    if (std::this_thread::get_id() == fast_thread.load() && calls++ % calls_of_round == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return uneven_time();
}

class Threads : public testing::TestWithParam<const char*> {};

TEST_P(Threads, ChangeNoByte) {
    REEF_SHARED_OR_SKIP(shared);
    auto programs = PackagePrograms::load(shared / "data" / (GetParam() + std::string(".tflite")));
    ASSERT_TRUE(programs) << programs.error().message();
    Machine one;
    programs->set_inputs(7);
    ASSERT_TRUE(programs->run(one));
    const auto wanted = programs->outputs();
    for (const int threads : {2, 3, 5}) {
        // Tiles go to the caller in the first run, and back in the second, whose beginning is what
        // that one left.
        Machine several({.threads = threads, .tile_clock = uneven_time});
        for (const auto fast : {std::this_thread::get_id(), std::thread::id()}) {
            fast_thread = fast;
            programs->set_inputs(7);
            const auto status = programs->run(several);
            ASSERT_TRUE(status) << status.error().message();
            EXPECT_EQ(programs->outputs(), wanted) << threads << " threads";
        }
        for (unsigned t = 0; t < tile_count; ++t)
            ASSERT_TRUE(same_memory(one.tile(t), several.tile(t))) << "tile " << t;
    }
}

INSTANTIATE_TEST_SUITE_P(Programs, Threads,
                         testing::Values("edgetpu/templates/gabor_64x64_p4_edgetpu",
                                         "models/mobilenet_v1_0.25_128_quant_edgetpu",
                                         "models/keras_lstm_mnist_ptq_edgetpu",
                                         "models/deeplabv3_mnv2_dm05_pascal_quant_edgetpu"),
                         [](const auto& tested) {
                             std::string name = tested.param;
                             name.erase(0, name.rfind('/') + 1);
                             std::ranges::replace(name, '.', '_');
                             return name;
                         });

// Threads meet in every round: a relay over the scalar core must not take one for each credit.
TEST(Rounds, AreFew) {
    REEF_SHARED_OR_SKIP(shared);
    auto programs = PackagePrograms::load(shared / "data" / "models" /
                                          "mobilenet_v1_0.25_128_quant_edgetpu.tflite");
    ASSERT_TRUE(programs) << programs.error().message();
    programs->set_inputs(7);
    const auto rounds = [&](const MachineOptions& options) {
        Machine machine(options);
        EXPECT_TRUE(sim::run(machine, *programs->caching));
        programs->computing.host->begin_run();
        machine.begin(programs->computing.program, *programs->computing.host);
        for (unsigned round = 1;; ++round) {
            const auto progress = machine.advance();
            if (!progress || progress->ended) return round;
        }
    };
    EXPECT_LE(rounds({}), 200U);
    EXPECT_EQ(rounds({.threads = 2}), rounds({}));
    // What may wait at a receiver is the chip's there.
    EXPECT_GT(rounds({.strict = true}), 200U);
}

constexpr std::uint32_t all_tiles = 0xFFFF;

std::uint32_t share_of(const TileShares& shares, std::uint32_t tiles, unsigned owner) {
    std::uint32_t share = 0;
    for (unsigned part = 0; part < TileShares::parts; ++part) {
        const std::uint32_t some = shares.part_of(tiles, owner, part);
        EXPECT_EQ(some & share, 0U);
        share |= some;
    }
    return share;
}

void expect_all_once(const TileShares& shares, std::uint32_t tiles, unsigned workers) {
    const unsigned owners = shares.owners(tiles);
    ASSERT_LE(owners, workers);
    std::uint32_t seen = 0;
    for (unsigned owner = 0; owner < owners; ++owner) {
        const std::uint32_t share = share_of(shares, tiles, owner);
        EXPECT_EQ(share & seen, 0U);
        seen |= share;
    }
    ASSERT_EQ(seen, tiles) << workers << " workers";
}

TEST(TileSharesOfWorkers, AreAllTilesOnce) {
    for (unsigned workers = 1; workers <= tile_count; ++workers) {
        const TileShares shares(workers);
        for (std::uint32_t call = 1; call <= 200; ++call)
            expect_all_once(shares, call * 2654435761U >> 16U, workers);
    }
}

TEST(TileSharesOfWorkers, AreAllTilesOnceWhereverTheyMove) {
    std::mt19937 random(1);
    for (unsigned workers = 1; workers <= tile_count; ++workers) {
        TileShares shares(workers);
        for (int round = 0; round < 400; ++round) {
            const std::uint32_t tiles = round % 8 == 0 ? random() & all_tiles : all_tiles;
            for (unsigned worker = 0; worker < workers; ++worker)
                shares.note(worker,
                            static_cast<unsigned>(std::popcount(share_of(shares, tiles, worker))),
                            std::uniform_int_distribution(0, 2'000'000)(random));
            shares.settle(tiles);
            expect_all_once(shares, all_tiles, workers);
            for (unsigned worker = 0; worker < workers; ++worker)
                ASSERT_NE(share_of(shares, all_tiles, worker), 0U);
        }
    }
}

/// A quarter, and in the long run each of a program's, which come again and again.
TEST(TileSharesOfWorkers, TimeAQuarterOfRounds) {
    constexpr unsigned calls = 400, most_apart = 8;
    for (unsigned length = 1; length <= 256; ++length) {
        TileShares shares(2);
        unsigned timed = 0;
        std::vector<bool> seen(length);
        for (unsigned round = 0; round < calls * length; ++round)
            if (shares.times_next_round()) {
                ++timed;
                seen[round % length] = true;
            }
        EXPECT_NEAR(timed, calls * length / 4.0, most_apart) << length << " rounds";
        EXPECT_TRUE(std::ranges::all_of(seen, std::identity())) << length << " rounds";
    }
}

/// How many of the tiles each worker has, behind some rounds in which it does so many in a
/// millisecond.
std::vector<int> tiles_by(TileShares& shares, const std::vector<double>& speeds,
                          std::uint32_t tiles = all_tiles) {
    std::vector<int> counts(speeds.size());
    for (int round = 0; round < 40; ++round) {
        for (unsigned worker = 0; worker < speeds.size(); ++worker) {
            counts[worker] = std::popcount(share_of(shares, tiles, worker));
            shares.note(worker, static_cast<unsigned>(counts[worker]),
                        static_cast<std::uint64_t>(1e6 * counts[worker] / speeds[worker]));
        }
        shares.settle(tiles);
    }
    return counts;
}

TEST(TileSharesOfWorkers, GoToThoseThatAreFaster) {
    TileShares two(2);
    EXPECT_EQ(tiles_by(two, {10, 5.5}), (std::vector{10, 6}));
    EXPECT_EQ(tiles_by(two, {10, 10}), (std::vector{8, 8}));
    EXPECT_EQ(tiles_by(two, {4, 10}), (std::vector{4, 12}));
    TileShares four(4);
    EXPECT_EQ(tiles_by(four, {10, 5, 10, 10}), (std::vector{5, 2, 5, 4}));
}

// Which of average pools' programs add up the last sums, two tiles at a time.
TEST(TileSharesOfWorkers, HavePairsThatAddUpOnBothSides) {
    for (const auto& speeds : {std::vector{10.0, 10.0}, {10, 5.5}, {5.5, 10}}) {
        TileShares two(2);
        const auto counts = tiles_by(two, speeds);
        for (const std::uint32_t pair : {1U << 1U | 1U << 2U, 1U << 0U | 1U << 3U})
            EXPECT_EQ(std::popcount(share_of(two, pair, 0)), 1) << counts[0] << " tiles";
    }
}

// A row of tiles: the places between those that compute count for nothing.
TEST(TileSharesOfWorkers, AreOfTilesThatCompute) {
    constexpr std::uint32_t row = 0xF;
    TileShares shares(2);
    EXPECT_EQ(tiles_by(shares, {10, 10}, row), (std::vector{2, 2}));
    EXPECT_EQ(tiles_by(shares, {10, 4}, row), (std::vector{3, 1}));
    EXPECT_EQ(tiles_by(shares, {10, 1}, row), (std::vector{3, 1}));
    EXPECT_EQ(tiles_by(shares, {10, 10}, row), (std::vector{2, 2}));
}

// A thread whose share the caller has half done is slow, not fast.
TEST(TileSharesOfWorkers, GoByWhatAWorkerDidItself) {
    TileShares shares(2);
    shares.note(0, 8, 800'000);
    shares.note(1, 4, 800'000);
    shares.settle(all_tiles);
    EXPECT_EQ(std::popcount(share_of(shares, all_tiles, 0)), 9);
}

TEST(TileSharesOfWorkers, StayWhereNothingSaysHowFastAWorkerIs) {
    TileShares shares(2);
    shares.note(0, 8, 800'000);
    shares.settle(all_tiles);
    EXPECT_EQ(std::popcount(share_of(shares, all_tiles, 0)), 8);
}

TEST(TileSharesOfWorkers, StayWhereMovingATileSavesNothing) {
    TileShares shares(2);
    EXPECT_EQ(tiles_by(shares, {10, 9}), (std::vector{8, 8}));
}

TEST(TileSharesOfWorkers, StayUntilTimesSaySomething) {
    TileShares shares(2);
    for (const unsigned worker : {0U, 1U}) shares.note(worker, 8, 1000 * worker);
    shares.settle(all_tiles);
    EXPECT_EQ(std::popcount(share_of(shares, all_tiles, 0)), 8);
}

// Another program's tiles may all be those of one.
TEST(TileSharesOfWorkers, AreEqualAgainBehindManyRoundsOfOneWorker) {
    for (const auto& speeds : {std::vector<double>{10, 5.5}, std::vector<double>{5.5, 10}}) {
        TileShares shares(2);
        const auto moved = tiles_by(shares, speeds);
        const unsigned larger = moved[0] > moved[1] ? 0 : 1;
        const std::uint32_t some = share_of(shares, all_tiles, larger);
        for (int round = 0; round < 300; ++round) shares.settle(some);
        EXPECT_EQ(std::popcount(share_of(shares, all_tiles, 0)), 8);
    }
}

TEST(TileSharesOfWorkers, AreEqual) {
    for (const unsigned workers : {2U, 4U, 8U}) {
        const TileShares shares(workers);
        EXPECT_EQ(shares.owners(all_tiles), workers);
        for (unsigned owner = 0; owner < workers; ++owner)
            for (unsigned part = 0; part < TileShares::parts; ++part)
                EXPECT_EQ(std::popcount(shares.part_of(all_tiles, owner, part)),
                          static_cast<int>(tile_count / workers / TileShares::parts));
    }
}

TEST(ThreadsOnUnequalCores, ChangeNoByteWhileTilesChangeHands) {
    auto programs = PackagePrograms::load(copy_package(copy_program(), 256));
    ASSERT_TRUE(programs) << programs.error().message();
    programs->set_inputs(3);
    Machine one;
    ASSERT_TRUE(programs->run(one));
    const auto wanted = programs->outputs();
    fast_thread = std::this_thread::get_id();
    Machine two({.threads = 2, .tile_clock = patient_time});
    const auto tiles_of_caller = [&] {
        return std::popcount(share_of(two.shares(), all_tiles, 0));
    };
    // Until the other thread has come in time, which it may not do while others have its core.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    for (int run = 0; tiles_of_caller() == 8 && std::chrono::steady_clock::now() < deadline;
         ++run) {
        programs->set_inputs(3);
        const auto status = programs->run(two);
        ASSERT_TRUE(status) << status.error().message();
        ASSERT_EQ(programs->outputs(), wanted) << "run " << run;
    }
    EXPECT_GT(tiles_of_caller(), 8);
    for (unsigned t = 0; t < tile_count; ++t)
        ASSERT_TRUE(same_memory(one.tile(t), two.tile(t))) << "tile " << t;
}

TEST(ThreadsOnBadPrograms, GiveTheSameError) {
    for (const auto& [from, to] : {std::pair{"WIDE_TO_NARROW@0>=1+1", "WIDE_TO_NARROW@0>=101+1"},
                                   std::pair{"dst=0x814[1x1]", "dst=0x900[1x1]"}}) {
        std::vector<std::string> errors;
        for (const int threads : {1, 2, 3, 5}) {
            auto programs =
                PackagePrograms::load(copy_package(with(copy_program(), from, to), 256));
            ASSERT_TRUE(programs) << programs.error().message();
            programs->set_inputs(3);
            Machine machine({.threads = threads});
            const auto status = programs->run(machine);
            ASSERT_FALSE(status);
            errors.push_back(status.error().message());
        }
        for (const auto& error : errors) EXPECT_EQ(error, errors.front());
    }
}

}  // namespace
}  // namespace reef::edgetpu::sim

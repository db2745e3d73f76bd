// Tiles side by side: the same memories, bytes and errors with any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "copy_program.h"
#include "edgetpu/sim/machine/tile_team.h"
#include "machine_run.h"
#include "same_memory.h"
#include "support/shared_data.h"
#include "support/sleeping_threads.h"

namespace reef::edgetpu::sim {
namespace {

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
        Machine several({.threads = threads});
        // Twice: what the first run leaves is the second one's beginning.
        for (int run = 0; run < 2; ++run) {
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

TEST(TileTeams, DoEveryTileOnceInEveryCall) {
    for (const unsigned threads : {1U, 2U, 5U}) {
        TileTeam team(threads);
        EXPECT_EQ(team.threads(), threads);
        std::array<unsigned, tile_count> done{};
        std::array<unsigned, tile_count> wanted{};
        for (std::uint32_t call = 1; call <= 2000; ++call) {
            const std::uint32_t tiles = call * 2654435761U >> 16U;
            team.each(tiles, [&](unsigned tile, unsigned worker) {
                if (worker < threads) ++done[tile];
            });
            for (unsigned t = 0; t < tile_count; ++t) wanted[t] += tiles >> t & 1U;
            ASSERT_EQ(done, wanted) << threads << " threads, call " << call;
        }
    }
}

TEST(TileTeams, SleepWhenARunIsOver) {
    TileTeam team(5);
    std::array<std::atomic<int>, tile_count> done{};
    team.each(0xFFFF, [&](unsigned tile, unsigned) { ++done[tile]; });
    for (const auto& tile : done) EXPECT_EQ(tile, 1);
    EXPECT_TRUE(test::others_fall_asleep());
}

// Whoever does a tile waits there for the others. One that the system did not run in time gets no
// tile of the next call: only some call has to have all of them.
TEST(TileTeams, WorkOnAsManyThreads) {
    for (const unsigned threads : {2U, 5U}) {
        TileTeam team(threads);
        std::mutex mutex;
        std::condition_variable came;
        std::set<std::thread::id> at_work;
        std::set<unsigned> workers;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (at_work.size() < threads && std::chrono::steady_clock::now() < end) {
            at_work.clear();
            workers.clear();
            team.each(0xFFFF, [&](unsigned, unsigned worker) {
                std::unique_lock lock(mutex);
                at_work.insert(std::this_thread::get_id());
                workers.insert(worker);
                came.notify_all();
                came.wait_for(lock, std::chrono::milliseconds(20),
                              [&] { return at_work.size() == threads; });
            });
        }
        EXPECT_EQ(at_work.size(), threads);
        EXPECT_EQ(workers.size(), threads);
    }
}

// A thread that does not get on with its tiles loses half of them to the caller. One that did not
// come at all has none: only some call has to be so.
TEST(TileTeams, TheCallerDoesHalfOfWhatIsLate) {
    TileTeam team(2);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::array<unsigned, 2> done{};
    while (done != std::array<unsigned, 2>{12, 4} && std::chrono::steady_clock::now() < end) {
        std::array<std::atomic<unsigned>, 2> did{};
        std::atomic<bool> begun = false;
        team.each(0xFFFF, [&](unsigned, unsigned worker) {
            if (worker == 1) begun = true;
            const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
            while ((worker == 1 ? did[0] < 12 : !begun) && std::chrono::steady_clock::now() < late)
                std::this_thread::yield();
            ++did[worker];
        });
        done = {did[0], did[1]};
        ASSERT_EQ(done[0] + done[1], 16U);
    }
    EXPECT_THAT(done, testing::ElementsAre(12, 4));
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

// The order of the engines: random schedules give the same bytes; waits that are changed by 100 or
// by 1 do not pass unnoticed. REEF_SEEDS=50 runs as many seeds, and as many trials of the large
// program as of the small ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "machine_run.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

struct Case {
    std::string name;
    std::string path;
    unsigned trials;  ///< unless REEF_SEEDS asks for all 20
};

void PrintTo(const Case& tested, std::ostream* out) {
    *out << tested.name;
}

unsigned seeds_asked(unsigned otherwise) {
    const char* asked = std::getenv("REEF_SEEDS");
    return asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : otherwise;
}

struct Ran {
    Status status;
    std::vector<std::byte> out;
    std::size_t findings = 0;
};

/// `weakened`: a wait whose last event the monitor does not count as order.
Ran run(PackagePrograms& programs, MachineOptions options, const Wait* weakened = nullptr) {
    Machine machine(options);
    if (weakened != nullptr) machine.monitor()->weaken(weakened);
    Ran ran;
    ran.status = programs.run(machine);
    ran.out = programs.outputs();
    if (auto* monitor = machine.monitor()) ran.findings = monitor->findings().size();
    return ran;
}

class EngineOrder : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        REEF_SHARED_OR_SKIP(shared);
        auto loaded = PackagePrograms::load(shared / GetParam().path);
        ASSERT_TRUE(loaded) << loaded.error().message();
        programs_ = std::make_unique<PackagePrograms>(std::move(*loaded));
        programs_->set_inputs(7);
        const auto ran = run(*programs_, {});
        ASSERT_TRUE(ran.status) << ran.status.error().message();
        want_ = ran.out;
    }

    /// Of tile engines, in an order from a fixed seed.
    std::vector<Wait*> shuffled_waits() {
        std::vector<Wait*> all;
        for (auto& stream : programs_->computing.program.streams)
            for (auto& instruction : stream.instructions)
                std::visit(
                    [&](auto& op) {
                        if constexpr (requires { op.waits; })
                            for (unsigned i = 0; i < op.waits.count; ++i)
                                all.push_back(&op.waits.all[i]);
                    },
                    instruction.operation);
        std::shuffle(all.begin(), all.end(), std::mt19937_64(4));
        return all;
    }
    /// The instruction of a wait, with the wait's number.
    [[nodiscard]] std::string place(const Wait* wait) const {
        std::string found;
        for (const auto& stream : programs_->computing.program.streams)
            for (const auto& instruction : stream.instructions)
                std::visit(
                    [&](const auto& op) {
                        if constexpr (requires { op.waits; })
                            if (wait >= op.waits.all.data() &&
                                wait < op.waits.all.data() + op.waits.count)
                                found = place_of(instruction) + " wait " +
                                        std::to_string(wait - op.waits.all.data()) + " ";
                    },
                    instruction.operation);
        return found;
    }
    [[nodiscard]] unsigned trials() const {
        return std::getenv("REEF_SEEDS") != nullptr ? 20 : GetParam().trials;
    }

    std::unique_ptr<PackagePrograms> programs_;
    std::vector<std::byte> want_;
};

TEST_P(EngineOrder, RandomSchedulesGiveTheSameBytes) {
    const unsigned seeds = seeds_asked(4);
    for (unsigned seed = 1; seed <= seeds; ++seed) {
        const auto engine = seed % 2 == 0 ? EngineKind::plain : EngineKind::fast;
        const auto ran = run(*programs_, {.engine = engine, .random_seed = seed});
        ASSERT_TRUE(ran.status) << "seed " << seed << ": " << ran.status.error().message();
        ASSERT_EQ(ran.out, want_) << "seed " << seed;
    }
    RecordProperty("seeds", static_cast<int>(seeds));
}

// A counter that comes by a hundred events later meets the wait all the same: then nothing but time
// is lost, and the bytes must be right.
TEST_P(EngineOrder, WaitsForAHundredMoreAreDeadlocks) {
    unsigned deadlocks = 0;
    unsigned delayed = 0;
    for (Wait* wait : shuffled_waits()) {
        if (deadlocks == trials()) break;
        wait->start += 100;
        const auto ran = run(*programs_, {});
        wait->start -= 100;
        if (ran.status) {
            EXPECT_EQ(ran.out, want_);
            ++delayed;
            continue;
        }
        EXPECT_NE(ran.status.error().message().find("deadlock"), std::string::npos)
            << ran.status.error().message();
        EXPECT_NE(ran.status.error().message().find(" waits for "), std::string::npos);
        ++deadlocks;
    }
    EXPECT_EQ(deadlocks, trials());
    std::printf("%s: %u deadlocks, %u only delayed\n", GetParam().name.c_str(), deadlocks, delayed);
}

// A wait decides something when, with the order of its last event left out, some pair of accesses
// is unordered. Of the others, what they order is ordered by other waits too, or is not accessed:
// they must stay right when they are changed.
TEST_P(EngineOrder, WaitsForOneLessAreHazardsOrWrongData) {
    unsigned reported = 0;
    unsigned undecisive = 0;
    for (Wait* wait : shuffled_waits()) {
        if (reported == trials()) break;
        const bool decides = run(*programs_, {.strict = true}, wait).findings > 0;
        wait->start -= 1;
        const auto ran = run(*programs_, {.random_seed = reported + 1, .strict = true});
        wait->start += 1;
        if (!decides) {
            EXPECT_TRUE(ran.status && ran.findings == 0 && ran.out == want_)
                << place(wait) << (ran.status ? "" : ran.status.error().message()) << ran.findings
                << " findings";
            ++undecisive;
            continue;
        }
        EXPECT_TRUE(!ran.status || ran.findings > 0 || ran.out != want_) << place(wait);
        ++reported;
    }
    EXPECT_EQ(reported, trials());
    std::printf("%s: %u reported, %u decide nothing\n", GetParam().name.c_str(), reported,
                undecisive);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, EngineOrder,
    testing::Values(Case{"dense_256", "data/edgetpu/templates/dense_256_edgetpu.tflite", 20},
                    Case{"gabor_64", "data/edgetpu/templates/gabor_64x64_7k_4o_2s_edgetpu.tflite",
                         5},
                    Case{"gabor_64_p4", "data/edgetpu/templates/gabor_64x64_p4_edgetpu.tflite", 5},
                    Case{"mobilenet", "data/models/mobilenet_v1_0.25_128_quant_edgetpu.tflite", 1}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace reef::edgetpu::sim

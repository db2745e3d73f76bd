// A machine whose host has bytes and room only now and then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "copy_program.h"
#include "machine_run.h"

namespace reef::edgetpu::sim {
namespace {

/// Hands on so many units and takes so many bytes, then none before it is refilled.
class SparseHost final : public HostPort {
  public:
    explicit SparseHost(HostMemory& host) : host_(host) {}

    void refill(std::size_t units, std::size_t bytes) {
        units_ = units;
        bytes_ = bytes;
    }
    bool take(bool activations, std::span<std::uint8_t> unit) override {
        if (units_ == 0 || !host_.take(activations, unit)) return false;
        --units_;
        return true;
    }
    bool has_room(std::size_t bytes) const override { return bytes <= bytes_; }
    Status give(std::span<const std::uint8_t> unit) override {
        EXPECT_LE(unit.size(), bytes_) << "nobody asked whether there is room";
        bytes_ -= unit.size();
        return host_.give(unit);
    }
    Status fire(const DmaDescriptor& descriptor) override { return host_.fire(descriptor); }
    Status end_stream() override { return host_.end_stream(); }

  private:
    HostMemory& host_;
    std::size_t units_ = 0;
    std::size_t bytes_ = 0;
};

Result<PackagePrograms> loaded(const std::string& text) {
    auto programs = REEF_TRY(PackagePrograms::load(copy_package(text, 256)));
    programs.set_inputs(3);
    return programs;
}

TEST(Resume, BytesThatComeAndGoInPiecesGiveTheSame) {
    auto programs = loaded(copy_program());
    ASSERT_TRUE(programs) << programs.error().message();
    Machine whole;
    ASSERT_TRUE(programs->run(whole));
    const auto wanted = programs->outputs();
    for (unsigned seed = 0; seed < 20; ++seed) {
        MachineOptions options;
        if (seed > 0) options.random_seed = seed;
        Machine machine(options);
        programs->computing.host = HostMemory::create(programs->computing.executable).value();
        programs->set_inputs(3);
        SparseHost host(*programs->computing.host);
        machine.begin(programs->computing.program, host);
        std::size_t starved = 0;
        while (true) {
            const auto progress = machine.advance();
            ASSERT_TRUE(progress) << progress.error().message();
            if (progress->ended) break;
            if (!progress->starved) continue;
            EXPECT_FALSE(progress->moved);
            ++starved;
            ASSERT_LT(starved, 1000U);
            host.refill(1, starved % 2 == 0 ? 8 : 0);
        }
        EXPECT_GT(starved, copied_bytes / activation_unit_bytes) << "seed " << seed;
        EXPECT_EQ(programs->outputs(), wanted) << "seed " << seed;
        const auto after = machine.advance();
        EXPECT_TRUE(after && after->ended && !after->moved);
    }
}

TEST(HostMemory, AStreamEndsBehindItsTransfers) {
    auto programs = loaded(copy_program());
    ASSERT_TRUE(programs) << programs.error().message();
    HostMemory& host = *programs->computing.host;
    host.begin_run();
    EXPECT_TRUE(host.end_stream());
    const HostAddress first_input{std::uint64_t{first_layer_region} << 32U};
    ASSERT_TRUE(host.fire({first_input, 64, Tag::input_activations}));
    const auto open = host.end_stream();
    ASSERT_FALSE(open);
    EXPECT_THAT(open.error().message(), testing::HasSubstr("64 bytes not taken from the host"));
    std::array<std::uint8_t, 64> unit{};
    ASSERT_TRUE(host.take(true, unit));
    EXPECT_TRUE(host.end_stream());
    ASSERT_TRUE(host.give(unit));
    const auto unplaced = host.end_stream();
    ASSERT_FALSE(unplaced);
    EXPECT_THAT(unplaced.error().message(), testing::HasSubstr("64 that it has no place for"));
}

TEST(Resume, AHostWithoutBytesIsADeadlockOfAWholeRun) {
    auto programs = loaded(copy_program());
    ASSERT_TRUE(programs) << programs.error().message();
    SparseHost host(*programs->computing.host);
    Machine machine;
    const auto status = machine.run(programs->computing.program, host);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message(), testing::HasSubstr("waits for data of the host"));
}

TEST(Resume, AHostWithoutRoomIsADeadlockOfAWholeRun) {
    auto programs = loaded(copy_program());
    ASSERT_TRUE(programs) << programs.error().message();
    SparseHost host(*programs->computing.host);
    host.refill(1000, 0);
    Machine machine;
    const auto status = machine.run(programs->computing.program, host);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message(), testing::HasSubstr("waits for the host to take data"));
}

TEST(Resume, ADeadlockThatTheHostCannotEndIsOne) {
    auto programs =
        loaded(with(copy_program(), "WIDE_TO_NARROW@0>=1+1", "WIDE_TO_NARROW@0>=101+1"));
    ASSERT_TRUE(programs) << programs.error().message();
    for (const bool random : {false, true}) {
        SparseHost host(*programs->computing.host);
        host.refill(1000, 1000);
        MachineOptions options;
        if (random) options.random_seed = 1;
        Machine machine(options);
        machine.begin(programs->computing.program, host);
        Result<Progress> progress = Progress{};
        for (unsigned round = 0; progress && round < 100'000; ++round) {
            ASSERT_FALSE(progress->starved);
            progress = machine.advance();
        }
        ASSERT_FALSE(progress);
        EXPECT_THAT(progress.error().message(), testing::HasSubstr("deadlock"));
    }
}

}  // namespace
}  // namespace reef::edgetpu::sim

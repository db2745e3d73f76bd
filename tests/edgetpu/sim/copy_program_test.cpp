// The machine's deadlock report and every kind of finding, on a program that needs no other data.
#include "copy_program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "machine_run.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {
namespace {

struct Ran {
    Status status;
    std::vector<std::byte> in;
    std::vector<std::byte> out;
    std::vector<Finding> findings;

    [[nodiscard]] std::string list() const {
        std::string all;
        for (const auto& finding : findings) all += message(finding) + "\n";
        return all;
    }
};

Ran run_with(const std::string& text, const MachineOptions& options, int narrow_bound = 256) {
    auto programs = PackagePrograms::load(copy_package(text, narrow_bound));
    if (!programs) return {std::unexpected(programs.error()), {}, {}, {}};
    programs->set_inputs(3);
    Machine machine(options);
    Ran ran;
    ran.status = programs->run(machine);
    const auto& input = programs->computing.host->input(0);
    ran.in.assign(input.begin(), input.begin() + copied_bytes);
    ran.out = programs->outputs();
    ran.out.resize(copied_bytes);
    if (options.strict) ran.findings = machine.monitor()->findings();
    return ran;
}

Ran run(const std::string& text, MachineOptions options = {}, int narrow_bound = 256) {
    options.strict = true;
    return run_with(text, options, narrow_bound);
}

testing::AssertionResult finds(const Ran& ran, const Finding& wanted) {
    for (const auto& finding : ran.findings)
        if (finding.kind == wanted.kind && finding.memory == wanted.memory &&
            finding.address == wanted.address && finding.tiles == wanted.tiles &&
            finding.instruction.ends_with(wanted.instruction) &&
            finding.other.ends_with(wanted.other) && finding.times == wanted.times)
            return testing::AssertionSuccess();
    return testing::AssertionFailure() << "not among:\n" << ran.list();
}

TEST(CopyProgram, CopiesWithoutFindingsInEveryOrder) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        MachineOptions options;
        if (seed > 0) options.random_seed = seed;
        const auto ran = run(copy_program(), options);
        ASSERT_TRUE(ran.status) << ran.status.error().message();
        EXPECT_EQ(ran.out, ran.in) << "seed " << seed;
        EXPECT_TRUE(ran.findings.empty()) << ran.list();
    }
}

// Of instructions that follow each other the scalar core issues many at once, but where somebody
// looks on.
TEST(CopyProgram, LoopsIssueTheirBodyWithEveryPass) {
    const std::string program = copy_program();
    const auto at = program.find("mac tiles");
    const std::string mac = program.substr(at, program.find('\n', at) + 1 - at);
    constexpr int results_of_mac = 16;
    const unsigned words = spec::instructions[spec::op::mac].words;
    MachineOptions watched;
    watched.strict = true;
    for (const auto& options : {MachineOptions{}, watched, MachineOptions{.threads = 2}}) {
        // Bodies of whole instructions, and one that ends inside of an instruction: behind it.
        for (const auto& [body, macs] :
             {std::pair{0U, 3}, {words, 6}, {2 * words, 9}, {3 * words, 12}, {words + 1, 9}}) {
            const std::string loop =
                body == 0 ? std::string() : fmt::format("loop count=4 body={}\n", body);
            const auto looped = with(program, mac, loop + mac + mac + mac);
            const auto ran = run_with(looped, options);
            ASSERT_TRUE(ran.status) << loop << ran.status.error().message();
            EXPECT_EQ(ran.out, ran.in);
            const auto waiting =
                run_with(with(looped, "AVDATA@0>=1+1 row", "AVDATA@0>=1001+1 row"), options);
            ASSERT_FALSE(waiting.status) << loop;
            EXPECT_THAT(waiting.status.error().message(),
                        testing::HasSubstr(
                            fmt::format("AVDATA >= 1001, which is {}", results_of_mac * macs)));
        }
    }
}

TEST(CopyProgram, IsStoppedAfterAsManyInstructionsWhoeverLooksOn) {
    bool ended = false;
    for (unsigned most = 1; !ended; ++most) {
        ASSERT_LT(most, 200U);
        MachineOptions options;
        options.most_scalar_instructions = most;
        const auto alone = run_with(copy_program(), options);
        const auto watched = run(copy_program(), options);
        ended = watched.status.has_value();
        ASSERT_EQ(alone.status.has_value(), ended) << most;
        if (!ended) {
            EXPECT_EQ(alone.status.error().message(), watched.status.error().message());
        }
    }
}

TEST(CopyProgram, WaitThatNothingMeetsIsADeadlockWithItsCounter) {
    const auto ran = run(with(copy_program(), "WIDE_TO_NARROW@0>=1+1", "WIDE_TO_NARROW@0>=101+1"));
    ASSERT_FALSE(ran.status);
    const auto text = ran.status.error().message();
    EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
    EXPECT_NE(text.find("mac waits for WIDE_TO_NARROW >= 101, which is 16"), std::string::npos)
        << text;
    EXPECT_NE(text.find("ring_send waits for NARROW_TO_WIDE >= 1, which is 0"), std::string::npos)
        << text;
    EXPECT_NE(text.find("fence waits for OP, "), std::string::npos) << text;
    EXPECT_NE(text.find("sync waits for a notification of tiles 0x0003"), std::string::npos)
        << text;
}

TEST(CopyProgram, SyncThatNothingMeetsSaysWhatItWaitsFor) {
    const auto ran = run(with(copy_program(), "expected5=1 ", "expected5=100 "));
    ASSERT_FALSE(ran.status);
    const auto text = ran.status.error().message();
    EXPECT_NE(text.find("sync waits for PRODUCER_A >= 100, which is 1\n"), std::string::npos)
        << text;
}

TEST(CopyProgram, FencesWaitForMessages) {
    const auto expecting = [](std::string_view counters, unsigned messages) {
        return with(copy_program(), "fence tiles=all seq=8 engines=all notify=1",
                    fmt::format("fence tiles=all seq=8 engines=all notify=1 "
                                "expected.counters={} expected={}",
                                counters, messages));
    };
    for (unsigned seed = 0; seed < 20; ++seed) {
        MachineOptions options;
        if (seed > 0) options.random_seed = seed;
        const auto ran = run(expecting("0x1", 1), options);
        ASSERT_TRUE(ran.status) << ran.status.error().message();
        EXPECT_EQ(ran.out, ran.in) << "seed " << seed;
        EXPECT_TRUE(ran.findings.empty()) << ran.list();
    }
    const auto text = [&](std::string_view counters, unsigned messages) {
        const auto ran = run(expecting(counters, messages));
        return ran.status ? std::string() : ran.status.error().message();
    };
    EXPECT_NE(text("0x1", 2).find("fence waits for RING_PRODUCER_A >= 2, which is 1"),
              std::string::npos)
        << text("0x1", 2);
    EXPECT_NE(text("0x2", 1).find("fence waits for RING_PRODUCER_B >= 1, which is 0"),
              std::string::npos);
}

// Tiles without work pass both fences in one turn.
TEST(CopyProgram, EveryNotificationCounts) {
    const std::string fence = "fence tiles=all seq=8 engines=all notify=1";
    const std::string sync = "sync notified.count=1 notified.tiles=all expected5=1";
    const std::string text = with(with(copy_program(), fence, fence + "\n" + fence), sync,
                                  "sync notified.count=1 notified.tiles=all\n" + sync);
    auto programs = PackagePrograms::load(copy_package(text));
    ASSERT_TRUE(programs) << programs.error().message();
    for (const MachineOptions& options :
         {MachineOptions{}, MachineOptions{.threads = 2}, MachineOptions{.threads = 5},
          MachineOptions{.random_seed = 1}, MachineOptions{.strict = true}}) {
        Machine machine(options);
        for (int time = 0; time < 2; ++time) {
            const auto status = programs->run(machine);
            ASSERT_TRUE(status) << status.error().message();
            for (unsigned tile = 0; tile < tile_count; ++tile)
                EXPECT_EQ(machine.dispatcher(tile).notifications, 0U) << "tile " << tile;
        }
    }
}

TEST(CopyProgram, MissingWaitIsAHazardWithBothInstructions) {
    // narrow_to_wide comes before what it should wait for.
    const auto ran =
        run(with(copy_program(), "dst=0x814[1x1] signal.narrow_to_wide=@1 wait0=AVDATA@0>=1+1",
                 "dst=0x814[1x1] signal.narrow_to_wide=@1"));
    EXPECT_TRUE(finds(ran, {.kind = FindingKind::hazard,
                            .memory = "narrow memory",
                            .address = 0x80,
                            .tiles = 1,
                            .instruction = "mac",
                            .other = "narrow_to_wide",
                            .times = 16}));
}

TEST(CopyProgram, HazardIsFoundWhenTheOrderHappenedToBeRight) {
    const auto text =
        with(copy_program(), "dst=0x814[1x1] signal.narrow_to_wide=@1 wait0=AVDATA@0>=1+1",
             "dst=0x814[1x1] signal.narrow_to_wide=@1 wait0=RING_READ_A@0>=2+0");
    unsigned right = 0;
    for (unsigned seed = 1; seed <= 200; ++seed) {
        const auto ran = run(text, {.random_seed = seed});
        EXPECT_TRUE(std::ranges::any_of(
            ran.findings,
            [](const Finding& finding) { return finding.kind == FindingKind::hazard; }))
            << "seed " << seed;
        right += ran.out == ran.in;
    }
    EXPECT_GT(right, 0U);
}

TEST(CopyProgram, WaitShortByOneIsAHazard) {
    for (const unsigned seed : {1U, 2U, 3U, 4U}) {
        const auto ran = run(with(copy_program(), "WIDE_TO_NARROW@0>=1+1", "WIDE_TO_NARROW@0>=0+1"),
                             {.random_seed = seed});
        EXPECT_TRUE(std::ranges::any_of(ran.findings, [](const Finding& finding) {
            return finding.kind == FindingKind::hazard ||
                   finding.kind == FindingKind::unwritten_read;
        })) << ran.list();
    }
}

TEST(CopyProgram, NamesWhatNothingWrote) {
    const auto ran = run(with(copy_program(), "in=0x0[4x16]", "in=0x40[4x16]"));
    EXPECT_TRUE(finds(ran, {.kind = FindingKind::unwritten_read,
                            .memory = "narrow memory",
                            .address = 0x40,
                            .tiles = 1,
                            .instruction = "mac",
                            .other = "",
                            .times = 64}));
}

TEST(CopyProgram, NamesAccessesBeyondTheDeclaredBound) {
    const auto ran = run(copy_program(), {}, 0xbe);
    EXPECT_TRUE(ran.status);
    EXPECT_TRUE(ran.findings.empty()) << "the last word begins within the bound" << ran.list();
    const auto less = run(copy_program(), {}, 0xbc);
    EXPECT_TRUE(finds(less, {.kind = FindingKind::outside_bound,
                             .memory = "narrow memory",
                             .address = 0xbc,
                             .tiles = 1,
                             .instruction = "mac",
                             .other = "",
                             .times = 1}));
}

TEST(CopyProgram, NamesRowsThatNothingReads) {
    const auto ran = run(with(copy_program(), "par=0x0[0x16]", "par=0x4[0x16]"));
    EXPECT_TRUE(finds(ran, {.kind = FindingKind::row_never_read,
                            .memory = "wide memory",
                            .address = 0,
                            .tiles = 1,
                            .instruction = "",
                            .other = "",
                            .times = 1}));
    EXPECT_TRUE(finds(ran, {.kind = FindingKind::unwritten_read,
                            .memory = "wide memory",
                            .address = 1,
                            .tiles = 1,
                            .instruction = "mac",
                            .other = "",
                            .times = 16}));
}

TEST(CopyProgram, NamesRowsThatAreOverwritten) {
    const auto ran = run(with(copy_program(), "dst=0x0[1x1]", "dst=0x810[1x1]"));
    EXPECT_TRUE(finds(ran, {.kind = FindingKind::overwritten_unread,
                            .memory = "wide memory",
                            .address = 0x810,
                            .tiles = 1,
                            .instruction = "ring_receive_a",
                            .other = "ring_receive_a",
                            .times = 1}));
}

TEST(CopyProgram, NamesUnitsThatAreReadTwiceOrLeft) {
    const auto ran = run(with(copy_program(), "source=parameters src=0x0[1x4] src.mask=1",
                              "source=parameters src=0x0[0x4]"));
    EXPECT_TRUE(finds(ran, {.kind = FindingKind::read_twice,
                            .memory = "the parameter FIFO",
                            .address = 0,
                            .tiles = 0,
                            .instruction = "ring_push",
                            .other = "",
                            .times = 3}));
    EXPECT_TRUE(finds(ran, {.kind = FindingKind::left_over,
                            .memory = "units of the parameter FIFO",
                            .address = 0,
                            .tiles = 0,
                            .instruction = "",
                            .other = "",
                            .times = 3}));
}

TEST(CopyProgram, NamesWhatIsLeftInTheBuses) {
    auto text = with(copy_program(), "to_tiles=t0 message=15", "to_tiles=t0+t5 message=15");
    text = with(text, "dst=0x0[1x16] dst.mask=1 signal.in=@0", "dst=0x0[1x14] dst.mask=1");
    text = with(text, "sync notified.count=1 notified.tiles=all expected5",
                "sync notified.count=1 notified.tiles=t0 expected5");
    const auto ran = run(text);
    ASSERT_TRUE(ran.status) << ran.status.error().message();
    EXPECT_EQ(ran.out, ran.in);
    const auto left = [&](std::string what, std::uint16_t tiles, std::uint64_t count) {
        return finds(ran, {.kind = FindingKind::left_over,
                           .memory = std::move(what),
                           .address = 0,
                           .tiles = tiles,
                           .instruction = "",
                           .other = "",
                           .times = count});
    };
    EXPECT_TRUE(left("messages of ring a", 1U << 5U, 1));
    EXPECT_TRUE(left("words of a mesh link", 1U << 1U, 2));
    EXPECT_TRUE(left("notifications", 1U << 15U, 1));
}

TEST(CopyProgram, StopsAfterTheStepsThatItMayTake) {
    const auto ran = run(copy_program(), {.most_steps = 60});
    ASSERT_FALSE(ran.status);
    EXPECT_NE(ran.status.error().message().find("did not end within 60 steps"), std::string::npos)
        << ran.status.error().message();
}

TEST(CopyProgram, WhatNoKnownProgramHasIsNotModelled) {
    for (const auto& [from, to, why] :
         {std::array{"lanes=3 last_lanes", "raw[1848+2]=0x1 lanes=3 last_lanes",
                     "mac: not modelled: raw[1848+2]=0x1 at bit 1848, which is 0x0 in every"},
          std::array{"unknown_1844=1", "unknown_1844=0",
                     "unknown_1844=0x0 at bit 1844, which is 0x1"},
          std::array{"acc_internal=1", "acc_internal=1 single=1", "single and single_par"},
          std::array{"acc_internal=1", "acc_internal=1 table_normalised=1", "without table"},
          std::array{"acc_internal=1", "acc_internal=1 table_odd=3", "table_odd without table"},
          std::array{"acc_internal=1", "acc_internal=1 table_odd=1", "table_odd=0x1 at bit 2095"},
          std::array{"clamp_max=255", "clamp_max=255 out_zero=300",
                     "out_zero 300 of 8-bit results"},
          std::array{"clamp_max=255", "clamp_max=255 in_zero=300", "in_zero 300 of 8-bit activ"},
          std::array{"in=0x0[4x16]", "in=0x1[4x16]", "without in_bytewise"},
          std::array{"par=0x0[0x16]", "par=0x0[0x16] par.crop.last=20 par.crop.level=1",
                     "a crop that makes a pass longer"},
          std::array{"src=0x20[1x16] src.mask=1 signal.out=@0 wait0=AVDATA@0>=1+1",
                     "src=0x20[1x16] src.mask=1 signal.out=@0 wait5=AVDATA@0>=1+1",
                     "mesh_east: not modelled: wait5."}}) {
        const auto ran = run(with(copy_program(), from, to));
        ASSERT_FALSE(ran.status) << to;
        EXPECT_EQ(ran.status.error().cause, Cause::unsupported);
        const auto text = ran.status.error().message();
        EXPECT_NE(text.find("word 0x"), std::string::npos) << text;
        EXPECT_NE(text.find(why), std::string::npos) << text;
    }
}

TEST(CopyProgram, TheFifthWaitOfAMeshTransferIsAsTheFirst) {
    const std::string first = "signal.out=@0 wait0=AVDATA@0>=1+1";
    const auto ran = run(with(copy_program(), first, "signal.out=@0 wait4=AVDATA@0>=1+1"));
    ASSERT_TRUE(ran.status) << ran.status.error().message();
    EXPECT_EQ(ran.out, ran.in);
    EXPECT_EQ(ran.findings.size(), run(copy_program()).findings.size());
    EXPECT_FALSE(run(with(copy_program(), first, "signal.out=@0 wait4=AVDATA@0>=101+1")).status);
}

TEST(CopyProgram, LoopOfTheScalarCoreThatDoesNotEndIsStopped) {
    const auto ran = run(with(copy_program(), "halt last=1", "branch offset=0 unknown_33=1"),
                         {.most_scalar_instructions = 10'000});
    ASSERT_FALSE(ran.status);
    const auto text = ran.status.error().message();
    EXPECT_NE(text.find("the scalar core did not end within 10000 instructions"), std::string::npos)
        << text;
    EXPECT_NE(text.find("word 0x"), std::string::npos) << text;
}

}  // namespace
}  // namespace reef::edgetpu::sim

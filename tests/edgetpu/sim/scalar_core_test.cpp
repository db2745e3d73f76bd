#include "edgetpu/sim/core/scalar_core.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "reef/edgetpu/assembly.h"

namespace reef::edgetpu::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Executes a program's scalar instructions until halt or the first error.
class Executed {
  public:
    explicit Executed(const std::string& text) {
        auto bytes = assemble(text);
        EXPECT_TRUE(bytes) << bytes.error().message();
        bytes_ = std::move(*bytes);
        auto instructions = decode(bytes_);
        EXPECT_TRUE(instructions);
        for (int step = 0; step < 10000; ++step) {
            const auto found =
                std::ranges::find(*instructions, core.program_counter(), &Instruction::word);
            if (found == instructions->end()) return;
            ++steps;
            if (!ScalarCore::executes(*found)) {
                core.pass(*found);
                continue;
            }
            const auto effect = core.execute(*found);
            if (!effect) {
                error = effect.error().message();
                return;
            }
            if (effect->to_host) to_host.push_back(*effect->to_host);
            if (effect->fired) fired.push_back(*effect->fired);
            if (effect->halted) return;
        }
    }

    ScalarCore core;
    std::string error;
    int steps = 0;
    std::vector<std::uint32_t> to_host;
    std::vector<DmaDescriptor> fired;

  private:
    std::vector<std::byte> bytes_;
};

std::uint32_t calculated(const std::string& alu, std::uint32_t r2, std::uint32_t r3) {
    const Executed run(
        fmt::format("bundle alu.op=0x2f alu.dst=2 alu.operand={}\n"
                    "bundle alu.op=0x2f alu.dst=3 alu.operand={}\n"
                    "bundle alu.dst=1 alu.src=2 {}\nhalt\n",
                    r2, r3, alu));
    EXPECT_EQ(run.error, "");
    return run.core.registers()[1];
}

bool compared(const std::string& alu, std::uint32_t r2, std::uint32_t r3) {
    const Executed run(
        fmt::format("bundle alu.op=0x2f alu.dst=2 alu.operand={}\n"
                    "bundle alu.op=0x2f alu.dst=3 alu.operand={}\n"
                    "bundle alu.dst=7 alu.src=2 {}\nhalt\n",
                    r2, r3, alu));
    EXPECT_EQ(run.error, "");
    return run.core.predicates()[7];
}

std::string refused(const std::string& text) {
    return Executed(text).error;
}

TEST(ScalarCore, CalculatesWithRegistersAndImmediates) {
    EXPECT_EQ(calculated("alu.op=1 alu.operand=3", 0xffffffff, 3), 2u);
    EXPECT_EQ(calculated("alu.op=0x21 alu.operand=5", 0xffffffff, 3), 4u);
    EXPECT_EQ(calculated("alu.op=2 alu.operand=3", 1, 3), 0xfffffffeu);
    EXPECT_EQ(calculated("alu.op=0x22 alu.operand=7", 9, 3), 2u);
    EXPECT_EQ(calculated("alu.op=3 alu.operand=3", 6, 3), 2u);
    EXPECT_EQ(calculated("alu.op=4 alu.operand=3", 6, 3), 7u);
    EXPECT_EQ(calculated("alu.op=5 alu.operand=3", 6, 3), 5u);
    EXPECT_EQ(calculated("alu.op=0x26 alu.operand=4", 6, 3), 0x60u);
    EXPECT_EQ(calculated("alu.op=0x27 alu.operand=2", 0x80000000, 3), 0x20000000u);
    EXPECT_EQ(calculated("alu.op=0xf alu.operand=3", 6, 77), 77u);
}

std::uint32_t bits_of(float value) {
    return std::bit_cast<std::uint32_t>(value);
}

// exp2 and reciprocal as a softmax uses them: their register may be read by the third bundle.
TEST(ScalarCore, ComputesWithBinary32) {
    EXPECT_EQ(calculated("alu.op=0x12 alu.operand=3", bits_of(1.5F), bits_of(-4)), bits_of(-2.5F));
    EXPECT_EQ(calculated("alu.op=0x13 alu.operand=3", bits_of(1.5F), bits_of(-4)), bits_of(5.5F));
    EXPECT_EQ(calculated("alu.op=0x14 alu.operand=3", bits_of(1.5F), bits_of(-4)), bits_of(-6));
    EXPECT_EQ(calculated("alu.op=0x15 alu.operand=3", bits_of(1.5F), bits_of(-4)), bits_of(1.5F));
    EXPECT_EQ(calculated("alu.op=0x36 alu.operand=0x437f0000", bits_of(256), 0), bits_of(255));
    EXPECT_EQ(calculated("alu.op=0x35", bits_of(-1), 0), bits_of(0));
    EXPECT_EQ(calculated("alu.op=0x11 alu.operand=3", 0, bits_of(2.75F)), 3U);
    const std::string three = "bundle alu.op=0x2f alu.dst=2 alu.operand=0x40400000\n";
    const auto function = [&](const char* op) {
        const Executed run(three + "bundle function.op=" + op +
                           " function.dst=1 function.src=2\nbundle\nbundle\nhalt\n");
        EXPECT_EQ(run.error, "");
        return run.core.registers()[1];
    };
    EXPECT_EQ(function("3"), bits_of(8));
    EXPECT_EQ(function("2"), bits_of(1.0F / 3));
    EXPECT_THAT(refused(three + "bundle function.op=1 function.dst=1 function.src=2\n"),
                HasSubstr("function.op 1"));
    EXPECT_THAT(refused(three + "bundle function.op=3 function.dst=1 function.src=2\nbundle\n"
                                "bundle alu.op=0xf alu.dst=4 alu.operand=1\n"),
                HasSubstr("one of the 2 bundles after its function"));
    EXPECT_THAT(refused("bundle alu.op=0x2f alu.dst=2 alu.operand=0x7fc00000\n"
                        "bundle alu.op=0x35 alu.dst=1 alu.src=2\n"),
                HasSubstr("what is no number"));
}

TEST(ScalarCore, ConvertsWhatNeedsNoRounding) {
    EXPECT_EQ(calculated("alu.op=0x10 alu.operand=3", 0, 27), std::bit_cast<std::uint32_t>(27.0F));
    EXPECT_EQ(calculated("alu.op=0x11 alu.operand=3", 0, std::bit_cast<std::uint32_t>(-756.0F)),
              static_cast<std::uint32_t>(-756));
    EXPECT_EQ(
        calculated("alu.op=0x34 alu.operand=0x41e00000", std::bit_cast<std::uint32_t>(27.0F), 0),
        std::bit_cast<std::uint32_t>(756.0F));
    EXPECT_THAT(refused("bundle alu.op=0x2f alu.dst=3 alu.operand=0x4f000000\n"
                        "bundle alu.op=0x11 alu.dst=1 alu.operand=3\n"),
                HasSubstr("word 0x1: not modelled: scalar opcode 0x00 bundle: alu.op 0x11"));
    EXPECT_THAT(refused("bundle alu.op=0x2f alu.dst=3 alu.operand=0x1000001\n"
                        "bundle alu.op=0x10 alu.dst=1 alu.operand=3\n"),
                HasSubstr("a conversion that rounds"));
}

TEST(ScalarCore, ComparesSigned) {
    EXPECT_TRUE(compared("alu.op=0x2c alu.operand=0", 0x80000000, 0));
    EXPECT_FALSE(compared("alu.op=0x2c alu.operand=0", 0x7fffffff, 0));
    EXPECT_FALSE(compared("alu.op=0x2d alu.operand=0", 0x80000000, 0));
    EXPECT_TRUE(compared("alu.op=0xc alu.operand=3", 0xffffffff, 1));
    EXPECT_TRUE(compared("alu.op=9 alu.operand=3", 5, 5));
    EXPECT_TRUE(compared("alu.op=0x2a alu.operand=3", 5, 0));
}

TEST(ScalarCore, SlotsReadTheRegistersOfBefore) {
    const Executed run(
        "bundle alu.op=0x2f alu.dst=1 alu.operand=11\n"
        "bundle store.op=1 store.address=5 store.reg=1 alu.op=0x2f alu.dst=1 alu.operand=22\n"
        "bundle load.op=1 load.reg=1 load.address=5 store.op=4 store.reg=1\n"
        "bundle\n"
        "bundle store.op=4 store.reg=1\n"
        "halt\n");
    EXPECT_EQ(run.error, "");
    EXPECT_THAT(run.to_host, ElementsAre(22u, 11u));
}

TEST(ScalarCore, LoopsAndCountingAddressesCopyEveryWordOnce) {
    // The shape of ssd_mobilenet_v1's copies: 2 * 3 + 2 words.
    std::string text = "bundle alu.op=0x2f alu.dst=6\n";
    for (int i = 0; i < 8; ++i)
        text += fmt::format(
            "bundle alu.op=0x2f alu.dst=1 alu.operand={}\n"
            "bundle store.op=1 store.address={} store.reg=1\n",
            100 + i, i);
    text +=
        "bundle load.op=3 load.reg=7 load.address=0x26\n"
        "bundle load.op=3 load.reg=8 load.address=0x26\n"
        "loop count=3 body=2\n"
        "bundle load.op=3 load.reg=7 load.address=0x26 store.op=4 store.reg=7\n"
        "bundle load.op=3 load.reg=8 load.address=0x26 store.op=4 store.reg=8\n"
        "bundle store.op=4 store.reg=7\n"
        "bundle store.op=4 store.reg=8\n"
        "halt\n";
    const Executed run(text);
    EXPECT_EQ(run.error, "");
    EXPECT_THAT(run.to_host, ElementsAre(100, 101, 102, 103, 104, 105, 106, 107));
    EXPECT_EQ(run.core.registers()[6], 8u);
}

TEST(ScalarCore, GatesFollowPredicateAndSense) {
    const Executed run(
        "bundle alu.op=0x29 alu.dst=3\n"
        "bundle gate=1 predicate=3 sense=1 alu.op=0x2f alu.dst=1 alu.operand=5\n"
        "bundle gate=1 predicate=3 alu.op=0x2f alu.dst=2 alu.operand=6\n"
        "bundle predicate=4 sense=1 alu.op=0x2f alu.dst=4 alu.operand=7\n"
        "halt\n");
    EXPECT_EQ(run.core.registers()[1], 5u);
    EXPECT_EQ(run.core.registers()[2], 0u);
    EXPECT_EQ(run.core.registers()[4], 7u);
}

TEST(ScalarCore, BranchesBackWhileThePredicateHolds) {
    const Executed run(
        "bundle alu.op=0x21 alu.dst=1 alu.src=1 alu.operand=1\n"
        "bundle alu.op=0x2c alu.src=1 alu.operand=0x1c\n"
        "branch condition.enable=1 condition.sense=1 offset=-2\n"
        "branch offset=2\n"
        "bundle alu.op=0x2f alu.dst=1\n"
        "halt\n");
    EXPECT_EQ(run.core.registers()[1], 28u);
    EXPECT_EQ(run.steps, 28 * 3 + 2);
}

TEST(ScalarCore, FiresTheDescriptor) {
    const Executed run(
        "bundle alu.op=0x2f alu.dst=1 alu.operand=0x10\n"
        "bundle store.op=5 store.reg=1 alu.op=0x2f alu.dst=1 alu.operand=2\n"
        "bundle store.op=5 store.address=1 store.reg=1\n"
        "bundle store.op=5 store.address=3 store.reg=1 alu.op=0x2f alu.dst=1 alu.operand=64\n"
        "bundle store.op=5 store.address=2 store.reg=1\n"
        "bundle store.op=6\n"
        "halt\n");
    EXPECT_THAT(run.fired, ElementsAre(DmaDescriptor{{0x2'0000'0010}, 64, Tag::parameters}));
}

TEST(ScalarCore, RefusesWhatNoProgramShows) {
    const auto place = [](const std::string& what) {
        return HasSubstr("word 0x0: not modelled: scalar opcode " + what);
    };
    EXPECT_THAT(refused("bundle alu.op=0x08\n"), place("0x00 bundle: alu.op 0x08"));
    EXPECT_THAT(refused("bundle alu.op=0x2e\n"), place("0x00 bundle: alu.op 0x2e"));
    EXPECT_THAT(refused("bundle alu.op=0x30\n"), place("0x00 bundle: alu.op 0x30"));
    EXPECT_THAT(refused("bundle alu.op=0x29 alu.dst=8\n"), HasSubstr("into predicate 8"));
    EXPECT_THAT(refused("bundle alu.op=1 alu.operand=32\n"), HasSubstr("with register 32"));
    EXPECT_THAT(refused("bundle load.op=3 load.address=0x46\n"), HasSubstr("load.address 0x46"));
    EXPECT_THAT(refused("bundle store.op=3 store.address=8\n"), HasSubstr("store.address 0x8"));
    EXPECT_THAT(refused("bundle store.op=7\n"), HasSubstr("store.op 7"));
    EXPECT_THAT(refused("bundle store.op=4 store.address=1\n"), HasSubstr("FIFO 1"));
    EXPECT_THAT(refused("bundle store.op=5 store.address=4\n"), HasSubstr("word 4 of the DMA"));
    EXPECT_THAT(refused("bundle store.op=6\n"), HasSubstr("tag 0"));
    EXPECT_THAT(refused("loop count=0 body=1\nbundle\n"), place("0x03 loop: 0 passes"));
    EXPECT_THAT(refused("branch condition.enable=1 condition.predicate=1 condition.sense=1\n"),
                place("0x02 branch: condition.predicate 1"));
    EXPECT_THAT(refused("loop count=2 body=2\nloop count=2 body=1\nbundle\n"),
                HasSubstr("a loop inside a loop"));
    EXPECT_THAT(refused("loop count=2 body=1\nbranch offset=-1\n"),
                HasSubstr("a branch inside a hardware loop"));
    EXPECT_THAT(refused("bundle load.op=1 load.reg=4\nbundle alu.op=1 alu.src=4\n"),
                HasSubstr("register 4 is read by the bundle right after its load"));
    EXPECT_THAT(refused("bundle load.op=1 load.reg=4 alu.op=0x2f alu.dst=4\n"),
                HasSubstr("register 4 is written by two slots"));
}

TEST(ScalarCore, IssuesTileInstructionsByBitmapOrRegister) {
    ScalarCore core;
    const auto setup = assemble(
        "bundle alu.op=0x2f alu.dst=6 alu.operand=0x10\n"
        "bundle alu.op=0x2f alu.dst=7 alu.operand=0x1234\n"
        "bundle alu.op=0x29 alu.dst=2\n");
    const auto bundles = decode(*setup);
    for (const auto& bundle : *bundles) ASSERT_TRUE(core.execute(bundle));
    const auto issue = [&](const std::string& text) {
        const auto bytes = assemble(text + "\n");
        EXPECT_TRUE(bytes) << bytes.error().message();
        return core.issue(decode(*bytes)->at(0));
    };
    EXPECT_EQ(*issue("fence tiles=0xffff"), (TileIssue{true, 0xffff, std::nullopt}));
    EXPECT_EQ(*issue("mac tiles=3"), (TileIssue{true, 3, std::nullopt}));
    EXPECT_EQ(*issue("mac gate=1 predicate=2 tiles=3"), (TileIssue{false, 0, std::nullopt}));
    EXPECT_EQ(*issue("ring_send tiles.indirect=1 tiles.register=6"),
              (TileIssue{true, 0x10, std::nullopt}));
    EXPECT_EQ(*issue("narrow_to_wide base_register=7 base_indirect=1 tiles=1"),
              (TileIssue{true, 1, 0x1234}));
    EXPECT_THAT(issue("ring_send base_register=7 tiles=1").error().message(),
                HasSubstr("word 0x0: not modelled: tile opcode 0x10 ring_send: base_register 7"));
    EXPECT_THAT(issue("ring_send tiles=1 tiles.indirect=1 tiles.register=6").error().message(),
                HasSubstr("tiles 0x0001 and those of register 6"));
    EXPECT_THAT(issue("ring_send tiles.indirect=1 tiles.register=5").error().message(),
                HasSubstr("register 5 holds the tiles 0x0"));
}

TEST(ScalarCore, RefusesAddressesOutsideOfItsMemory) {
    EXPECT_THAT(refused("bundle store.op=1 store.address=0x1000\n"),
                HasSubstr("word 0x0: store to word 0x1000 of scalar memory"));
    EXPECT_THAT(refused("bundle alu.op=0x2f alu.dst=6 alu.operand=0x1000\n"
                        "bundle load.op=3 load.address=0x26\n"),
                HasSubstr("word 0x1: load of word 0x1000 of scalar memory"));
    EXPECT_THAT(refused("branch offset=-1\n"), HasSubstr("the branch goes to word -1"));
}

}  // namespace
}  // namespace reef::edgetpu::sim

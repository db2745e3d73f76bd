// What the simulated chip refuses, and how tasks follow one another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rk3588/small_tasks.h"

namespace reef::rk3588::sim {
namespace {

using rk3588::test::flying_copy;
using rk3588::test::SmallConvolution;
using rk3588::test::SmallProgram;
using testing::HasSubstr;

class Machines : public testing::Test {
  protected:
    Machines() {
        c.features = program.add(std::vector<std::byte>(16 * 16));
        c.weights = program.add(std::vector<std::byte>(16 * 32));
        c.biases = program.add(std::vector<std::byte>(128));
        c.results = program.add(std::vector<std::byte>(2 * 16 * 16));
    }
    /// The error of a convolution whose registers are changed.
    template <typename Change>
    std::string refusal(Change change) {
        auto set = c.registers();
        change(set);
        program.restart();
        const auto report = program.run(set, Blocks::convolution);
        return report ? "accepted" : report.error().message();
    }
    SmallProgram program;
    SmallConvolution c;
};

TEST_F(Machines, RunASmallConvolution) {
    const auto report = program.run(c.registers(), Blocks::convolution);
    ASSERT_TRUE(report) << report.error().message();
    ASSERT_EQ(report->tasks.size(), 1U);
    const TaskReport& task = report->tasks[0];
    EXPECT_EQ(task.products, 4U * 4 * 16 * 32);
    EXPECT_EQ(task.traffic.features, 256U);
    EXPECT_EQ(task.traffic.weights, 512U);
    EXPECT_EQ(task.traffic.operands, 128U);
    EXPECT_EQ(task.traffic.results, 512U);
    EXPECT_EQ(report->interrupts, 1U << 8);
    // The groups of registers take turns only where S_POINTER says so: the DPU's does not.
    EXPECT_EQ(program.run(c.registers(), Blocks::convolution)->interrupts, 1U << 8);
}

TEST_F(Machines, WhatIsSetAndNotModelledStopsByName) {
    EXPECT_THAT(refusal([](auto& set) { set.template set<"CNA_CONV_CON1.DECONV">(1); }),
                HasSubstr("CNA_CONV_CON1: DECONV is 0x1, which the simulated chip does not model"));
    EXPECT_THAT(refusal([](auto& set) { set.template set<"DPU_OUT_CVT_SHIFT.MINUS_EXP">(3); }),
                HasSubstr("MINUS_EXP is not modelled"));
    EXPECT_THAT(refusal([](auto& set) { set.template set<"CNA_CONV_CON1.IN_PRECISION">(1); }),
                HasSubstr("CNA_CONV_CON1.IN_PRECISION is int16"));
    EXPECT_THAT(refusal([](auto& set) { set.write(register_named("CNA_CONV_CON1"), 1U << 31); }),
                HasSubstr("CNA_CONV_CON1: raw[47+1] is 0x1"));
    EXPECT_THAT(refusal([](auto& set) { set.template set<"CNA_S_POINTER.POINTER">(1); }),
                HasSubstr("CNA_S_POINTER: the value 0x1 is not modelled"));
    // Only words of CNA and CORE have been seen with a core's number.
    EXPECT_THAT(refusal([](auto& set) { set.write(register_named("DPU_S_POINTER"), 1U << 28); }),
                HasSubstr("DPU_S_POINTER: the value 0x10000000 is not modelled"));
    EXPECT_THAT(refusal([](auto& set) { set.write(register_named("DPU_EW_CFG"), 0x302); }),
                HasSubstr("LUT_LO_LE_MUX 0 has no known meaning"));
}

// Fields and bits that have one modelled value, of every block that a convolution starts.
TEST_F(Machines, NoUnmodelledBitIsSwallowed) {
    const auto good = c.registers();
    std::size_t refused = 0, accepted = 0;
    for (RegisterIndex i = 0; i < register_count; ++i) {
        const auto& info = spec::instructions[i];
        if (info.opcode < 0x1000 || info.opcode >= 0x6000) continue;
        for (const auto& field : info.fields) {
            if (field.position < 16 || field.position >= 48) continue;
            if (field.only < 0) continue;
            auto set = good;
            set.write(i, set.value(i) ^ 1U << (field.position - 16));
            program.restart();
            const auto report = program.run(set, Blocks::convolution);
            EXPECT_FALSE(report) << info.name << "." << field.name;
            ++(report ? accepted : refused);
        }
    }
    EXPECT_EQ(accepted, 0U);
    EXPECT_GT(refused, 100U);
}

TEST_F(Machines, WeightsThatWereNeverLoadedAreNoWeights) {
    auto set = c.registers();
    set.set<"CNA_CBUF_CON0.WEIGHT_REUSE">(1);
    const auto never = program.run(set, Blocks::convolution);
    ASSERT_FALSE(never);
    EXPECT_THAT(never.error().message(),
                HasSubstr("WEIGHT_REUSE of weights that are not in the CBUF"));
    ASSERT_TRUE(program.run(c.registers(), Blocks::convolution));
    const auto again = program.run(set, Blocks::convolution);
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->tasks[0].traffic.weights, 0U);
    // Other banks, other weights.
    set.set<"CNA_CBUF_CON0.WEIGHT_BANK">(10);
    EXPECT_FALSE(program.run(set, Blocks::convolution));
}

TEST_F(Machines, TheBuffersBanksAreKept) {
    EXPECT_THAT(refusal([](auto& set) { set.template set<"CNA_CBUF_CON0.DATA_BANK">(2); }),
                HasSubstr("2 banks of features and 11 of weights: the CBUF has 12"));
    EXPECT_THAT(refusal([](auto& set) { set.template set<"CNA_CBUF_CON1.DATA_ENTRIES">(2); }),
                HasSubstr("DATA_ENTRIES is 2, a row of the features has 1"));
    SmallConvolution large{.width = 64, .height = 33};
    large.features = program.add(std::vector<std::byte>(64 * 33 * 16));
    large.weights = c.weights;
    large.biases = c.biases;
    large.results = program.add(std::vector<std::byte>(64 * 33 * 32));
    const auto report = program.run(large.registers(), Blocks::convolution);
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message(),
                HasSubstr("take 264 entries of the CBUF, 1 banks have 256"));
}

TEST_F(Machines, AccessesOutsideOfMemoryAreRefused) {
    const auto outside = [&](auto change, const char* what) {
        EXPECT_THAT(refusal(change), HasSubstr(what));
    };
    outside([](auto& s) { s.template set<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">(16); },
            "CNA: features: read of 64 bytes at 0x10, where no buffer is");
    outside([](auto& s) { s.template set<"CNA_DCOMP_ADDR0.DECOMPRESS_ADDR0">(16); },
            "CNA: weights: read of 512 bytes at 0x10");
    outside([](auto& s) { s.template set<"DPU_RDMA_BS_BASE_ADDR.BS_BASE_ADDR">(16); },
            "DPU_RDMA: BS operands: read of 128 bytes at 0x10");
    outside([](auto& s) { s.template set<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(16); },
            "DPU: results: write of 64 bytes at 0x10");
}

TEST_F(Machines, AMainOperandThatNobodyTakesHangs) {
    EXPECT_THAT(
        refusal([](auto& s) { s.template set<"DPU_RDMA_FEATURE_MODE_CFG.MRDMA_DISABLE">(0); }),
        HasSubstr("a real chip hangs (MRDMA_DISABLE)"));
}

TEST_F(Machines, BlocksThatNobodyStartsTogetherAreRefused) {
    const auto report = program.run(c.registers(), Blocks::cna | Blocks::core);
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message(), HasSubstr("op_en 0x5: these blocks together"));
}

/// Copies of one atom, each of which names the next.
class Chains : public testing::Test {
  protected:
    Chains() {
        const auto from = program.add(std::vector<std::byte>(16));
        copy = flying_copy(1, 1, 16, from, program.add(std::vector<std::byte>(16)));
        words = static_cast<std::uint32_t>(task_words(copy, Blocks::flying).value().size());
    }
    /// The address of a task that names this one.
    std::uint32_t task(NextTask next) {
        return program.add_numbers(task_words(copy, Blocks::flying, next).value());
    }
    Result<RunReport> run(std::uint32_t address) {
        return Machine(program.memory).run(address, words);
    }
    SmallProgram program;
    RegisterSet copy;
    std::uint32_t words = 0;  ///< of a task
};

TEST_F(Chains, AreFollowedToTheirEnd) {
    const std::uint32_t last = task({}), first = task({last, words});
    const auto report = run(first);
    ASSERT_TRUE(report) << report.error().message();
    ASSERT_EQ(report->tasks.size(), 2U);
    EXPECT_EQ(report->tasks[0].address, first);
    EXPECT_EQ(report->tasks[1].address, last);
}

TEST_F(Chains, InACircleOrOutOfMemoryAreRefused) {
    const std::uint32_t circle = task({});
    const auto again = task_words(copy, Blocks::flying, {circle, words}).value();
    ASSERT_EQ(again.size(), words);
    std::ranges::copy(std::as_bytes(std::span(again)), program.at(circle).begin());
    const auto endless = run(circle);
    ASSERT_FALSE(endless);
    EXPECT_EQ(endless.error().what, "the chain has more than 4095 tasks");
    const auto outside = run(task({0x40, words}));
    ASSERT_FALSE(outside);
    EXPECT_THAT(outside.error().message(), HasSubstr("task 1 at 0x40: "));
    // A tail that gives the next task fewer words than it has.
    EXPECT_FALSE(run(task({task({}), words - 2})));
}

// A task may write only what differs from the task before the last, which used the same group.
TEST(RegisterGroups, TakeTurns) {
    SmallProgram program;
    const auto a = program.add(std::vector<std::byte>(16, std::byte{1}));
    const auto b = program.add(std::vector<std::byte>(16, std::byte{2}));
    const auto to_a = program.add(std::vector<std::byte>(16));
    const auto to_b = program.add(std::vector<std::byte>(16));
    const auto run = [&](RegisterSet set) {
        set.write(register_named("DPU_S_POINTER"), 0xe);
        set.write(register_named("DPU_RDMA_S_POINTER"), 0xe);
        const auto report = program.run(set, Blocks::flying);
        EXPECT_TRUE(report) << report.error().message();
        return report ? report->interrupts : 0;
    };
    EXPECT_EQ(run(flying_copy(1, 1, 16, a, to_a)), 1U << 8);
    EXPECT_EQ(run(flying_copy(1, 1, 16, b, to_b)), 1U << 9);
    EXPECT_EQ(program.at(to_a)[0], std::byte{1});
    EXPECT_EQ(program.at(to_b)[0], std::byte{2});
    program.at(a).assign(16, std::byte{3});
    program.at(b).assign(16, std::byte{4});
    // Nothing written: the first task's registers again, then the second one's.
    EXPECT_EQ(run({}), 1U << 8);
    EXPECT_EQ(program.at(to_a)[0], std::byte{3});
    EXPECT_EQ(program.at(to_b)[0], std::byte{2});
    EXPECT_EQ(run({}), 1U << 9);
    EXPECT_EQ(program.at(to_b)[0], std::byte{4});
}

TEST(Memories, HoldBuffersThatDoNotOverlap) {
    Memory memory;
    std::vector<std::byte> a(64), b(64);
    EXPECT_TRUE(memory.add(0x1000, a));
    EXPECT_FALSE(memory.add(0x103f, b));
    EXPECT_FALSE(memory.add(0xfff, b));
    EXPECT_FALSE(memory.add(0xffffffc1, b));
    EXPECT_FALSE(memory.add(0x2000, {}));
    EXPECT_TRUE(memory.add(0x1040, b));
    EXPECT_TRUE(memory.read(0x1040, 64, "a"));
    // Neighbours are two buffers: an access over the border is refused.
    EXPECT_FALSE(memory.read(0x1020, 64, "a"));
    EXPECT_FALSE(memory.write(0x107f, 2, "a"));
    memory.remove(0x1000);
    EXPECT_FALSE(memory.read(0x1000, 1, "a"));
}

TEST(Memories, BytesThatNobodyWroteAreNotRead) {
    Memory memory;
    std::vector<std::byte> a(64);
    ASSERT_TRUE(memory.add(0x1000, a, Contents::unknown));
    EXPECT_FALSE(memory.read(0x1000, 1, "a"));
    ASSERT_TRUE(memory.check_write(0x1000, 64, "a"));
    EXPECT_FALSE(memory.read(0x1000, 1, "a")) << "nothing was written yet";
    ASSERT_TRUE(memory.write(0x1010, 16, "a"));
    EXPECT_TRUE(memory.read(0x1010, 16, "a"));
    const auto beyond = memory.read(0x1018, 16, "CNA: features");
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().what,
              "CNA: features: read of 16 bytes at 0x1018, of which byte 8 was never written");
    memory.forget(0x1000);
    EXPECT_FALSE(memory.read(0x1010, 16, "a"));
}

}  // namespace
}  // namespace reef::rk3588::sim

// Functions by table in the simulated DPU, against values computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rk3588/sim/dpu_tables.h"
#include "rk3588/small_tasks.h"

namespace reef::rk3588::sim {
namespace {

using rk3588::test::flying_function;
using rk3588::test::FunctionEntries;
using rk3588::test::SmallProgram;
using testing::HasSubstr;

/// Every byte through tables of five entries, of which LE has -64 to 0 and LO 0 to 64.
class FunctionsByTable : public testing::Test {
  protected:
    FunctionsByTable() {
        std::vector<std::byte> bytes(256);
        for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::byte>(i);
        const auto from = program.add(bytes);
        to = program.add(std::vector<std::byte>(256));
        set = flying_function(4, 4, 16, from, to);
    }

    Result<RunReport> run(const Switches& switches = {}) {
        program.restart();
        return program.run(tables, set, Blocks::flying, switches);
    }
    /// The result of a byte.
    int of(int value) {
        return static_cast<std::int8_t>(program.at(to)[static_cast<std::size_t>(value) & 0xffU]);
    }
    template <Name field>
    std::string refusal(std::int64_t value) {
        const RegisterSet before = set;
        set.set<field>(value);
        const auto report = run();
        set = before;
        return report ? "accepted" : report.error().message();
    }

    SmallProgram program;
    RegisterSet set;
    std::uint32_t to = 0;
    FunctionEntries tables{{-100, -50, -10, 0, 3}, {7, 20, 21, 50, 90}};
};

TEST_F(FunctionsByTable, GoFromEntryToEntry) {
    const auto report = run();
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_EQ(of(-64), -100);
    EXPECT_EQ(of(-56), -75);  // -100 + 50 * 8 / 16
    EXPECT_EQ(of(-48), -50);
    EXPECT_EQ(of(-47), -47);  // -50 + 2.5
    EXPECT_EQ(of(-1), 3);     // 0 + 3 * 15 / 16
    EXPECT_EQ(of(5), 11);     // 7 + 4.06
    EXPECT_EQ(of(40), 36);    // 21 + 14.5
    EXPECT_EQ(of(64), 90);
}

TEST_F(FunctionsByTable, CutOffWhereTheSwitchSaysSo) {
    ASSERT_TRUE(run({.interpolation = Switches::Interpolation::down}));
    EXPECT_EQ(of(-56), -75);
    EXPECT_EQ(of(-47), -48);
    EXPECT_EQ(of(-1), 2);
    EXPECT_EQ(of(40), 35);
    EXPECT_EQ(of(-75), -84);  // -100 + 16.5
    EXPECT_EQ(of(103), 99);   // 90 + 9.75
}

TEST_F(FunctionsByTable, GoOnBeyondTheirEndsBySlopes) {
    ASSERT_TRUE(run());
    EXPECT_EQ(of(-70), -91);  // -100 + (-6) * (-3) / 2
    EXPECT_EQ(of(-75), -83);  // -100 + 16.5
    EXPECT_EQ(of(100), 99);   // 90 + 36 / 4
    EXPECT_EQ(of(103), 100);  // 90 + 9.75
    EXPECT_EQ(of(127), 106);  // 90 + 15.75
    EXPECT_EQ(of(-128), -4);  // -100 + 96
}

TEST_F(FunctionsByTable, AnswerByTheirPriorities) {
    ASSERT_TRUE(run());
    EXPECT_EQ(of(0), 7);  // within both
    set.set<"DPU_LUT_CFG.LUT_HYBRID_PRIORITY">(0);
    set.set<"DPU_LUT_CFG.LUT_UFLOW_PRIORITY">(1);
    set.set<"DPU_LUT_CFG.LUT_OFLOW_PRIORITY">(0);
    ASSERT_TRUE(run());
    EXPECT_EQ(of(0), 3);
    EXPECT_EQ(of(-70), -11);  // LO: 7 - 17.5
    EXPECT_EQ(of(100), 3);    // LE, without a slope
}

TEST_F(FunctionsByTable, OfFormsThatAreNotModelledAreRefusedByName) {
    EXPECT_EQ((refusal<"DPU_LUT_CFG.LUT_LO_LE_MUX">(2)), "accepted");
    EXPECT_THAT((refusal<"DPU_LUT_CFG.LUT_LO_LE_MUX">(0)),
                HasSubstr("LUT_LO_LE_MUX 0 has no known meaning"));
    EXPECT_THAT((refusal<"DPU_LUT_CFG.LUT_EXPAND_EN">(1)), HasSubstr("LUT_EXPAND_EN is 0x1"));
    EXPECT_THAT((refusal<"DPU_LUT_CFG.LUT_ROAD_SEL">(1)), HasSubstr("LUT_ROAD_SEL is 0x1"));
    EXPECT_THAT((refusal<"DPU_LUT_CFG.LUT_CAL_SEL">(1)), HasSubstr("LUT_CAL_SEL is 0x1"));
    EXPECT_THAT((refusal<"DPU_EW_CFG.EW_OP_BYPASS">(0)), HasSubstr("EW_OP_BYPASS"));
    EXPECT_THAT((refusal<"DPU_EW_CFG.EW_RELU_BYPASS">(0)), HasSubstr("ReLU with the tables"));
    EXPECT_THAT((refusal<"DPU_LUT_INFO.LUT_LO_INDEX_SELECT">(32)),
                HasSubstr("LUT_LO_INDEX_SELECT 32"));
    EXPECT_THAT((refusal<"DPU_LUT_LE_END.LUT_LE_END">(-65)), HasSubstr("LE ends in front"));
}

TEST_F(FunctionsByTable, EntriesThatNobodyLoadedAreNotRead) {
    EXPECT_THAT((refusal<"DPU_LUT_INFO.LUT_LE_INDEX_SELECT">(3)),
                HasSubstr("entry 5 of LE is not loaded"));
    tables.lo.resize(514);
    const auto report = run();
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message(), HasSubstr("entry 513 of LO, which has 513"));
}

TEST_F(FunctionsByTable, StayForTheNextTask) {
    ASSERT_TRUE(run());
    ASSERT_TRUE(program.run(set, Blocks::flying));
    EXPECT_EQ(of(40), 36);
    program.restart();
    EXPECT_FALSE(program.run(set, Blocks::flying));
}

}  // namespace
}  // namespace reef::rk3588::sim

#include "rk3588/regs/register_set.h"

#include <gtest/gtest.h>

#include "rk3588/stream/task.h"

namespace reef::rk3588 {
namespace {

TEST(RegisterSet, FieldsStandWhereTheManualHasThem) {
    RegisterSet set;
    set.set<"CNA_CBUF_CON0.DATA_BANK">(1);
    set.set<"CNA_CBUF_CON0.WEIGHT_BANK">(11);
    set.set<"CNA_CBUF_CON0.WEIGHT_REUSE">(1);
    const auto index = register_named("CNA_CBUF_CON0");
    EXPECT_EQ(set.value(index), 0x20b1U);
    EXPECT_EQ(register_word(index, set.value(index)), 0x0201'0000'20b1'1040U);
    EXPECT_EQ(set.get<"CNA_CBUF_CON0.WEIGHT_BANK">(), 11U);
    set.set<"CNA_CBUF_CON0.WEIGHT_BANK">(2);
    EXPECT_EQ(set.value(index), 0x2021U);
}

TEST(RegisterSet, SignedFieldsHaveTheirSign) {
    RegisterSet set;
    set.set<"CNA_DMA_CON2.SURF_STRIDE">(-3);
    EXPECT_EQ(set.value(register_named("CNA_DMA_CON2")), 0x0ffffffdU);
    EXPECT_EQ(set.get_signed<"CNA_DMA_CON2.SURF_STRIDE">(), -3);
    set.set<"DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET">(-128);
    EXPECT_EQ(set.value(register_named("DPU_OUT_CVT_OFFSET")), 0xffffff80U);
}

TEST(RegisterSet, WhatAFieldCannotHoldIsRefusedByName) {
    RegisterSet set;
    set.set<"CNA_PAD_CON0.PAD_LEFT">(16);
    set.set<"CNA_PAD_CON0.PAD_TOP">(3);
    const auto words = task_words(set, Blocks::convolution);
    ASSERT_FALSE(words);
    EXPECT_EQ(words.error().cause, Cause::unsupported);
    EXPECT_EQ(words.error().message(),
              "CNA_PAD_CON0.PAD_LEFT: 16 does not fit 4 bits (the field takes 0 to 15)");
}

TEST(TaskWords, EndWithTheTail) {
    RegisterSet set;
    set.set<"DPU_DATA_CUBE_WIDTH.WIDTH">(6);
    const auto last = task_words(set, Blocks::flying);
    ASSERT_TRUE(last) << last.error().message();
    EXPECT_EQ(*last, (std::vector<std::uint64_t>{0x1001'0000'0006'4030, 0, 0x0101'0000'0000'0014,
                                                 0x0041'0000'0000'0000, 0x0081'0000'0018'0008}));
    const auto chained = task_words(set, Blocks::flying, {0x1000, 73});
    ASSERT_TRUE(chained) << chained.error().message();
    EXPECT_EQ((*chained)[1], 0x0101'0000'1000'0010U);
    EXPECT_EQ((*chained)[2], 0x0101'0000'0024'0014U);
    EXPECT_FALSE(task_words(set, Blocks::flying, {0x1008, 73}));
}

TEST(TaskWords, FollowTheOrderThatIsGiven) {
    RegisterSet set;
    set.set<"CNA_CBUF_CON0.DATA_BANK">(2);
    constexpr RegisterIndex order[] = {register_named("CNA_CBUF_CON0"),
                                       register_named("CNA_CONV_CON1"),
                                       register_named("CNA_CBUF_CON0")};
    const auto words = task_words(set, order, Blocks::convolution);
    ASSERT_TRUE(words) << words.error().message();
    EXPECT_EQ(words->size(), 7U);
    EXPECT_EQ(words->front(), 0x0201'0000'0002'1040U);
    EXPECT_EQ((*words)[1], 0x0201'0000'0000'100cU);
    EXPECT_EQ((*words)[2], words->front());
    set.touch<"DPU_BS_CFG">();
    const auto refused = task_words(set, order, Blocks::convolution);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "DPU_BS_CFG is set and not in the order of words");
}

TEST(TaskWords, ReadBackAsTheSameRegisters) {
    RegisterSet set;
    for (RegisterIndex i = 0; i < register_count; ++i)
        if (spec::instructions[i].opcode >= 0x1000) set.write(i, 0x9e3779b9U * (i + 1U));
    const auto words = task_words(set, Blocks::convolution, {0x40, 10});
    ASSERT_TRUE(words) << words.error().message();
    const auto task = read_task(std::as_bytes(std::span(*words)));
    ASSERT_TRUE(task) << task.error().message();
    EXPECT_EQ(task->words, words->size());
    EXPECT_EQ(task->blocks, Blocks::convolution);
    EXPECT_EQ(task->next_address, 0x40U);
    EXPECT_EQ(task->next_words, 10U);
    for (RegisterIndex i = 0; i < register_count; ++i) {
        if (!set.is_written(i)) continue;
        EXPECT_EQ(task->registers.value(i), set.value(i)) << spec::instructions[i].name;
    }
}

}  // namespace
}  // namespace reef::rk3588

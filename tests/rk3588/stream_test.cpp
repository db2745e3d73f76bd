#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "reef/base/file.h"
#include "reef/rk3588/command_words.h"
#include "rk3588/captures.h"
#include "rk3588/stream/container.h"
#include "rk3588/stream/stream_check.h"
#include "rk3588/stream/task.h"
#include "support/shared_data.h"

namespace reef::rk3588 {
namespace {

using reef::rk3588::test::Stream;
using Words = std::vector<std::uint64_t>;

Bytes bytes_of(const Words& words) {
    return std::as_bytes(std::span(words));
}

Words small_task(int width) {
    RegisterSet set;
    set.set<"DPU_DATA_CUBE_WIDTH.WIDTH">(width);
    return task_words(set, Blocks::flying).value();
}

TEST(Task, BrokenOnesAreRefusedWithTheirWord) {
    const auto good = small_task(3);
    EXPECT_TRUE(read_task(bytes_of(good)));
    const auto message = [](Words words) {
        const auto task = read_task(bytes_of(words));
        return task ? std::string("accepted") : task.error().message();
    };
    auto unknown = good;
    unknown[0] = 0x1001'0000'0000'4ffc;
    EXPECT_EQ(message(unknown),
              "word 0x0: no register has opcode 0x4ffc (reef disasm --data shows such words)");
    auto other_target = good;
    other_target[0] = 0x0201'0000'0006'4030;
    EXPECT_EQ(message(other_target),
              "word 0x0: DPU_DATA_CUBE_WIDTH with target 0x201 (words of this register have "
              "target 0x1001)");
    auto no_mark = good;
    no_mark[3] = 0;
    EXPECT_EQ(message(no_mark), "word 0x4: no mark stands in front of op_en");
    auto no_end = good;
    no_end.pop_back();
    EXPECT_EQ(message(no_end), "word 0x4: the task has no op_en");
    EXPECT_FALSE(read_task(bytes_of(good).first(11)));
}

TEST(Task, WordsOfTablesAreAllKept) {
    // LUT_ACCESS_CFG writes LO from entry 3 on, then LE from entry 511 on; one word reads.
    const Words words{0x1001'0003'0003'4100, 0x1001'0000'0007'4104, 0x1001'0000'ffff'4104,
                      0x1001'0002'01ff'4100, 0x1001'0000'8000'4104, 0x1001'0000'4000'4100,
                      0x1001'0000'0009'4104, 0x0041'0000'0000'0000, 0x0081'0000'0018'0008};
    const auto task = read_task(bytes_of(words));
    ASSERT_TRUE(task) << task.error().message();
    const std::vector<TableWrite> all{{1, 3, 7}, {1, 4, -1}, {0, 511, -32768}};
    EXPECT_EQ(task->tables, all);
}

TEST(StreamCheck, NamesBrokenRulesAndWhatIsNotModelled) {
    auto stream = small_task(1);
    EXPECT_TRUE(check_stream(bytes_of(stream)).empty());
    stream.insert(stream.begin(), 0x0201'0001'0000'100c);  // DECONV
    stream.push_back(0x0201'0000'0000'4030);
    const auto faults = check_stream(bytes_of(stream));
    ASSERT_EQ(faults.size(), 3U);
    EXPECT_TRUE(faults[0].unmodelled);
    EXPECT_EQ(faults[0].what, "CNA_CONV_CON1.DECONV is 0x1, only 0x0 is simulated");
    EXPECT_EQ(faults[1].what, "DPU_DATA_CUBE_WIDTH has target 0x201, its own is 0x1001");
    EXPECT_EQ(faults[2].what, "the last task has no op_en");
}

TEST(Captures, EveryStreamDecodesAndEncodesToItself) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t words = 0;
    auto streams = test::captured_streams(shared);
    for (auto& stream : test::independent_streams(shared)) streams.push_back(std::move(stream));
    for (const auto& stream : streams) {
        const auto again = assemble(disassemble(stream.bytes(), {.symbolic = true}));
        ASSERT_TRUE(again) << stream.name << ": " << again.error().message();
        ASSERT_EQ(again->size(), 1U) << stream.name;
        EXPECT_TRUE(std::ranges::equal(again->front().bytes, stream.bytes())) << stream.name;
        words += stream.words.size();
    }
    EXPECT_EQ(streams.size(), 35U);
    EXPECT_EQ(words, 7880U);
}

// Bits of no field, and registers of no name, would show here.
TEST(Captures, EveryRegisterAndBitHasAName) {
    REEF_SHARED_OR_SKIP(shared);
    for (const auto& stream : test::captured_streams(shared)) {
        hw::InstructionCursor cursor(command_words(), stream.bytes());
        while (const auto word = cursor.next()) {
            ASSERT_NE(word->info, nullptr) << stream.name << " word " << word->word;
            for (const auto& field : word->info->fields)
                EXPECT_TRUE(field.kind != hw::FieldKind::raw || word->bits(field) == 0)
                    << stream.name << " word " << word->word << " " << word->info->name << " "
                    << field.name;
        }
    }
}

// The tasks that a vendor's program has, by the tails of its words: each tail gives the next task's
// size, and the next task is there.
TEST(Captures, TailsGiveTheNextTask) {
    REEF_SHARED_OR_SKIP(shared);
    const auto tasks =
        test::json_streams(shared / "data/rknpu/captures/liej6799_dual_residual_tasks.json");
    ASSERT_EQ(tasks.size(), 17U);
    std::size_t chained = 0;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
        const auto task = read_task(tasks[t].bytes());
        ASSERT_TRUE(task) << tasks[t].name << ": " << task.error().message();
        EXPECT_EQ(task->words, tasks[t].words.size());
        if (task->next_address == 0) continue;
        ASSERT_LT(t + 1, tasks.size());
        EXPECT_EQ(amount_of(tasks[t + 1].words.size()),
                  task->registers.get<"PC_REGISTER_AMOUNTS.PC_DATA_AMOUNT">())
            << tasks[t].name;
        ++chained;
    }
    EXPECT_EQ(chained, 11U);
}

TEST(Container, HoldsTheTasksThatOthersFoundInIt) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/rknpu/captures";
    const auto file = read_file((folder / "liej6799_add.rknn").string());
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_TRUE(is_vendor_container(file->view()));
    const auto stored = stored_tasks(file->view());
    const auto known = test::json_streams(folder / "liej6799_add_tasks.json");
    ASSERT_EQ(stored.size(), known.size());
    EXPECT_EQ(stored.front().offset, 7744U);
    for (std::size_t t = 0; t < known.size(); ++t)
        EXPECT_TRUE(std::ranges::equal(file->view().subspan(stored[t].offset, stored[t].size),
                                       known[t].bytes()))
            << t;
}

TEST(Container, OtherFilesHoldNone) {
    EXPECT_TRUE(stored_tasks({}).empty());
    const std::vector<std::byte> zeros(4096);
    EXPECT_TRUE(stored_tasks(zeros).empty());
    EXPECT_FALSE(is_vendor_container(zeros));
    // The tail alone is no task.
    const Words tail = {0x0101'0000'0000'0014, 0x0041'0000'0000'0000, 0x0081'0000'0018'0008};
    EXPECT_TRUE(stored_tasks(bytes_of(tail)).empty());
}

}  // namespace
}  // namespace reef::rk3588

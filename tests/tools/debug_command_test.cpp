// The commands of reef debug as values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "debug/command.h"
#include "debug/print.h"
#include "reef/edgetpu/debugger.h"

namespace reef::tool::debug {
namespace {

using edgetpu::ChipMemory;
using edgetpu::MemoryRange;
using edgetpu::RunUntil;
using edgetpu::TileNumber;
using ::testing::HasSubstr;

Result<std::optional<Command>> parse(std::string_view line) {
    return debug::parse(line, edgetpu::debug_tables());
}
Result<std::string> help_text(std::string_view command) {
    return debug::help_text(command, edgetpu::debug_tables());
}

Command parsed(std::string_view line) {
    const auto command = parse(line);
    EXPECT_TRUE(command) << line << ": " << (command ? "" : command.error().message());
    EXPECT_TRUE(command && *command) << line;
    return command && *command ? **command : Command(Quit{});
}

TEST(DebugCommand, RunControl) {
    EXPECT_EQ(parsed("step"), Command(RunTo{RunUntil::instruction, 1}));
    EXPECT_EQ(parsed("s 0x10"), Command(RunTo{RunUntil::instruction, 16}));
    EXPECT_EQ(parsed("step layer"), Command(RunTo{RunUntil::layer, 1}));
    EXPECT_EQ(parsed("step round 7  # seven"), Command(RunTo{RunUntil::round, 7}));
    EXPECT_EQ(parsed("c"), Command(RunTo{RunUntil::breakpoint, 1}));
    EXPECT_EQ(parsed("continue"), Command(RunTo{RunUntil::breakpoint, 1}));
    EXPECT_EQ(parsed("halt"), Command(Halt{}));
    EXPECT_EQ(parsed("restart"), Command(Restart{}));
    EXPECT_EQ(parsed("quit"), Command(Quit{}));
}

TEST(DebugCommand, Breakpoints) {
    EXPECT_EQ(parsed("break 0xae"), Command(BreakAtWord{{{}, 0, 0xae}, false, {}}));
    EXPECT_EQ(parsed("b 1:174 done"), Command(BreakAtWord{{1, 0, 174}, true, {}}));
    EXPECT_EQ(parsed("break 1:2:3 tile 15"),
              Command(BreakAtWord{{1, 2, 3}, false, TileNumber{15}}));
    EXPECT_EQ(parsed("break write narrow 2 0x100..0x13f"),
              Command(BreakAtWrite{{ChipMemory::narrow, TileNumber{2}, 0x100, 0x13f}}));
    EXPECT_EQ(parsed("break write wide any 4"),
              Command(BreakAtWrite{{ChipMemory::wide, {}, 4, 4}}));
    EXPECT_EQ(parsed("break write scaling tile 3 4"),
              Command(BreakAtWrite{{ChipMemory::scaling, TileNumber{3}, 4, 4}}));
    EXPECT_EQ(parsed("break write scalar 0xffd"),
              Command(BreakAtWrite{{ChipMemory::scalar, {}, 0xffd, 0xffd}}));
    EXPECT_EQ(parsed("delete 3"), Command(Delete{3}));
    EXPECT_EQ(parsed("breakpoints"), Command(Show::breakpoints));
}

TEST(DebugCommand, RegistersAndUnits) {
    EXPECT_EQ(parsed("reg s4"), Command(Register{"s4", {}}));
    EXPECT_EQ(parsed("reg s4=5"), Command(Register{"s4", 5}));
    EXPECT_EQ(parsed("reg scu_ctrl_3 = 0xffffffffffffffff"),
              Command(Register{"scu_ctrl_3", ~std::uint64_t{0}}));
    EXPECT_EQ(parsed("engines"), Command(ShowOf{ShowUnits::engines, {}}));
    EXPECT_EQ(parsed("engines tile 3"),
              Command(ShowOf{ShowUnits::engines, {false, TileNumber{3}}}));
    EXPECT_EQ(parsed("counters core"), Command(ShowOf{ShowUnits::counters, {true, {}}}));
    EXPECT_EQ(parsed("queues"), Command(ShowOf{ShowUnits::queues, {}}));
}

TEST(DebugCommand, Memories) {
    EXPECT_EQ(parsed("memory narrow 0 0x10 4"),
              Command(ShowMemory{{ChipMemory::narrow, TileNumber{0}, 0x10, 0x13}}));
    EXPECT_EQ(parsed("memory wide 1 0x81e"),
              Command(ShowMemory{{ChipMemory::wide, TileNumber{1}, 0x81e, 0x81e}}));
    EXPECT_EQ(parsed("memory scalar 0"), Command(ShowMemory{{ChipMemory::scalar, {}, 0, 15}}));
    ShowTensor tensor{.memory = ChipMemory::narrow,
                      .tile = TileNumber{2},
                      .first = 0x100,
                      .shape = {4, 8, 16},
                      .type = ElementType::int8,
                      .strides = {},
                      .flips_signed = true};
    EXPECT_EQ(parsed("tensor narrow 2 0x100 4x8x16 int8"), Command(tensor));
    tensor.strides = {256, 16, 1};
    EXPECT_EQ(parsed("tensor narrow 2 0x100 4x8x16 i8 strides 256,16,1"), Command(tensor));
    EXPECT_EQ(bytes_of(tensor), 3U * 256 + 7 * 16 + 15 + 1);
    EXPECT_EQ(parsed("list"), Command(List{{}, 10}));
    EXPECT_EQ(parsed("list 1:0x34 3"), Command(List{WordText{1, 0, 0x34}, 3}));
}

TEST(DebugCommand, EmptyLinesAndCommentsAreNoCommands) {
    for (const char* line : {"", "   ", "# step", "\t# x"}) {
        const auto command = parse(line);
        ASSERT_TRUE(command) << line;
        EXPECT_FALSE(*command) << line;
    }
}

TEST(DebugCommand, MistakesSayTheForm) {
    for (const char* line : {"step x",
                             "step 0",
                             "step 1 2",
                             "step -1",
                             "continue 1",
                             "break",
                             "break x",
                             "break 1:2:3:4",
                             "break 1 tile",
                             "break 1 tile x",
                             "break write",
                             "break write narrow 0x100",
                             "break write narrow 0 5..4",
                             "break write lake 0 1",
                             "delete",
                             "delete x",
                             "reg",
                             "reg = 4",
                             "reg s4 = x",
                             "engines tile",
                             "engines all",
                             "memory",
                             "memory narrow 0",
                             "memory narrow 0 0 0",
                             "memory narrow 0 0 x",
                             "memory scalar",
                             "tensor narrow 0 0",
                             "tensor narrow 0 0 4x",
                             "tensor narrow 0 0 0x4",
                             "tensor narrow 0 0 4 strides x",
                             "list x",
                             "list 0 0",
                             "quit now",
                             "break 99999999999999999999"}) {
        const auto command = parse(line);
        ASSERT_FALSE(command) << line;
        EXPECT_THAT(command.error().message(), HasSubstr("the form is: ")) << line;
    }
    EXPECT_THAT(parse("jump 3").error().message(), HasSubstr("'jump' is not one command"));
    EXPECT_THAT(parse("re").error().message(), HasSubstr("'re' is not one command"));
    EXPECT_THAT(parse("memory narrow 0 0x40000 1").error().message(), HasSubstr("0x40000 bytes"));
    EXPECT_THAT(parse("memory narrow 0 4294967295 1").error().message(), HasSubstr("memory has"));
    EXPECT_THAT(parse("tensor narrow 0 0 4 bool").error().message(), HasSubstr("element types"));
    EXPECT_THAT(parse("tensor narrow 0 0 4x4 strides 1").error().message(),
                HasSubstr("1 strides for 2 dimensions"));
    EXPECT_FALSE(parse("tensor narrow 0 0 4 strides -1"));
    EXPECT_FALSE(parse("tensor narrow 0 0 99999x99999x99999"));
}

TEST(DebugCommand, HelpNamesEveryCommand) {
    const auto all = help_text({});
    ASSERT_TRUE(all);
    for (const char* name : {"step", "continue", "break", "memory", "tensor", "list", "quit"})
        EXPECT_THAT(*all, HasSubstr(std::string(name)));
    EXPECT_THAT(help_text("b").value(), HasSubstr("break WORD"));
    EXPECT_FALSE(help_text("jump"));
}

// Each line of the help that stands at the margin is a form of a command, with arguments for its
// words in capitals.
TEST(DebugCommand, HelpShowsFormsThatWork) {
    for (const char* line :
         {"step [N]\nstep layer [N]\nstep round [N]\n    ",
          "break WORD [done] [tile T]\nbreak write MEMORY [T] FIRST[..LAST]\n    "})
        EXPECT_THAT(help_text({}).value(), HasSubstr(line));
    EXPECT_THAT(parse("step x").error().message(),
                HasSubstr("the form is: step [N], or step layer [N], or step round [N]"));
    EXPECT_TRUE(parse("step layer 2"));
    EXPECT_TRUE(parse("step round 3"));
    EXPECT_TRUE(parse("break write narrow 2 5"));
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
}

TEST(DebugTensor, ElementsAreTheHosts) {
    ShowTensor tensor{.memory = ChipMemory::narrow,
                      .tile = TileNumber{0},
                      .first = 0,
                      .shape = {2, 3},
                      .type = ElementType::uint8,
                      .strides = {},
                      .flips_signed = true};
    const auto six = bytes({0, 1, 127, 128, 129, 255});
    EXPECT_EQ(tensor_text(tensor, six), "[0]   0   1 127\n[1] 128 129 255\n");
    tensor.type = ElementType::int8;
    EXPECT_EQ(tensor_text(tensor, six), "[0] -128 -127   -1\n[1]    0    1  127\n");
    EXPECT_EQ(tensor_json(tensor, six).dump(), "[[-128,-127,-1],[0,1,127]]");
    tensor.shape = {3, 2};
    tensor.strides = {1, 3};
    EXPECT_EQ(tensor_text(tensor, six), "[0] -128    0\n[1] -127    1\n[2]   -1  127\n");
    tensor.type = ElementType::int16;
    tensor.shape = {2};
    tensor.strides = {};
    EXPECT_EQ(tensor_json(tensor, bytes({0, 0x80, 1, 0})).dump(), "[0,-32767]");
    tensor.type = ElementType::int32;
    tensor.shape = {1};
    EXPECT_EQ(tensor_json(tensor, bytes({0xfe, 0xff, 0xff, 0xff})).dump(), "[-2]");
}

}  // namespace
}  // namespace reef::tool::debug

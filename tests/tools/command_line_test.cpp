// What every verb's command line has in common: help, mistakes, and outputs that spare inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "command.h"
#include "outputs/file_output.h"
#include "outputs/text_table.h"
#include "outputs/work_folder.h"
#include "reef/base/file.h"

namespace reef::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CommandLineTest : public CommandTest {};

TEST_F(CommandLineTest, NearNamesAreOffered) {
    expect_error({"insepct"}, 2, "did you mean inspect?");
    expect_error({"bnech", "x"}, 2, "did you mean bench?");
    expect_error({"inspect", picture_model, "--tesnors"}, 2, "did you mean --tensors?");
    expect_error({"run", picture_model, "--thread=2"}, 2, "did you mean --threads?");
    // What is missing may be there under a wrong name.
    expect_error({"weights", "get", picture_model, "--likee", picture_model}, 2,
                 "did you mean --like?");
    expect_error({"weights", "gte", picture_model}, 2,
                 "'gte' is none of get, set, verify; did you mean get?");
    expect_error({"weights"}, 2, "needs one of get, set, verify");
    EXPECT_THAT(reef_command({"photosynthesis"}).err, Not(HasSubstr("did you mean")));
    EXPECT_THAT(reef_command({"inspect", picture_model, "--photosynthesis"}).err,
                Not(HasSubstr("did you mean")));
}

TEST_F(CommandLineTest, HelpIsAVerb) {
    EXPECT_EQ(expect_ok({"help"}), expect_ok({"--help"}));
    EXPECT_EQ(expect_ok({"help", "run"}), expect_ok({"run", "--help"}));
    EXPECT_EQ(expect_ok({"help", "weights", "get"}), expect_ok({"weights", "get", "--help"}));
    EXPECT_THAT(expect_ok({"help", "weights", "get"}), HasSubstr("--output"));
    expect_error({"help", "dance"}, 2, "'dance' is not a verb");
    expect_error({"hepl", "run"}, 2, "'hepl' is not a verb");
    expect_error({"hepl", "run"}, 2, "did you mean help?");
    expect_error({"help", "weights", "gte"}, 2, "'gte' is none of get, set, verify");
    expect_error({"dance", "list"}, 2, "'dance' is not a verb");
}

TEST_F(CommandLineTest, InputsMayFollowTheModel) {
    const std::string a = write_array("a.npy", float_array({1, 4}, {1, -2, 3, -4}));
    const std::string b = write_array("b.npy", float_array({1, 4}, {1, 1, 1, 1}));
    expect_ok({"run", two_input_model, "--input", a, "--input", b, "--output", file("flags")});
    expect_ok({"run", two_input_model, a, b, "-o", file("words")});
    expect_ok({"compare", file("flags"), file("words")});
    expect_error({"run", two_input_model, a}, 2, "is not given");
}

TEST_F(CommandLineTest, OutputsSpareInputs) {
    const std::string text = write("net.s", std::string_view());
    expect_error({"asm", text, "-o", text}, 2, "is read, and would be overwritten");
    expect_error({"bench", two_input_model, "--trace", two_input_model}, 2,
                 "is read, and would be overwritten");
    const std::string input = write_array("out0.npy", float_array({1, 4}, {1, 2, 3, 4}));
    expect_error({"run", two_input_model, "left=" + input, input, "-o", file("")}, 2,
                 "is read, and would be overwritten");
    expect_error({"run", two_input_model, "-o", input}, 1, "is a file, not a folder");
    std::filesystem::create_symlink(input, file("left.npy"));
    expect_error({"run", two_input_model, "left=" + file("left.npy"), input, "-o", file("")}, 2,
                 "is read, and would be overwritten");
}

TEST_F(CommandLineTest, OverwrittenFilesKeepTheirModes) {
    const std::string a = write_array("a.npy", float_array({1, 4}, {1, -2, 3, -4}));
    const auto run = [&] {
        expect_ok(
            {"run", two_input_model, a, a, "-o", file("results"), "--dump-all", file("tensors")});
    };
    run();
    for (const char* name : {"results/out0.npy", "tensors/t0002.npy"})
        ASSERT_EQ(::chmod(file(name).c_str(), 0600), 0);
    run();
    for (const char* name : {"results/out0.npy", "tensors/t0002.npy"}) {
        struct stat status {};
        ASSERT_EQ(::stat(file(name).c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 07777, 0600U) << name;
    }
}

TEST_F(CommandLineTest, PlacesOfOutputsAreTriedFirst) {
    // The model does not exist: that would be the next thing to say.
    expect_error({"bench", file("none.tflite"), "--trace", file("none/trace.json")}, 1,
                 "no folder");
    expect_error({"run", file("none.tflite"), "-o", file("none/out")}, 1, "no folder");
    expect_error({"record", file("none.tflite"), "-o", file("none/traffic.log")}, 1, "no folder");
}

/// Lines of what a verb prints on a terminal of 80 columns.
std::vector<std::string> lines_on_a_terminal(std::vector<std::string> arguments) {
    const auto result =
        reef_command(std::move(arguments), {.environment = {"NO_COLOR=1"}, .terminal = true});
    EXPECT_THAT(result.err, IsEmpty());
    std::vector<std::string> lines;
    std::string_view rest = result.out;
    while (!rest.empty()) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.emplace_back(line);
    }
    return lines;
}

TEST_F(CommandLineTest, TablesFitTheTerminal) {
    const auto lines = lines_on_a_terminal({"ops"});
    EXPECT_GT(lines.size(), 20U);
    for (const std::string& line : lines) EXPECT_LE(display_width(line), 80U) << line;
}

TEST_F(CommandLineTest, ColumnsOfNumbersMakeRoomOnANarrowTerminal) {
    const std::string a = write_array("a.npy", float_array({1, 4}, {1e-7F, -2, 3, -4}));
    const std::string b = write_array("b.npy", float_array({1, 4}, {1, 2e9F, 3, 4}));
    const auto lines = lines_on_a_terminal({"compare", a, b});
    const auto titles = std::ranges::find_if(
        lines, [](const std::string& line) { return line.starts_with("  tensor"); });
    ASSERT_NE(titles, lines.end());
    for (auto line = titles; line != lines.end(); ++line)
        EXPECT_LE(display_width(*line), 80U) << *line;
    EXPECT_THAT(*titles, AllOf(HasSubstr("max |a-b|"), HasSubstr("first"), Not(HasSubstr("MSE"))));
    EXPECT_THAT(reef_command({"compare", a, b}).out, HasSubstr("MSE"));
}

volatile std::sig_atomic_t caught = 0;

TEST(SignalsWait, TheyTakeEffectAtItsEnd) {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int signal) { caught = signal; };
    ASSERT_EQ(::sigaction(SIGTERM, &action, &before), 0);
    {
        const SignalsWait wait;
        std::raise(SIGTERM);
        EXPECT_EQ(caught, 0);
    }
    EXPECT_EQ(caught, SIGTERM);
    caught = 0;
    {
        const SignalsWait wait;
        std::raise(SIGTERM);
        {
            const SignalsWait inner;
            EXPECT_TRUE(SignalsWait::waiting());
        }
        EXPECT_EQ(caught, 0) << "the outer one still lives";
    }
    EXPECT_EQ(caught, SIGTERM);
    EXPECT_FALSE(SignalsWait::waiting());
    ::sigaction(SIGTERM, &before, nullptr);
}

/// Whether a process runs: one that has ended may still wait for its parent to ask (proc(5)).
bool is_alive(pid_t process) {
    std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
    std::string number, name, state;
    return stat >> number >> name >> state && state != "Z" && state != "X";
}

TEST(WorkFolder, ASignalEndsTheProgramAndLeavesNoFolder) {
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int signal) { caught = signal; };
    ASSERT_EQ(::sigaction(SIGTERM, &action, &before), 0);
    caught = 0;
    std::string path;
    {
        const auto folder = WorkFolder::make("test").value();
        path = folder.path();
        ASSERT_TRUE(std::filesystem::is_directory(path));
        EXPECT_EQ(run_program({"/bin/sh", "-c", "exit 3"}).value(), 3);
        EXPECT_EQ(run_program({"/nowhere/program"}).error().cause, Cause::not_found);
        // The program sends its parent, which is this test, the signal, and would go on for long:
        // it does not listen, and has started another.
        const std::string other = path + "/other";
        const auto ended = run_program(
            {"/bin/sh", "-c",
             "trap '' TERM; sleep 600 & echo $! >" + other + "; kill -TERM $PPID; sleep 600"},
            std::chrono::milliseconds(100));
        ASSERT_FALSE(ended);
        EXPECT_EQ(ended.error().cause, Cause::cancelled);
        pid_t started = 0;
        ASSERT_TRUE(std::ifstream(other) >> started);
        // Its new parent may not have waited for it yet.
        for (int i = 0; i < 200 && is_alive(started); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_FALSE(is_alive(started));
        EXPECT_EQ(caught, 0);
    }
    EXPECT_EQ(caught, SIGTERM);
    EXPECT_FALSE(std::filesystem::exists(path));
    ::sigaction(SIGTERM, &before, nullptr);
}

}  // namespace
}  // namespace reef::tool

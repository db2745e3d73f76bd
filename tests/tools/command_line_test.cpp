// What every verb's command line has in common: help, mistakes, and outputs that spare inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "command.h"
#include "outputs/file_output.h"
#include "outputs/text_table.h"
#include "reef/base/file.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CommandLineTest : public CommandTest {};

TEST_F(CommandLineTest, NearNamesAreOffered) {
    expect_error({"insepct"}, 2, "did you mean inspect?");
    expect_error({"bnech", "x"}, 2, "did you mean bench?");
    expect_error({"inspect", picture_model, "--tesnors"}, 2, "did you mean --tensors?");
    expect_error({"run", picture_model, "--thread=2"}, 2, "did you mean --threads?");
    EXPECT_THAT(reef_command({"photosynthesis"}).err, Not(HasSubstr("did you mean")));
    EXPECT_THAT(reef_command({"inspect", picture_model, "--photosynthesis"}).err,
                Not(HasSubstr("did you mean")));
}

TEST_F(CommandLineTest, HelpIsAVerb) {
    EXPECT_EQ(expect_ok({"help"}), expect_ok({"--help"}));
    EXPECT_EQ(expect_ok({"help", "run"}), expect_ok({"run", "--help"}));
    expect_error({"help", "dance"}, 2, "'dance' is not a verb");
    expect_error({"hepl", "run"}, 2, "'hepl' is not a verb");
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
}

TEST_F(CommandLineTest, PlacesOfOutputsAreTriedFirst) {
    // The model does not exist: that would be the next thing to say.
    expect_error({"bench", file("none.tflite"), "--trace", file("none/trace.json")}, 1,
                 "no folder");
    expect_error({"run", file("none.tflite"), "-o", file("none/out")}, 1, "no folder");
    expect_error({"record", file("none.tflite"), "-o", file("none/traffic.log")}, 1, "no folder");
}

TEST_F(CommandLineTest, TablesFitTheTerminal) {
    const auto result = reef_command({"ops"}, {.environment = {"NO_COLOR=1"}, .terminal = true});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::string_view rest = result.out;
    while (!rest.empty()) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (line.ends_with('\r')) line.remove_suffix(1);
        EXPECT_LE(display_width(line), 80U) << line;
    }
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
    ::sigaction(SIGTERM, &before, nullptr);
}

}  // namespace
}  // namespace reef::tool

#include "peers/child.h"

#include <gtest/gtest.h>

namespace reef::peers {
namespace {

using namespace std::chrono_literals;

Child shell(const char* script) {
    auto child = Child::start({"/bin/sh", "-c", script});
    EXPECT_TRUE(child) << child.error().message();
    return std::move(*child);
}

TEST(Child, AnswersLinesWithLines) {
    Child child = shell("cat");
    for (const std::string line : {"first", "", "third"}) {
        ASSERT_TRUE(child.write_line(line));
        const auto answer = child.read_line();
        ASSERT_TRUE(answer) << answer.error().message();
        EXPECT_EQ(*answer, line);
    }
}

TEST(Child, EndsBehindItsLastLine) {
    Child child = shell("printf 'one\\ntwo\\nno line'");
    EXPECT_EQ(child.read_line().value_or(""), "one");
    EXPECT_EQ(child.read_line().value_or(""), "two");
    const auto more = child.read_line();
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().cause, Cause::io_failed);
}

// The shell would be waited for else.
TEST(Child, IsKilledWhenItSaysNothing) {
    Child child = shell("exec sleep 1000");
    const auto line = child.read_line(20ms);
    ASSERT_FALSE(line);
    EXPECT_EQ(line.error().cause, Cause::io_failed);
    EXPECT_NE(line.error().message().find("/bin/sh"), std::string::npos);
}

TEST(OutputOf, IsOfBothStreams) {
    const auto text = output_of({"/bin/sh", "-c", "echo out; echo error >&2; printf end"});
    ASSERT_TRUE(text) << text.error().message();
    EXPECT_EQ(*text, "out\nerror\nend");
}

TEST(OutputOf, SaysTheLastLineOfWhatFails) {
    const auto text = output_of({"/bin/sh", "-c", "echo one; echo two; exit 3"});
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().cause, Cause::io_failed);
    EXPECT_NE(text.error().message().find("the program failed: two"), std::string::npos);
}

// It would be waited for else.
TEST(OutputOf, IsNotWaitedForWhenItSaysNothing) {
    const auto text = output_of({"/bin/sh", "-c", "echo one; exec sleep 1000"}, 20ms);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().cause, Cause::io_failed);
    EXPECT_NE(text.error().message().find("was killed"), std::string::npos);
    EXPECT_NE(text.error().message().find("/bin/sh"), std::string::npos);
}

TEST(OutputOf, NeedsAProgram) {
    EXPECT_FALSE(output_of({"/no such program"}));
}

}  // namespace
}  // namespace reef::peers

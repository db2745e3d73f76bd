// reef debug: scripted sessions on compiled templates and on a simulated stick.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "command.h"
#include "reef/base/file.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class DebugVerbTest : public CommandTest {
  protected:
    static std::string compiled(const std::string& name) {
        return (test::shared_folder().value() / "data/edgetpu/templates" /
                (name + "_edgetpu.tflite"))
            .string();
    }
    std::string session(const std::string& name, const std::string& commands,
                        std::vector<std::string> more = {}) {
        std::vector<std::string> arguments = {"debug", compiled(name), "--seed",
                                              "4",     "--script",     "-"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return expect_ok(arguments, {.stdin_text = commands});
    }
    /// The answers of a session with --json.
    std::vector<Json> answers(const std::string& name, const std::string& commands) {
        std::istringstream lines(session(name, commands, {"--json"}));
        std::vector<Json> all;
        for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
        for (const Json& one : all) {
            EXPECT_EQ(one["schema_version"], 1);
            EXPECT_EQ(one["verb"], "debug");
        }
        return all;
    }
    std::string on_stick(const std::string& commands) {
        return expect_ok({"debug", "--device", "edgetpu:null"}, {.stdin_text = commands});
    }
};

/// A session at a terminal.
class TypedSession {
  public:
    explicit TypedSession(const std::string& model) {
        child_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
        if (child_ != 0) return;
        ::setenv("TERM", "vt100", 1);
        ::execl(REEF_COMMAND, "reef", "debug", model.c_str(), nullptr);
        ::_exit(127);
    }
    TypedSession(const TypedSession&) = delete;
    TypedSession& operator=(const TypedSession&) = delete;
    ~TypedSession() {
        ::close(terminal_);
        if (child_ <= 0) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }

    void type(const std::string& keys) const {
        EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
    }
    /// Waits until `text` is shown behind what was waited for before; false: the session has ended,
    /// or showed nothing for some seconds.
    bool wait_for(const std::string& text) {
        while (shown_.find(text, seen_) == std::string::npos)
            if (!read()) return false;
        seen_ = shown_.find(text, seen_) + text.size();
        return true;
    }
    /// All that it showed, when it has ended.
    std::string end() {
        while (read()) {
        }
        int status = -1;
        ::waitpid(child_, &status, 0);
        child_ = -1;
        EXPECT_EQ(status, 0) << shown_;
        return shown_;
    }

  private:
    // Ends with EIO when the session does.
    bool read() {
        constexpr int patience_ms = 60'000;
        pollfd waiting{terminal_, POLLIN, 0};
        if (::poll(&waiting, 1, patience_ms) <= 0) {
            ::kill(child_, SIGKILL);
            return false;
        }
        char bytes[256];
        const ssize_t got = ::read(terminal_, bytes, sizeof bytes);
        if (got > 0) shown_.append(bytes, static_cast<std::size_t>(got));
        return got > 0;
    }

    int terminal_ = -1;
    pid_t child_ = -1;
    std::string shown_;
    std::size_t seen_ = 0;
};

/// What a session shows; `keys` ends it.
std::string typed_session(const std::string& model, const std::string& keys) {
    TypedSession session(model);
    session.type(keys);
    return session.end();
}

/// On compiled templates of the reference data.
class DebugTemplateTest : public DebugVerbTest {
  protected:
    void SetUp() override {
        REEF_SHARED_OR_SKIP(shared);
        ASSERT_FALSE(shared.empty());
    }
};

TEST_F(DebugTemplateTest, TypedLinesAreCarriedOut) {
    const std::string shown =
        typed_session(compiled("bright_16x16"), "break 0xffffffff\nbreakpoints\nquit\n");
    EXPECT_THAT(shown, HasSubstr("there is no word"));
    EXPECT_THAT(shown, HasSubstr("no breakpoints"));
}

// Whatever was looked at in between.
TEST_F(DebugTemplateTest, AnEmptyLineRepeatsTheLastStep) {
    const std::string shown =
        typed_session(compiled("bright_16x16"), "step\nwhere\ncounters\n\n\nquit\n");
    std::size_t stops = 0;
    for (auto at = shown.find("\nround "); at != std::string::npos;
         at = shown.find("\nround ", at + 1))
        ++stops;
    EXPECT_EQ(stops, 3U) << shown;
}

// Arrow keys: up is the line before, left goes back within one.
TEST_F(DebugTemplateTest, TypedLinesAreEditedAndComeBack) {
    const std::string up = "\x1b[A", left = "\x1b[D";
    const std::string shown = typed_session(
        compiled("bright_16x16"), "step\n" + up + "\n" + "pritn" + left + "\b" + "\n" + "quit\n");
    EXPECT_THAT(shown, HasSubstr("round 1\r\n"));
    EXPECT_THAT(shown, HasSubstr("round 2\r\n"));
    EXPECT_THAT(shown, HasSubstr("'prin'"));
}

TEST_F(DebugTemplateTest, ControlCEndsACommandAndNotTheSession) {
    const auto model = test::shared_folder().value() / "data/models" /
                       "posenet_mobilenet_v1_075_353_481_16_quant_decoder_edgetpu.tflite";
    // The key may come before the command runs or after it has ended: then it is tried again.
    for (const int delay_ms : {5, 20, 40, 80, 10, 30}) {
        TypedSession session(model.string());
        ASSERT_TRUE(session.wait_for("(reef) "));
        session.type("continue\n");
        ASSERT_TRUE(session.wait_for("continue\r\n"));
        std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
        session.type("\x03");
        session.type("where\n");
        ASSERT_TRUE(session.wait_for("core: "));
        session.type("quit\n");
        if (session.end().find("interrupted in round") != std::string::npos) return;
    }
    FAIL() << "nothing was interrupted";
}

TEST_F(DebugTemplateTest, TheOutputsAreThoseOfAnUndisturbedRun) {
    for (const char* name : {"dense_256", "gabor_64x64_7k_4o_2s"}) {
        const auto input = file("in.npy");
        Array array = byte_array({1, 256}, std::vector<std::uint8_t>(256));
        if (std::string(name) != "dense_256")
            array = byte_array({1, 64, 64, 1}, std::vector<std::uint8_t>(4096));
        for (std::size_t i = 0; i < array.data.size(); ++i)
            array.data[i] = static_cast<std::byte>(i * 37 % 251);
        write_array("in.npy", array);
        expect_ok({"run", compiled(name), "--device", "edgetpu:sim", "--input", input, "--runs",
                   "1", "--out", file("run")});
        expect_ok({"debug", compiled(name), "--input", input, "--out", file("debug")},
                  {.stdin_text = "step 40\nstep layer\nstep round 100\nengines\ncontinue\n"});
        const auto got = read_file(file("debug/out0.npy"));
        const auto want = read_file(file("run/out0.npy"));
        ASSERT_TRUE(got && want);
        EXPECT_TRUE(*got == *want) << name;
    }
}

// What narrow memory holds after the multiplication is what the program gives: tile t of four
// computes outputs 64 t to 64 t + 63.
TEST_F(DebugTemplateTest, NarrowMemoryHoldsTheOutputs) {
    const auto all = answers("dense_256",
                             "break 0xae done\ncontinue\n"
                             "memory narrow 0 0x100 64\nmemory narrow 1 0x100 64\n"
                             "memory narrow 2 0x100 64\ntensor narrow 3 0x100 4x16 uint8\n"
                             "continue\noutputs\n");
    ASSERT_EQ(all.size(), 8U);
    EXPECT_EQ(all[1]["stop"]["reason"], "breakpoint");
    EXPECT_EQ(all[1]["stop"]["events"][0]["instruction"], "mac");
    EXPECT_EQ(all[1]["stop"]["events"][0]["kind"], "finishes");
    std::string bytes;
    for (std::size_t tile = 0; tile < 3; ++tile)
        bytes += all[2 + tile]["memory"]["bytes"].get<std::string>();
    for (const auto& row : all[5]["tensor"]["values"])
        for (const auto& value : row) bytes += fmt::format("{:02x}", value.get<unsigned>());
    EXPECT_EQ(all[6]["stop"]["reason"], "ended");
    EXPECT_EQ(all[7]["outputs"][0]["bytes"], bytes);
}

TEST_F(DebugTemplateTest, ASessionInText) {
    const auto text = session("dense_256",
                              "info\n"
                              "break 0xae  # the multiplication\n"
                              "break write narrow 2 0x105\n"
                              "breakpoints\n"
                              "continue\n"
                              "list\n"
                              "engines tile 2\n"
                              "continue\n"
                              "delete 2\n"
                              "registers\npredicates\nwhere\ncounters tile 2\nqueues\nlayers\n"
                              "reg s4 = 0x12345678\nreg s4\n"
                              "restart\nwhere\nquit\ncontinue\n");
    EXPECT_THAT(text, HasSubstr("executable 0 EXECUTION_ONLY, stream 0: 264 words\n"));
    EXPECT_THAT(text, HasSubstr("  1  0:0x00ae  hit 0 times\n"));
    EXPECT_THAT(text, HasSubstr("  2  write narrow 2 0x105  hit 0 times\n"));
    EXPECT_THAT(text, HasSubstr("breakpoint 1: tile 0 OP takes up 0:0x00ae mac\n"));
    EXPECT_THAT(text, HasSubstr("> 0x00ae: mac tiles=t0-t3"));
    EXPECT_THAT(text, HasSubstr("tile 2: OP  0:0x00ae mac\n"));
    EXPECT_THAT(text, HasSubstr("0 of 64 visits  [0/64]"));
    EXPECT_THAT(
        text, HasSubstr("breakpoint 2: tile 2 OP writes narrow 2 0x104..0x107 in 0:0x00ae mac\n"));
    EXPECT_THAT(text, HasSubstr("breakpoint 2 is deleted\n"));
    EXPECT_THAT(text, HasSubstr("  s0 0x"));
    EXPECT_THAT(text, HasSubstr("p0 0  p1 0"));
    EXPECT_THAT(text, HasSubstr("core: 0:"));
    EXPECT_THAT(text, HasSubstr("WIDE_TO_SCALING"));
    EXPECT_THAT(text, HasSubstr("  0  0:0x00ae\n"));
    EXPECT_THAT(text, HasSubstr("s4 = 0x12345678\ns4 = 0x12345678\n"));
    EXPECT_THAT(text, HasSubstr("before the first instruction\ncore: 1:0x0000 start\n"));
    EXPECT_THAT(text, Not(HasSubstr("has ended"))) << "what comes behind quit is not done";
}

TEST_F(DebugTemplateTest, AnswersInJson) {
    const auto all = answers("dense_256",
                             "info\nlayers\nbreak 0xae\nbreakpoints\ncontinue\nwhere\nengines\n"
                             "counters core\nqueues tile 0\nlist 0xae 1\nreg s0\nhelp step\n"
                             "delete 1\n");
    ASSERT_EQ(all.size(), 13U);
    EXPECT_EQ(all[0]["info"]["streams"][0]["type"], "PARAMETER_CACHING") << "it runs first";
    EXPECT_EQ(all[1]["layers"][0]["instructions"][0]["word"], 0xae);
    EXPECT_EQ(all[3]["breakpoints"][0]["at"]["executable"], 0);
    EXPECT_EQ(all[4]["stop"]["events"][0]["breakpoint"], 1);
    EXPECT_EQ(all[5]["core"]["registers"].size(), 32U);
    bool found = false;
    for (const auto& engine : all[6]["engines"])
        if (engine["unit"]["engine"] == "OP" && !engine["nests"].empty()) {
            found = true;
            EXPECT_EQ(engine["at"]["word"], 0xae);
            EXPECT_EQ(engine["nests"][1]["name"], "in");
            EXPECT_EQ(engine["nests"][1]["visits"], 64);
        }
    EXPECT_TRUE(found);
    EXPECT_EQ(all[7]["counters"].size(), 9U);
    EXPECT_EQ(all[8]["queues"][0]["tile"], 0);
    EXPECT_EQ(all[9]["instructions"][0]["name"], "mac");
    EXPECT_EQ(all[12]["done"], true);
}

TEST_F(DebugTemplateTest, AScriptEndsAtTheFirstCommandThatFails) {
    const auto script = write("script.txt", std::string("where\nbreak 0xaf\nwhere\n"));
    const auto result = reef_command({"debug", compiled("dense_256"), "--script", script});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "core: 1:0x0000 start\n");
    EXPECT_THAT(result.err, HasSubstr("script.txt line 2: break 0xaf: "));
    EXPECT_THAT(result.err, HasSubstr("no instruction begins at word 0x00af (word 0x00ae mac"));
    for (const char* line :
         {"jump", "step x", "engines tile 16", "memory narrow 16 0", "memory wide 0 0x81f 2",
          "delete 1", "outputs", "reg x", "list 9:0", "tensor narrow 0 0x3ffff 4", "halt now",
          "list 0x9999", "break 0xffffffffffff"}) {
        const auto failed = reef_command({"debug", compiled("dense_256")}, {.stdin_text = line});
        EXPECT_EQ(failed.exit_code, 1) << line;
        EXPECT_THAT(failed.err, HasSubstr("standard input line 1")) << line;
    }
}

// A message shorter than the program waits for: the chip stands still, and can be looked at.
TEST_F(DebugTemplateTest, AProgramThatFailsCanBeLookedAt) {
    const std::string script =
        "break 0x1c\ncontinue\nreg s8 = 64\ncontinue\nreg s8\nstep\nwhere\nengines core\n"
        "queues tile 0\nmemory narrow 0 0 16\noutputs\n";
    const auto result = reef_command({"debug", compiled("dense_256"), "--out", file("out")},
                                     {.stdin_text = script});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("standard input line 4: continue: the program waits for "
                                      "bytes that the host does not have"));
    EXPECT_THAT(result.err, HasSubstr("line 6: step: the program has failed and cannot go on "
                                      "(restart goes back to before its first instruction)"));
    EXPECT_THAT(result.err, HasSubstr("outputs: the program has failed and gave no outputs"));
    EXPECT_THAT(result.out, HasSubstr("s8 = 0x40\ns8 = 0x40\n"));
    EXPECT_THAT(result.out, HasSubstr("core: 0:0x"));
    EXPECT_THAT(result.out, HasSubstr("\n0x00000: 00 00"));
    EXPECT_FALSE(std::filesystem::exists(file("out")));

    const auto again = reef_command({"debug", compiled("dense_256")},
                                    {.stdin_text = script + "delete 1\nrestart\ncontinue\n"});
    EXPECT_EQ(again.exit_code, 1) << "the first failure is not forgotten";
    EXPECT_THAT(again.out, HasSubstr("the program has ended"));
}

TEST_F(DebugTemplateTest, TheDeviceMayHaveAName) {
    EXPECT_EQ(session("dense_256", "where\n", {"--device", "edgetpu:sim:2"}),
              "core: 1:0x0000 start\n");
    expect_error({"debug", compiled("dense_256"), "--device", "edgetpu:sim:"}, 2,
                 "edgetpu:sim:NAME");
    EXPECT_THAT(expect_ok({"run", "--help"}), HasSubstr("edgetpu:sim[:NAME]"));
}

TEST_F(DebugTemplateTest, TheCommandLineIsChecked) {
    expect_error({"debug"}, 2, "needs a compiled model");
    expect_error({"debug", compiled("dense_256"), "--device", "cpu"}, 2,
                 "'cpu' is no device that can be debugged");
    expect_error({"debug", two_input_model}, 1, "not compiled for the Edge TPU");
    expect_error({"debug", file("none.tflite")}, 1, "none.tflite");
    expect_error({"debug", compiled("dense_256"), "--script", file("none.txt")}, 1, "none.txt");
    expect_error({"debug", compiled("dense_256"), "--out", file("out"), "--script", "-"}, 1,
                 "the program has not ended", {.stdin_text = ""});
    expect_error({"debug", "--device", "edgetpu:usb:9-9", "--script", "-"}, 3, "9-9");
}

// Registers of a simulated stick: reset values, what the driver wrote when it started the chip, and
// what the session writes.
TEST_F(DebugVerbTest, RegistersOfAStick) {
    EXPECT_EQ(on_stick("reg tileconfig0\n"), "tileconfig0 = 0x7f\n");
    // A command, which sticks do not show again.
    EXPECT_EQ(on_stick("reg scalarCoreRunControl\nhalt\nreg scalarCoreRunControl\n"),
              "scalarCoreRunControl = 0x0\nhalted\nscalarCoreRunControl = 0x0\n");
    EXPECT_EQ(on_stick("reg 0x48788\nreg 0x44408 = 7\nreg s1\n"),
              "0x48788 = 0x7f\n0x44408 = 0x7\ns1 = 0x7\n");
    EXPECT_EQ(on_stick("step\nreg scu_ctrl_3\n"), "round 1\nscu_ctrl_3 = 0x85000c\n");
    EXPECT_EQ(on_stick("reg s4 = 0x1234\nreg s5\nreg scalarRegisterFile[4]\nreg p7 = 1\n"),
              "s4 = 0x1234\ns5 = 0x0\nscalarRegisterFile[4] = 0x1234\np7 = 0x1\n");
    EXPECT_THAT(on_stick("reg s31 = 0xffffffff\nregisters\n"), HasSubstr(" s31 0xffffffff\n"));
    EXPECT_THAT(on_stick("reg p3 = 1\npredicates\n"), HasSubstr("p2 0  p3 1  p4 0"));
    EXPECT_THAT(on_stick("reg SyncCounter_PRODUCER_A = 16\ncounters\n"),
                HasSubstr("core: PRODUCER_A 16\n"));
    EXPECT_THAT(on_stick("reg currentPc = 0x34\nwhere\n"), HasSubstr("program counter 0x0034"));
    EXPECT_EQ(on_stick("break 0x34\nreg scalarCoreBreakPoint\nreg currentPc = 0x34\n"
                       "reg scalarCoreRunStatus = 4\ncontinue\n"
                       "delete 1\nreg scalarCoreBreakPoint\n"),
              "breakpoint  1  0:0x0034  hit 0 times\nscalarCoreBreakPoint = 0x34\n"
              "currentPc = 0x34\nscalarCoreRunStatus = 0x4\nbreakpoint 1: core comes to "
              "0:0x0034\nround 0\n"
              "breakpoint 1 is deleted\nscalarCoreBreakPoint = 0x0\n");
    EXPECT_EQ(on_stick("continue\n"), "the chip runs on\n");
}

TEST_F(DebugVerbTest, WhatAStickCannotDoIsRefusedByName) {
    for (const auto& [line, words] : std::vector<std::pair<std::string, std::string>>{
             {"memory narrow 0 0", "a stick's registers do not show narrow memory"},
             {"engines", "its engines' loop nests"},
             {"queues", "its rings and links"},
             {"counters tile 2", "of a stick only the core"},
             {"break write narrow 0 0", "writes to its memories"},
             {"break 3 done", "before an instruction"},
             {"break 3\nbreak 4", "a stick has one breakpoint"},
             {"step layer", "a stick steps by the scalar core's instructions only"},
             {"restart", "does not go back"},
             {"outputs", "a program's outputs"},
             {"reg nothing", "no register 'nothing'"},
             {"reg scalarRegisterFile", "is a file of 32 registers"},
             {"reg s32", "has 32 elements"},
             {"reg omc0_00 = 0x100000000", "it has 32 bits"}}) {
        const auto result =
            reef_command({"debug", "--device", "edgetpu:null"}, {.stdin_text = line});
        EXPECT_EQ(result.exit_code, 1) << line;
        EXPECT_THAT(result.err, HasSubstr(words)) << line;
    }
}

}  // namespace
}  // namespace reef::tool

// The command's verbs on models that are compiled for the RK3588.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/model/tflite.h"
#include "rk3588/compiler/two_convolutions.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace reef {
namespace {

using testing::HasSubstr;
using testing::Not;

class NpuVerbs : public testing::Test {
  protected:
    NpuVerbs() {
        const auto model = test::two_convolutions();
        EXPECT_TRUE(model) << model.error().message();
        EXPECT_TRUE(write_file(plain, model::write_tflite(*model).value()));
    }
    static test::ProcessResult reef(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), REEF_COMMAND);
        return test::run_process(arguments);
    }
    [[nodiscard]] test::ProcessResult compile(std::vector<std::string> more = {}) const {
        std::vector<std::string> arguments{"compile", plain, "--target", "rk3588", "-o", compiled};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return reef(std::move(arguments));
    }

    test::TemporaryFolder folder;
    std::string plain = folder.file("net.tflite"), compiled = folder.file("npu.tflite");
};

TEST_F(NpuVerbs, CompileReportsWhatProgramsNeed) {
    const auto done = compile({"--costs"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr("CONV_2D"));
    EXPECT_THAT(done.out, HasSubstr("2 in 2 tasks"));
    EXPECT_THAT(done.out, HasSubstr("bytes moved"));
    EXPECT_THAT(done.out, HasSubstr("BS multiplies with a factor of all channels"));
    const auto exact = compile({"--requant", "exact", "--assume", "round,nrdma", "--json"});
    EXPECT_EQ(exact.exit_code, 0) << exact.err;
    EXPECT_THAT(exact.out, HasSubstr("\"estimated_cycles\""));
    EXPECT_THAT(exact.out, HasSubstr("\"fused_sums\": 0"));
    EXPECT_EQ(compile({"--fuse", "add"}).exit_code, 0);
    EXPECT_EQ(compile({"--fuse", "mul"}).exit_code, 2);
}

TEST_F(NpuVerbs, CompiledModelsRunOnTheSimulatedCore) {
    ASSERT_EQ(compile().exit_code, 0);
    const Array image{ElementType::uint8, {1, 9, 11, 3}, std::vector(9 * 11 * 3, std::byte{130})};
    const std::string input = folder.file("in.npy");
    ASSERT_TRUE(write_file(input, write_npy(image).value()));
    const auto run =
        reef({"run", compiled, "--device", "rk3588:sim", "--require-npu", "--input", input});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const auto elsewhere = reef({"run", compiled, "--device", "cpu", "--input", input});
    EXPECT_EQ(elsewhere.exit_code, 1);
    EXPECT_THAT(elsewhere.err, HasSubstr("rk3588:sim"));
}

TEST_F(NpuVerbs, CheckSaysAVerdictForEachOperator) {
    const auto check = reef({"check", plain, "--target", "rk3588"});
    EXPECT_EQ(check.exit_code, 0) << check.err;
    EXPECT_THAT(check.out, HasSubstr("2 of 2"));
}

TEST_F(NpuVerbs, TracesHaveALaneForEachPartOfTheCore) {
    ASSERT_EQ(compile().exit_code, 0);
    const std::string trace = folder.file("trace.json");
    const auto bench = reef({"bench", compiled, "--device", "rk3588:sim", "--runs", "2", "--warmup",
                             "0", "--trace", trace});
    EXPECT_EQ(bench.exit_code, 0) << bench.err;
    EXPECT_THAT(bench.out, HasSubstr("an estimate from stated assumptions"));
    EXPECT_THAT(bench.out, HasSubstr("of one core"));
    const auto events = nlohmann::json::parse(as_text(read_file(trace)->view()));
    const std::string text = events.dump();
    for (const char* lane : {"core 0 fetch", "core 0 array", "core 0 DPU and PPU"})
        EXPECT_THAT(text, HasSubstr(lane));
    EXPECT_THAT(text, HasSubstr("DEPTHWISE_CONV_2D"));
}

/// A probe of a device finds which way each switch of the simulator stands there.
TEST_F(NpuVerbs, ProbesFindEachSwitchBothWays) {
    const std::string answers = folder.file("answers.json");
    constexpr const char *halves = "halves without CVT_ROUND", *marked = "halves with CVT_ROUND",
                         *groups = "operands by channel of depthwise convolutions",
                         *lanes = "lanes of the weights of 24 channels",
                         *padding =
                             "which byte of PAD_VALUE pads odd channels of direct convolutions",
                         *averages = "how the PPU rounds averages", *tables = "functions by table",
                         *sums = "sums of a convolution by table",
                         *between = "how a function rounds between two entries of its table",
                         *planes =
                             "the plane behind results of 16 channels, of which the arrays "
                             "make 32",
                         *chain = "tasks of an operator, started as a chain";
    const struct {
        const char *device, *question, *answer;
        int exit_code;
    } cases[] = {
        {"rk3588:sim", halves, "to even", 0},
        {"rk3588:sim", marked, "away from zero", 0},
        {"rk3588:sim", groups, "groups of 64 bytes", 0},
        {"rk3588:sim", lanes, "32", 0},
        {"rk3588:sim", padding, "the first", 0},
        {"rk3588:sim", averages, "halves to even", 0},
        {"rk3588:sim", tables, "as simulated", 0},
        {"rk3588:sim", between, "to the nearest", 0},
        {"rk3588:sim", sums, "as simulated", 0},
        {"rk3588:sim", planes, "left alone", 0},
        {"rk3588:sim?planes=all", planes, "written", 1},
        {"rk3588:sim?interpolation=down", sums, "as simulated", 1},
        {"rk3588:sim?interpolation=down", tables, "as simulated", 1},
        {"rk3588:sim?interpolation=down", between, "down", 1},
        {"rk3588:sim?output_rounding=even", marked, "to even", 1},
        {"rk3588:sim?output_rounding=away", halves, "away from zero", 1},
        {"rk3588:sim?depthwise_operands=48", groups, "groups of 48 bytes", 1},
        {"rk3588:sim?weight_lanes=real", lanes, "as many as there are channels", 1},
        {"rk3588:sim?direct_padding=second", padding, "the second", 1},
        {"rk3588:sim?average_rounding=down", averages, "down", 1},
        {"rk3588:rknpu?kernel=simulated", chain, "as simulated", 0},
        {"rk3588:rknpu?kernel=simulated&start=task", chain, "as simulated", 0},
        {"rk3588:rknpu?kernel=simulated", marked, "away from zero", 0},
    };
    for (const auto& each : cases) {
        const auto probe = reef({"doctor", "--device", each.device, "--probe", answers, "--json"});
        EXPECT_EQ(probe.exit_code, each.exit_code) << each.device << probe.err;
        const auto document = nlohmann::json::parse(probe.out);
        std::size_t found = 0;
        for (const auto& one : document.at("answers")) {
            // Where planes are written behind results, programs have no room for them.
            if (each.question != planes || each.exit_code == 0) {
                EXPECT_THAT(one.at("answer").get<std::string>(), Not(HasSubstr("otherwise")))
                    << each.device << " " << one.at("question");
            }
            if (one.at("question") != each.question) continue;
            EXPECT_EQ(one.at("answer"), each.answer) << each.device;
            ++found;
        }
        EXPECT_EQ(found, 1U) << each.question;
        EXPECT_EQ(nlohmann::json::parse(as_text(read_file(answers)->view())), document);
    }
}

/// What a driver is asked and answers, as a file; the same program on a device that answers so.
/// Where the recorded bytes lie that calls give in their structs, and that they send with memory:
/// the last byte of each.
struct CallPlaces {
    std::vector<std::size_t> given, sent;
};

CallPlaces places_of_calls(const std::string& recording) {
    const auto text = read_file(recording).value();
    std::istringstream lines(
        std::string(reinterpret_cast<const char*>(text.view().data()), text.view().size()));
    CallPlaces out;
    std::string line;
    std::getline(lines, line);
    for (std::size_t at = 0; std::getline(lines, line);) {
        std::string request;
        int result = 0;
        std::size_t given = 0, got = 0, sent = 0, received = 0;
        std::istringstream(line) >> request >> result >> given >> got >> sent >> received;
        if (given > 0) out.given.push_back(at + given - 1);
        if (sent > 0) out.sent.push_back(at + given + got + sent - 1);
        at += given + got + sent + received;
    }
    return out;
}

TEST_F(NpuVerbs, CallsOfADriverAreRecordedAndReplayed) {
    const std::string larger = folder.file("larger.tflite"), other = folder.file("other.tflite");
    ASSERT_TRUE(write_file(larger, model::write_tflite(test::two_convolutions(6).value()).value()));
    ASSERT_EQ(
        reef({"compile", larger, "--target", "rk3588", "--cores", "3", "-o", compiled}).exit_code,
        0);
    ASSERT_EQ(reef({"compile", larger, "--target", "rk3588", "-o", other}).exit_code, 0);
    for (const char* device :
         {"rk3588:rknpu?kernel=simulated", "rk3588:rknpu?kernel=simulated&start=chain",
          "rk3588:rocket?kernel=simulated"}) {
        const std::string recording = folder.file("calls");
        const auto recorded = reef({"record", compiled, "--device", device, "-o", recording});
        EXPECT_EQ(recorded.exit_code, 0) << recorded.err;
        const auto shown = reef({"replay", recording, "--chip", "rk3588"});
        EXPECT_EQ(shown.exit_code, 0) << shown.err;
        EXPECT_THAT(shown.out, HasSubstr("SUBMIT"));
        const auto replayed = reef({"replay", recording, compiled});
        EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
        const auto differs = reef({"replay", recording, other});
        EXPECT_EQ(differs.exit_code, 1);
        EXPECT_THAT(differs.err, HasSubstr("recorded was"));
        EXPECT_EQ(reef({"replay", recording, "--chip", "rk3588", "--against", recording}).exit_code,
                  0);
        EXPECT_EQ(reef({"replay", recording, "--chip", "rk3588", "--registers"}).exit_code, 0);
        // Bytes that the driver is given, in structs and in memory, are compared.
        const auto held = read_file(recording + ".bin").value();
        std::vector<std::byte> changed;
        const auto places = places_of_calls(recording);
        ASSERT_FALSE(places.given.empty());
        ASSERT_FALSE(places.sent.empty());
        for (const std::size_t place : {places.given.back(), places.sent.front(),
                                        places.sent[places.sent.size() / 2], places.sent.back()}) {
            changed.assign(held.view().begin(), held.view().end());
            changed.at(place) ^= std::byte{1};
            ASSERT_TRUE(write_file(recording + ".bin", changed));
            EXPECT_EQ(reef({"replay", recording, "--chip", "rk3588"}).exit_code, 0);
            const auto other_bytes = reef({"replay", recording, compiled});
            EXPECT_EQ(other_bytes.exit_code, 1) << device << ", byte " << place;
            EXPECT_THAT(other_bytes.err, HasSubstr("recorded was"));
        }
        changed.pop_back();
        ASSERT_TRUE(write_file(recording + ".bin", changed));
        EXPECT_EQ(reef({"replay", recording, compiled}).exit_code, 1);
    }
    const auto none = reef({"record", compiled, "--device", "rk3588:sim", "-o", folder.file("no")});
    EXPECT_EQ(none.exit_code, 2);
    EXPECT_THAT(none.err, HasSubstr("kernel=simulated"));
}

TEST_F(NpuVerbs, ProgramsForTheSramSayWhatItSaves) {
    const auto made = compile({"--sram", "64", "--json"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const auto program = nlohmann::json::parse(made.out).at("programs").at(0);
    EXPECT_GT(program.at("sram_bytes"), 0);
    EXPECT_GT(program.at("bytes_moved_in_sram"), 0);
    EXPECT_LT(program.at("bytes_moved_in_sram"), program.at("bytes_moved"));
    const auto seen = reef({"inspect", compiled, "--json"});
    const auto inspected = nlohmann::json::parse(seen.out).at("rk3588").at("programs").at(0);
    EXPECT_EQ(inspected.at("bytes_moved_in_sram"), program.at("bytes_moved_in_sram"));
    const std::string recording = folder.file("calls");
    const std::string device = "rk3588:rknpu?kernel=simulated&sram=on";
    ASSERT_EQ(reef({"record", compiled, "--device", device, "-o", recording}).exit_code, 0);
    EXPECT_EQ(reef({"replay", recording, compiled}).exit_code, 0);
    EXPECT_EQ(reef({"bench", compiled, "--device", device, "--runs", "1"}).exit_code, 0);
    EXPECT_EQ(compile({"--sram", "57"}).exit_code, 2);
    // The probe's programs are compiled without.
    EXPECT_EQ(reef({"doctor", "--device", device, "--probe", folder.file("probe")}).exit_code, 0);
}

TEST_F(NpuVerbs, ProbesOfAbsentBoardsEndAsMissing) {
    const std::string answers = folder.file("answers.json");
    const auto absent = reef({"doctor", "--device", "rk3588:rocket:/dev/none", "--probe", answers});
    EXPECT_EQ(absent.exit_code, 3);
    EXPECT_THAT(absent.err, HasSubstr("/dev/none"));
    EXPECT_FALSE(read_file(answers));
    EXPECT_EQ(reef({"doctor", "--device", "cpu", "--probe", answers}).exit_code, 2);
    EXPECT_EQ(reef({"doctor", "--device", "rk3588:sim"}).exit_code, 2);
}

TEST_F(NpuVerbs, OptionsOfOtherCompilersAreRefused) {
    const auto wrong =
        reef({"compile", plain, "--target", "edgetpu", "--requant", "exact", "-o", compiled});
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.err, HasSubstr("has no option --requant"));
    EXPECT_EQ(compile({"--requant", "twice"}).exit_code, 2);
    EXPECT_EQ(compile({"--stream-parameters"}).exit_code, 2);
    ASSERT_EQ(compile().exit_code, 0);
    for (const char* target : {"rk3588", "edgetpu"}) {
        const auto again = reef({"compile", compiled, "--target", target});
        EXPECT_EQ(again.exit_code, 1);
        EXPECT_THAT(again.err, HasSubstr("reef-rk3588: the model is compiled already"));
    }
    EXPECT_EQ(compile({"--assume", "planes", "--cores", "2"}).exit_code, 2);
}

}  // namespace
}  // namespace reef

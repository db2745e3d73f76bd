// The reef command as one of the programs that know nothing of simulated sticks.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "abi/libusb/simulated_libusb.h"
#include "reef/base/file.h"
#include "support/process.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace reef::abi::libusb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Verbs : public ::testing::Test {
  protected:
    static test::ProcessResult reef(std::vector<std::string> arguments,
                                    const std::vector<std::string>& variables) {
        arguments.insert(arguments.begin(), REEF_COMMAND);
        auto environment = preloaded();
        environment.insert(environment.end(), variables.begin(), variables.end());
        return test::run_process(arguments, {.environment = environment});
    }
    static std::string compiled(const std::string& name) {
        return (test::shared_folder().value() / "data/edgetpu/templates" /
                (name + "_edgetpu.tflite"))
            .string();
    }
    static std::string dense() { return compiled("dense_256"); }
    [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

    struct RunResult {
        nlohmann::json answer;
        std::vector<std::byte> output;  ///< the first one's file
    };
    /// Two inferences of a compiled model, with `reef run`, which says `said` on standard error.
    RunResult run(const std::string& model, const std::string& input, const std::string& device,
                  const std::vector<std::string>& variables,
                  const std::vector<std::string>& more = {},
                  const ::testing::Matcher<std::string>& said = "") {
        const auto folder = file("out");
        std::filesystem::remove_all(folder);
        std::vector<std::string> arguments = {"run",      compiled(model), "--input", input,
                                              "--device", device,          "--runs",  "2",
                                              "--json",   "--out",         folder};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const auto result = reef(arguments, variables);
        EXPECT_EQ(result.exit_code, 0) << result.err;
        EXPECT_THAT(result.err, said);
        const auto bytes = read_file(folder + "/out0.npy");
        if (result.exit_code != 0 || !bytes) return {};
        return {nlohmann::json::parse(result.out), {bytes->view().begin(), bytes->view().end()}};
    }
    /// Of what `reef list --json` printed, in its order.
    static std::vector<nlohmann::json> sticks_of(const std::string& list) {
        std::vector<nlohmann::json> sticks;
        const auto document = nlohmann::json::parse(list);
        for (const auto& device : document["devices"])
            if (std::string(device["device"]).starts_with("edgetpu:usb:")) sticks.push_back(device);
        return sticks;
    }
    /// Bytes of that shape, none like its neighbours.
    [[nodiscard]] std::string input(const std::string& shape, std::size_t size) const {
        std::vector<std::byte> bytes(size);
        for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(37 * i + i / 251);
        EXPECT_TRUE(write_file(file("input.raw"), bytes));
        return fmt::format("{}xu8=@{}", shape, file("input.raw"));
    }

  private:
    test::TemporaryFolder folder_;
};

TEST_F(Verbs, ListShowsTheSticks) {
    const auto result = reef(
        {"list", "--json"},
        {"REEF_USB_PORTS=2-1,1-4.2", "REEF_USB_STATE=ready,boot", "REEF_USB_SPEED=super,high"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const auto devices = nlohmann::json::parse(result.out)["devices"];
    std::vector<std::string> names;
    for (const auto& device : devices) names.push_back(device["device"]);
    EXPECT_THAT(names, ::testing::IsSupersetOf({"cpu", "edgetpu:sim"}));
    const auto sticks = sticks_of(result.out);
    ASSERT_EQ(sticks.size(), 2U) << result.out;
    EXPECT_EQ(sticks[0]["device"], "edgetpu:usb:1-4.2");
    EXPECT_EQ(sticks[0]["state"], "boot loader, no firmware yet, simulated");
    EXPECT_EQ(sticks[1]["device"], "edgetpu:usb:2-1");
    EXPECT_EQ(sticks[1]["state"], "firmware runs, simulated");
}

TEST_F(Verbs, DoctorFindsTheStick) {
    const auto result = reef({"doctor"}, {"REEF_USB_STATE=ready", "REEF_USB_SPEED=high"});
    EXPECT_THAT(result.out, HasSubstr("18d1:9302, firmware runs, simulated"));
    EXPECT_THAT(result.out, HasSubstr("no hardware: libreef-usb stands in for libusb"));
    EXPECT_THAT(result.out, Not(HasSubstr("permission")));
    EXPECT_THAT(result.out, HasSubstr("USB 2 (480 Mbit/s)"));
    const auto none = reef({"doctor"}, {"REEF_USB_STICKS=0"});
    EXPECT_THAT(none.out, Not(HasSubstr("firmware runs")));
}

TEST_F(Verbs, DoctorsJsonHoldsTheStick) {
    const auto result = reef({"doctor", "--json"}, {"REEF_USB_STATE=boot"});
    const auto document = nlohmann::json::parse(result.out);
    EXPECT_EQ(document["schema_version"], 1);
    std::map<std::string, std::string> said;
    for (const auto& check : document["checks"]) said[check["name"]] = check["what"];
    EXPECT_EQ(said["sticks"], "1 found");
    EXPECT_THAT(said["stick 2-1: state"], HasSubstr("1a6e:089a, boot loader"));
    EXPECT_EQ(said["stick 2-1: speed"], "USB 3 (5 Gbit/s)");
}

TEST_F(Verbs, AUsbThatDoesNotStartIsAFinding) {
    const auto result = reef({"doctor"}, {"REEF_USB_STICKS=99"});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    for (const char* check : {"libusb", "container", "udev rule", "firmware"}) {
        EXPECT_THAT(result.out, HasSubstr(check));
    }
    EXPECT_THAT(result.out, HasSubstr("libusb does not start"));
    const auto list = reef({"list", "--json"}, {"REEF_USB_STICKS=99"});
    EXPECT_EQ(list.exit_code, 3) << list.err;
    EXPECT_THAT(list.err, HasSubstr("USB cannot be read: libusb does not start"));
    const auto document = nlohmann::json::parse(list.out);
    EXPECT_THAT(std::string(document["usb_error"]), HasSubstr("libusb does not start"));
    EXPECT_GE(document["devices"].size(), 2U);
    EXPECT_TRUE(sticks_of(list.out).empty());
}

TEST_F(Verbs, ARunOnAStickGivesTheSimulatorsOutputs) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    struct Model {
        const char* name;
        const char* shape;
        std::size_t bytes;
    };
    for (const Model& model : {Model{"dense_256", "1x256", 256},
                               {"gabor_64x64_7k_4o_2s", "1x64x64x1", 4096},
                               {"looming_64x64_3x3", "1x64x64x1", 4096}}) {
        const auto data = input(model.shape, model.bytes);
        const auto simulated = run(model.name, data, "edgetpu:sim", {"REEF_USB_STICKS=0"});
        const auto stick = run(model.name, data, "edgetpu:usb", {"REEF_USB_STATE=ready"});
        ASSERT_FALSE(stick.output.empty()) << model.name;
        EXPECT_EQ(stick.output, simulated.output) << model.name;
        EXPECT_EQ(stick.answer["outputs"], simulated.answer["outputs"]) << model.name;
        EXPECT_EQ(stick.answer["chip"], simulated.answer["chip"]) << model.name;
        const auto& placement = stick.answer["placements"][0];
        EXPECT_EQ(placement["device"], "edgetpu:usb") << model.name;
        EXPECT_EQ(placement["kernel"], "compiled program") << model.name;
    }
}

TEST_F(Verbs, ARunBootsTheStickAtItsPort) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    ASSERT_TRUE(write_file(file("firmware"), std::vector<std::byte>(5000)));
    const auto data = input("1x256", 256);
    const auto simulated = run("dense_256", data, "edgetpu:sim", {"REEF_USB_STICKS=0"});
    for (const char* speed : {"REEF_USB_SPEED=super", "REEF_USB_SPEED=high"}) {
        const auto stick =
            run("dense_256", data, "edgetpu:usb:1-4.2",
                {"REEF_USB_PORTS=2-1,1-4.2", "REEF_USB_STATE=ready,boot", speed},
                {"--firmware", file("firmware")}, HasSubstr("not a firmware that Reef knows"));
        ASSERT_FALSE(stick.output.empty()) << speed;
        EXPECT_EQ(stick.output, simulated.output) << speed;
    }
}

TEST_F(Verbs, AStickWithoutFirmwareNamesWhatHelps) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    ASSERT_TRUE(write_file(file("empty"), std::vector<std::byte>()));
    const auto result = reef({"run", dense(), "--input", input("1x256", 256), "--device",
                              "edgetpu:usb", "--firmware", file("empty")},
                             {"REEF_USB_STATE=boot"});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("REEF_USB_STATE=ready"));
}

// The stick is plugged into a process of its own: what one program does to it, the next one finds.
TEST_F(Verbs, ProcessesShareSticks) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    ASSERT_TRUE(write_file(file("firmware"), std::vector<std::byte>(5000)));
    const auto data = input("1x256", 256);
    const auto simulated = run("dense_256", data, "edgetpu:sim", {"REEF_USB_STICKS=0"});
    const std::vector<std::string> variables = {"REEF_USB_SHARED=" + file("sticks"),
                                                "REEF_USB_STICKS=2"};
    const auto stick = run("dense_256", data, "edgetpu:usb:2-2", variables,
                           {"--firmware", file("firmware")}, HasSubstr("not a firmware"));
    EXPECT_EQ(stick.output, simulated.output);
    // Of the sticks that are there: its own settings do not matter.
    const auto list = reef({"list", "--json"}, {variables[0], "REEF_USB_STICKS=1"});
    const auto sticks = sticks_of(list.out);
    ASSERT_EQ(sticks.size(), 2U) << list.out;
    EXPECT_EQ(sticks[0]["state"], "boot loader, no firmware yet, simulated");
    EXPECT_EQ(sticks[1]["state"], "firmware runs, simulated");
    // Both at once.
    std::vector<std::thread> threads;
    std::vector<test::ProcessResult> results(2);
    for (std::size_t i = 0; i < 2; ++i) {
        threads.emplace_back([&, i] {
            results[i] = reef({"run", dense(), "--input", data, "--device",
                               i == 0 ? "edgetpu:usb:2-1" : "edgetpu:usb:2-2", "--runs", "50",
                               "--firmware", file("firmware"), "--json"},
                              variables);
        });
    }
    for (auto& thread : threads) thread.join();
    for (const auto& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto wrong = reef({"list"}, {"REEF_USB_SHARED=relative"});
    EXPECT_EQ(wrong.exit_code, 3);
    EXPECT_THAT(wrong.err, HasSubstr("REEF_USB_SHARED relative: not an absolute path"));
}

// As in the reference's recordings of the vendor's driver.
TEST_F(Verbs, ARecordedResetThatBootsTheStickIsNoFault) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    ASSERT_TRUE(write_file(file("firmware"), std::vector<std::byte>(5000)));
    const auto result = reef({"record", dense(), "--device", "edgetpu:usb", "--firmware",
                              file("firmware"), "--out", file("a.log")},
                             {"REEF_USB_STATE=boot"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto text = read_file(file("a.log"));
    ASSERT_TRUE(text);
    const std::string lines(as_text(text->view()));
    EXPECT_THAT(lines, HasSubstr(" RESET\n"));
    EXPECT_THAT(lines, Not(HasSubstr("fault=")));
    const auto replayed = reef({"replay", file("a.log"), dense(), "--firmware", file("firmware")},
                               {"REEF_USB_STICKS=0"});
    EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
}

TEST_F(Verbs, ARunWithoutItsStickSaysSo) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    const auto data = input("1x256", 256);
    const auto none = reef({"run", dense(), "--input", data, "--device", "edgetpu:usb:3-9"},
                           {"REEF_USB_STATE=ready"});
    EXPECT_EQ(none.exit_code, 3) << none.err;
    EXPECT_THAT(none.err, HasSubstr("no Edge TPU at USB port 3-9"));
    const auto gone = reef({"run", dense(), "--input", data, "--device", "edgetpu:usb"},
                           {"REEF_USB_STATE=ready", "REEF_USB_FAULTS=unplug@90"});
    EXPECT_EQ(gone.exit_code, 3) << gone.err;
    EXPECT_THAT(gone.err, HasSubstr("2-1"));
}

// What the core does up to that word is the same, however fast the engines are beside it.
TEST_F(Verbs, AProgramOnAStickIsDebuggedAsOnTheSimulator) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    const auto data = input("1x256", 256);
    ASSERT_TRUE(write_file(file("script"), as_bytes("break 0xc1\ncontinue\nregisters\n"
                                                    "predicates\ndelete 1\ncontinue\n")));
    std::vector<nlohmann::json> shown[2];
    std::vector<std::byte> output[2];
    const char* const devices[] = {"edgetpu:sim", "edgetpu:usb"};
    for (std::size_t i = 0; i < 2; ++i) {
        const auto out = file(std::to_string(i));
        const auto result = reef({"debug", dense(), "--device", devices[i], "--input", data,
                                  "--script", file("script"), "--json", "--out", out},
                                 {"REEF_USB_STATE=ready"});
        ASSERT_EQ(result.exit_code, 0) << result.err;
        std::istringstream lines(result.out);
        for (std::string line; std::getline(lines, line);)
            shown[i].push_back(nlohmann::json::parse(line));
        const auto bytes = read_file(out + "/out0.npy");
        ASSERT_TRUE(bytes);
        output[i].assign(bytes->view().begin(), bytes->view().end());
    }
    ASSERT_EQ(shown[1].size(), 6U);
    EXPECT_EQ(shown[1][1]["stop"]["reason"], "breakpoint") << shown[1][1];
    EXPECT_EQ(shown[1][5]["stop"]["reason"], "ended") << shown[1][5];
    for (const char* key : {"at", "program_counter", "instruction", "registers", "predicates"})
        EXPECT_EQ(shown[1][2]["core"][key], shown[0][2]["core"][key]) << key;
    EXPECT_EQ(shown[1][2]["core"]["program_counter"], 0xc1);
    EXPECT_EQ(output[1], output[0]);
    EXPECT_EQ(output[0], run("dense_256", data, "edgetpu:sim", {}).output);
}

TEST_F(Verbs, TheRecordingOfTheLibraryIsTheCommandsRecording) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    const auto above = file("above.log"), below = file("below.log"), firmware = file("firmware");
    ASSERT_TRUE(write_file(firmware, std::vector<std::byte>(5000)));
    const std::vector<std::string> stick = {"REEF_USB_CORE=null", "REEF_USB_MODELS=" + dense(),
                                            "REEF_USB_RECORD=" + below};
    const auto result = reef({"record", dense(), "--out", above, "--firmware", firmware}, stick);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto compared = reef({"replay", above, "--against", below}, {});
    // All but the instructions, whose addresses the library cannot know.
    EXPECT_THAT(compared.out, Not(HasSubstr("+ ctrl")));
    EXPECT_THAT(compared.out, Not(HasSubstr("+ out tag 1 ")));
    EXPECT_THAT(compared.out, Not(HasSubstr("+ out tag 2 ")));
    EXPECT_THAT(compared.out, Not(HasSubstr("+ in ")));
    EXPECT_THAT(compared.out, HasSubstr("+ out tag 0 "));
}

TEST_F(Verbs, AStartThatStallsIsTriedAgain) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    for (const char* fault : {"stall@20", "short_read@20", "unplug@20+100"}) {
        ASSERT_TRUE(write_file(file("firmware"), std::vector<std::byte>(5000)));
        const auto result =
            reef({"record", dense(), "--out", file("a.log"), "--firmware", file("firmware")},
                 {"REEF_USB_CORE=null", "REEF_USB_MODELS=" + dense(), "REEF_USB_STATE=ready",
                  std::string("REEF_USB_FAULTS=") + fault});
        EXPECT_EQ(result.exit_code, 0) << fault << result.err;
    }
}

TEST_F(Verbs, ASessionThatFailedIsReplayedToItsError) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    const auto log = file("st.log");
    for (const char* fault : {"stall@100", "long_read@90", "unplug@60", "short_read@85"}) {
        const auto result = reef({"record", dense(), "--out", log},
                                 {"REEF_USB_CORE=null", "REEF_USB_MODELS=" + dense(),
                                  "REEF_USB_STATE=ready", std::string("REEF_USB_FAULTS=") + fault});
        EXPECT_NE(result.exit_code, 0) << fault;
        const std::size_t said = result.err.find(": run: ");
        ASSERT_NE(said, result.err.npos) << fault << result.err;
        const auto replayed = reef({"replay", log, dense()}, {});
        EXPECT_EQ(replayed.exit_code, result.exit_code) << replayed.err;
        EXPECT_THAT(replayed.err, HasSubstr(result.err.substr(said))) << fault;
    }
}

TEST_F(Verbs, AStickThatLeavesIsAnErrorThatNamesIt) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    const auto log = file("traffic.log"), firmware = file("firmware");
    ASSERT_TRUE(write_file(firmware, std::vector<std::byte>(5000)));
    const auto result = reef({"record", dense(), "--out", log, "--firmware", firmware},
                             {"REEF_USB_CORE=null", "REEF_USB_MODELS=" + dense(),
                              "REEF_USB_STATE=ready", "REEF_USB_FAULTS=unplug@90"});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_THAT(result.err, HasSubstr("2-1"));
    // What led to it is what a bug report needs.
    EXPECT_THAT(result.err, HasSubstr("up to the failure: " + log));
    EXPECT_THAT(reef({"replay", log}, {}).out, HasSubstr("open 18d1:9302"));
}

}  // namespace
}  // namespace reef::abi::libusb

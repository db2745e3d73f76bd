// reef list, doctor, record and replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "reef/base/file.h"
#include "support/shared_data.h"

namespace reef::tool {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class UsbVerbsTest : public CommandTest {
  protected:
    static const std::string& dense() {
        static const std::string path = (reef::test::shared_folder().value() /
                                         "data/edgetpu/templates/dense_256_edgetpu.tflite")
                                            .string();
        return path;
    }
};

TEST_F(UsbVerbsTest, ListNamesWhatIsAlwaysThere) {
    const auto result = reef_command({"list", "--json"});
    ASSERT_EQ(result.exit_code, 0);
    const auto document = nlohmann::json::parse(result.out);
    EXPECT_EQ(document["schema_version"], 1);
    EXPECT_EQ(document["devices"][0]["device"], "cpu");
    EXPECT_EQ(document["devices"][1]["device"], "edgetpu:sim");
    EXPECT_EQ(document["devices"][1]["state"], "ready");
}

TEST_F(UsbVerbsTest, TheInstalledRuleIsTheOneThatDoctorPrints) {
    std::ifstream file(REEF_UDEV_RULE);
    const std::string installed{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(expect_ok({"doctor", "--udev-rule"}), installed);
}

TEST_F(UsbVerbsTest, RecordAndReplayAgree) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    const auto log = file("a.log"), other = file("b.log");
    expect_ok({"record", dense(), "--device", "edgetpu:null", "--out", log, "--seed", "3"});
    const auto text = expect_ok({"replay", log});
    EXPECT_THAT(text, HasSubstr("open 18d1:9302\n"));
    EXPECT_THAT(text, HasSubstr("out tag 2 len 67584 sha256 "));
    EXPECT_THAT(expect_ok({"replay", log, dense(), "--seed", "3"}), HasSubstr("what was recorded"));
    expect_error({"replay", log, dense(), "--seed", "4"}, 1, "recorded: BULK OUT ep=01");

    expect_ok({"record", dense(), "--device", "edgetpu:null", "--out", other, "--seed", "3",
               "--standard-clock"});
    const auto result = reef_command({"replay", log, "--against", other});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, HasSubstr("2 of 109 items differ"));
    EXPECT_THAT(result.out, HasSubstr("+ ctrl 40 01 a318 0001 4 5c028550"));
}

// With operators on the CPU, and one whose chip asks for transfers that no hint names.
TEST_F(UsbVerbsTest, TheSimulatedStickIsRecorded) {
    REEF_SHARED_OR_SKIP(folder);
    for (const char* name :
         {"posenet_mobilenet_v1_075_353_481_16_quant_decoder", "keras_lstm_mnist_ptq"}) {
        const std::string model = (folder / "data/models" / name).string() + "_edgetpu.tflite";
        expect_ok(
            {"record", model, "--device", "edgetpu:sim", "--out", file("a.log"), "--runs", "1"});
        EXPECT_THAT(expect_ok({"replay", file("a.log"), model, "--runs", "1"}),
                    HasSubstr("what was recorded"))
            << name;
    }
    expect_ok({"record", dense(), "--device", "edgetpu:sim", "--out", file("a.log")});
    EXPECT_THAT(expect_ok({"replay", file("a.log"), "--registers"}),
                HasSubstr("91 the same in order, direction, address and width, 91 of them"));
}

TEST_F(UsbVerbsTest, ACaptureIsReplayed) {
    REEF_SHARED_OR_SKIP(folder);
    const std::string capture =
        (folder / "data/edgetpu/real_sticks/mobilenet_v1_1.0_224.usbmon.txt").string();
    EXPECT_THAT(expect_ok({"replay", capture, "--registers"}),
                HasSubstr("91 register transfers, 91 by the driver: 91 the same in order, "
                          "direction, address and width, 91 of them in value"));
    const auto json =
        nlohmann::json::parse(expect_ok({"replay", capture, "--registers", "--json"}));
    EXPECT_EQ(json["register_transfers"]["same_values"], 91);
    EXPECT_THAT(expect_ok({"replay", capture}),
                HasSubstr("out ep 01 len 6832 begins 800f00a4060000000000000000000000"));
    const auto throttled = reef_command({"replay", capture, "--registers", "--standard-clock"});
    EXPECT_EQ(throttled.exit_code, 1);
    EXPECT_THAT(throttled.err, HasSubstr("recorded: CTRL OUT bmRequestType=40"));
}

TEST_F(UsbVerbsTest, ReplaysAnswersAreJsonToo) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    const auto log = file("a.log"), other = file("b.log");
    expect_ok({"record", dense(), "--device", "edgetpu:null", "--out", log});
    expect_ok({"record", dense(), "--device", "edgetpu:null", "--out", other, "--standard-clock"});
    const auto good = nlohmann::json::parse(expect_ok({"replay", log, dense(), "--json"}));
    EXPECT_EQ(good["schema_version"], 1);
    EXPECT_EQ(good["as_recorded"], true);
    EXPECT_TRUE(good["error"].is_null());
    const auto bad = reef_command({"replay", log, dense(), "--seed", "4", "--json"});
    EXPECT_EQ(bad.exit_code, 1);
    const auto differs = nlohmann::json::parse(bad.out);
    EXPECT_EQ(differs["as_recorded"], false);
    EXPECT_THAT(std::string(differs["error"]), HasSubstr("recorded: BULK OUT ep=01"));

    const auto same = nlohmann::json::parse(expect_ok({"replay", log, "--against", log, "--json"}));
    EXPECT_EQ(same["compared"], 109);
    EXPECT_TRUE(same["differences"].empty());
    const auto clocks = reef_command({"replay", log, "--against", other, "--json"});
    EXPECT_EQ(clocks.exit_code, 1);
    const auto found = nlohmann::json::parse(clocks.out)["differences"];
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0]["against"], "ctrl 40 01 a318 0001 4 5c028550");
}

TEST_F(UsbVerbsTest, ARecordingIsFilesAndNoStream) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    expect_error({"record", dense(), "--device", "edgetpu:null", "--out", "-"}, 2,
                 "'-' is no recording: one is two files");
    expect_error({"replay", "-"}, 2, "'-' is no recording");
    expect_error({"replay", two_input_model}, 1, "neither a recording nor a capture");
    expect_error({"replay", write("list.txt", " 1317  12.6  host  USB 72 URB_BULK out\n")}, 1,
                 "neither a recording nor a capture");
    expect_error({"replay", file("a.log"), "--against", "-"}, 2, "'-' is no recording");
}

/// What is wrong names the file, and where it may come from, with a model and without.
TEST_F(UsbVerbsTest, ADamagedRecordingIsNamed) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    const auto log = file("a.log");
    expect_ok({"record", dense(), "--device", "edgetpu:null", "--out", log});
    const auto items = read_file(log).value(), payloads = read_file(log + ".bin").value();
    const auto damaged = [&](const std::string& name, std::size_t text, std::size_t bytes) {
        write(name + ".bin", payloads.view().first(bytes));
        return write(name, items.view().first(text));
    };
    const auto inside_a_line = as_text(items.view()).find("BULK OUT", items.size() / 2) + 6;
    const auto cut_items = damaged("text.log", inside_a_line, payloads.size());
    const auto cut_payloads = damaged("bytes.log", items.size(), payloads.size() / 2);
    for (const auto& cut : {cut_items, cut_payloads}) {
        expect_error({"replay", cut, dense()}, 1, cut + ": line ");
        expect_error({"replay", cut, dense()}, 1, "are not as one recording wrote them");
        expect_error({"replay", cut}, 1, cut + ": line ");
        expect_error({"replay", log, "--against", cut}, 1, cut + ": line ");
    }
}

TEST_F(UsbVerbsTest, WhatCannotBeRecordedIsRefused) {
    expect_error({"record", picture_model, "--out", file("x.log")}, 1,
                 "not compiled for the Edge TPU");
    expect_error({"replay", file("none.log")}, 1, "none.log");
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    expect_error({"record", dense(), "--device", "cpu", "--out", file("x.log")}, 2,
                 "'cpu' is no device with USB traffic");
}

TEST_F(UsbVerbsTest, ARecordingStaysWhenThereIsNoStick) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    const auto log = write("good.log", std::string_view("000000 OPEN 18d1:9302\n"));
    write("good.log.bin", std::string_view("payload"));
    const std::string nowhere = "edgetpu:usb:250-1";
    for (const auto& out : {log, file("new.log")}) {
        expect_error({"record", dense(), "--device", nowhere, "--out", out}, 3, "no Edge TPU");
    }
    EXPECT_EQ(fs::file_size(log), 22U);
    EXPECT_EQ(fs::file_size(log + ".bin"), 7U);
}

/// Also to verbs that go past the list. libusb does not start where hardly a file may be opened.
TEST_F(UsbVerbsTest, ABusThatCannotBeReadDeniesItsDevices) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    // What the tests' own parent leaves open would count, too.
    const std::string starve =
        "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n 7; exec \"$0\" \"$@\"";
    const auto starved = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"/bin/sh", "-c", starve, REEF_COMMAND});
        return reef::test::run_process(words);
    };
    if (starved({"list"}).exit_code != 3) GTEST_SKIP() << "libusb starts all the same";
    const std::string device = "edgetpu:usb";
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"run", dense(), "--device", device},
          {"bench", dense(), "--device", device},
          {"debug", "--device", device, "--script", "/dev/null"},
          {"record", dense(), "--device", device, "-o", file("a.log")}}) {
        const auto result = starved(words);
        EXPECT_EQ(result.exit_code, 3) << words[0];
        EXPECT_THAT(result.err, HasSubstr("libusb does not start")) << words[0];
    }
}

TEST_F(UsbVerbsTest, DoctorLooksWhereItMayNot) {
    const auto closed = file("home");
    fs::create_directories(closed + "/.local/share/reef");
    fs::permissions(file(""),
                    fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
    fs::permissions(closed, fs::perms::none);
    std::vector<std::string> command = {REEF_COMMAND, "doctor"};
    if (::geteuid() == 0) {
        const std::string nobody = "/usr/bin/setpriv --reuid 65534 --clear-groups";
        std::istringstream words(nobody);
        command.insert(command.begin(), std::istream_iterator<std::string>(words), {});
    }
    const auto result =
        reef::test::run_process(command, {.environment = {"HOME=" + closed, "XDG_DATA_HOME="}});
    fs::permissions(closed, fs::perms::owner_all);
    EXPECT_THAT(result.out, HasSubstr("sticks"));
    EXPECT_THAT(result.out, HasSubstr("apex_latest_single_ep.bin (Permission denied)"));
    EXPECT_EQ(result.err, "");
}

}  // namespace
}  // namespace reef::tool

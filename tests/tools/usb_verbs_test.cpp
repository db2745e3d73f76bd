// reef list, doctor, record and replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "command.h"
#include "edgetpu/usb/small_program.h"
#include "reef/base/file.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "support/shared_data.h"
#include "usb_checks.h"

namespace reef::tool {
namespace {

namespace fs = std::filesystem;
using edgetpu::usb::SimulatedBus;
using edgetpu::usb::Speed;
using edgetpu::usb::StickOptions;
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
    EXPECT_EQ(expect_ok({"doctor", "--udev-rule"}), udev_rule());
    std::ifstream file(REEF_UDEV_RULE);
    const std::string installed{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(installed, udev_rule());
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

TEST_F(UsbVerbsTest, WhatCannotBeRecordedIsRefused) {
    expect_error({"record", picture_model, "--out", file("x.log")}, 1,
                 "not compiled for the Edge TPU");
    expect_error({"replay", file("none.log")}, 1, "none.log");
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    expect_error({"record", dense(), "--device", "cpu", "--out", file("x.log")}, 2,
                 "'cpu' is no device with USB traffic");
}

// -- The checks, on a system made of files --------------------------------------------------------

class UsbChecksTest : public ::testing::Test {
  protected:
    UsbChecksTest() {
        fs::create_directories(root_ / "dev/bus/usb/002");
        fs::create_directories(root_ / "etc/udev/rules.d");
        write("dev/bus/usb/002/001", "");
        write("etc/udev/rules.d/60-reef.rules", udev_rule());
        write("sys/module/usbcore/parameters/usbfs_memory_mb", "16\n");
    }
    void write(const std::string& name, std::string_view text) {
        fs::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text;
    }
    void plug(const std::string& port, Speed speed = Speed::super, bool has_firmware = true) {
        StickOptions stick;
        stick.port = port;
        stick.speed = speed;
        stick.has_firmware = has_firmware;
        bus_.plug(stick, edgetpu::usb::test::small_core());
    }
    Check check(const std::string& name) {
        for (const Check& each : check_usb(bus_, root_)) {
            if (each.name == name) return each;
        }
        ADD_FAILURE() << "no check " << name;
        return {};
    }

    reef::test::TemporaryFolder folder_;
    fs::path root_ = folder_.path();
    SimulatedBus bus_;
};

TEST_F(UsbChecksTest, AWellSetUpStickIsGood) {
    plug("2-1");
    for (const Check& each : check_usb(bus_, root_)) {
        if (each.name == "firmware") continue;  // of this machine
        EXPECT_EQ(each.state, Check::State::good) << each.name << ": " << each.what;
        EXPECT_TRUE(each.fix.empty()) << each.name;
    }
}

TEST_F(UsbChecksTest, WithoutAStickThatIsBad) {
    EXPECT_EQ(check("sticks").state, Check::State::bad);
}

TEST_F(UsbChecksTest, SlowPortsAndHubsAreWarnings) {
    plug("2-1.3.1", Speed::high);
    EXPECT_EQ(check("stick 2-1.3.1: speed").state, Check::State::warning);
    EXPECT_THAT(check("stick 2-1.3.1: hub").what, HasSubstr("behind 2 hubs"));
    plug("2-2", Speed::high, false);
    EXPECT_EQ(check("stick 2-2: speed").state, Check::State::good);
    EXPECT_THAT(check("stick 2-2: state").what, HasSubstr("1a6e:089a, boot loader"));
}

TEST_F(UsbChecksTest, AMissingNodeOrRuleNamesItsFix) {
    plug("3-1");
    EXPECT_THAT(check("stick 3-1: permission").what, HasSubstr("does not exist"));
    fs::remove(root_ / "etc/udev/rules.d/60-reef.rules");
    EXPECT_NE(check("udev rule").state, Check::State::good);
    EXPECT_THAT(check("udev rule").fix, HasSubstr("reef doctor --udev-rule"));
}

TEST_F(UsbChecksTest, TheProgramThatHoldsAStickIsNamed) {
    plug("2-1");
    write("proc/4711/comm", "frigate\n");
    fs::create_directories(root_ / "proc/4711/fd");
    fs::create_symlink("/dev/bus/usb/002/001", root_ / "proc/4711/fd/9");
    EXPECT_THAT(check("stick 2-1: owner").what, HasSubstr("frigate (process 4711)"));
}

TEST_F(UsbChecksTest, AContainerWithoutTheBusIsBad) {
    write(".dockerenv", "");
    EXPECT_EQ(check("container").state, Check::State::warning);
    fs::remove_all(root_ / "dev");
    EXPECT_EQ(check("container").state, Check::State::bad);
    write("sys/module/usbcore/parameters/usbfs_memory_mb", "4\n");
    EXPECT_EQ(check("usbfs memory").state, Check::State::warning);
}

}  // namespace
}  // namespace reef::tool

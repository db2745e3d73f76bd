// reef list, doctor, record and replay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "edgetpu/usb/small_program.h"
#include "reef/base/file.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "support/shared_data.h"
#include "usb/usb_checks.h"

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
    expect_error({"replay", file("a.log"), "--against", "-"}, 2, "'-' is no recording");
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

// -- The checks, on a system made of files --------------------------------------------------------

/// As a user who is not root, while the object lives.
class Unprivileged {
  public:
    Unprivileged() : user_(::geteuid()) {
        if (user_ != 0) return;
        EXPECT_EQ(::seteuid(65534), 0);
    }
    Unprivileged(const Unprivileged&) = delete;
    Unprivileged& operator=(const Unprivileged&) = delete;
    ~Unprivileged() { EXPECT_EQ(::seteuid(user_), 0); }

  private:
    uid_t user_;
};

class UsbChecksTest : public ::testing::Test {
  protected:
    UsbChecksTest() {
        system_.root = folder_.path();
        fs::permissions(system_.root,
                        fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec);
        fs::create_directories(system_.root / "dev/bus/usb/002");
        fs::create_directories(system_.root / "etc/udev/rules.d");
        fs::create_directories(system_.root / "proc");
        write("dev/bus/usb/002/001", "");
        write("etc/udev/rules.d/60-reef.rules", udev_rule());
        write("sys/module/usbcore/parameters/usbfs_memory_mb", "16\n");
    }
    void write(const std::string& name, std::string_view text) {
        fs::create_directories((system_.root / name).parent_path());
        std::ofstream(system_.root / name) << text;
    }
    void plug(const std::string& port, Speed speed = Speed::super, bool has_firmware = true) {
        StickOptions stick;
        stick.port = port;
        stick.speed = speed;
        stick.has_firmware = has_firmware;
        bus_->plug(stick, edgetpu::usb::test::small_core());
    }
    std::vector<Check> checks() { return check_usb(bus_, system_); }
    Check check(const std::string& name) {
        for (const Check& each : checks()) {
            if (each.name == name) return each;
        }
        ADD_FAILURE() << "no check " << name;
        return {};
    }

    reef::test::TemporaryFolder folder_;
    CheckedSystem system_;
    std::shared_ptr<SimulatedBus> bus_ = std::make_shared<SimulatedBus>();
};

TEST_F(UsbChecksTest, AWellSetUpStickIsGood) {
    plug("2-1");
    for (const Check& each : checks()) {
        if (each.name == "firmware") continue;  // of this machine
        EXPECT_EQ(each.state, Check::State::good) << each.name << ": " << each.what;
        EXPECT_TRUE(each.fix.empty()) << each.name;
    }
}

TEST_F(UsbChecksTest, WithoutAStickThatIsBad) {
    EXPECT_EQ(check("sticks").state, Check::State::bad);
}

TEST_F(UsbChecksTest, WhatNeedsNoUsbIsCheckedWithoutIt) {
    const auto all =
        check_usb(fail(Cause::io_failed, "libusb does not start", {}, "pass it on"), system_);
    ASSERT_EQ(all.size(), 5U);
    EXPECT_EQ(all[0].name, "libusb");
    EXPECT_EQ(all[0].state, Check::State::bad);
    EXPECT_EQ(all[0].fix, "pass it on");
    EXPECT_EQ(all[1].name, "container");
    EXPECT_EQ(all[4].name, "firmware");
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
    fs::remove(system_.root / "etc/udev/rules.d/60-reef.rules");
    system_.superuser = false;
    EXPECT_EQ(check("udev rule").state, Check::State::bad);
    EXPECT_THAT(check("udev rule").fix, HasSubstr("reef doctor --udev-rule"));
}

TEST_F(UsbChecksTest, AStickThatMayBeOpenedNeedsNoRule) {
    plug("2-1");
    fs::remove(system_.root / "etc/udev/rules.d/60-reef.rules");
    system_.superuser = false;
    EXPECT_EQ(check("udev rule").state, Check::State::note);
}

TEST_F(UsbChecksTest, WhatMayNotBeOpenedOrReachedIsAFinding) {
    plug("2-1");
    fs::permissions(system_.root / "dev/bus/usb/002/001", fs::perms::owner_read);
    {
        const Unprivileged user;
        EXPECT_EQ(check("stick 2-1: permission").state, Check::State::bad);
        EXPECT_THAT(check("stick 2-1: permission").fix, HasSubstr("plugdev"));
    }
    fs::permissions(system_.root / "dev/bus/usb/002", fs::perms::none);
    {
        const Unprivileged user;
        EXPECT_THAT(check("stick 2-1: permission").what,
                    HasSubstr("/dev/bus/usb/002 may not be entered"));
        EXPECT_THAT(check("stick 2-1: permission").fix, HasSubstr("chmod"));
    }
    fs::permissions(system_.root / "dev/bus/usb/002", fs::perms::owner_all);
}

TEST_F(UsbChecksTest, AContainersDeviceRulesAreNamed) {
    plug("2-1");
    system_.open_node = [](const fs::path&) { return EPERM; };
    EXPECT_EQ(check("stick 2-1: permission").state, Check::State::bad);
    EXPECT_THAT(check("stick 2-1: permission").fix,
                HasSubstr("--device-cgroup-rule='c 189:* rmw'"));
}

TEST_F(UsbChecksTest, TheProgramThatHoldsAStickIsNamed) {
    plug("2-1");
    write("proc/4711/comm", "frigate\n");
    fs::create_directories(system_.root / "proc/4711/fd");
    fs::create_symlink("/dev/bus/usb/002/001", system_.root / "proc/4711/fd/9");
    EXPECT_THAT(check("stick 2-1: owner").what, HasSubstr("frigate (process 4711)"));
}

TEST_F(UsbChecksTest, AProcessThatMayNotBeLookedIntoMayHoldTheStick) {
    plug("2-1");
    fs::create_directories(system_.root / "proc/4711/fd");
    EXPECT_EQ(check("stick 2-1: owner").state, Check::State::good);
    fs::permissions(system_.root / "proc/4711/fd", fs::perms::none);
    {
        const Unprivileged user;
        EXPECT_EQ(check("stick 2-1: owner").state, Check::State::unknown);
        EXPECT_THAT(check("stick 2-1: owner").fix, HasSubstr("sudo reef doctor"));
    }
    fs::permissions(system_.root / "proc/4711/fd", fs::perms::owner_all);
    // Other processes than this container's are not in its /proc.
    write(".dockerenv", "");
    EXPECT_EQ(check("stick 2-1: owner").state, Check::State::unknown);
}

TEST_F(UsbChecksTest, AContainerWithoutTheBusIsBad) {
    write(".dockerenv", "");
    EXPECT_EQ(check("container").state, Check::State::warning);
    fs::remove_all(system_.root / "dev");
    EXPECT_EQ(check("container").state, Check::State::bad);
}

TEST_F(UsbChecksTest, LittleUsbMemoryIsAWarning) {
    write("sys/module/usbcore/parameters/usbfs_memory_mb", "4\n");
    EXPECT_EQ(check("usbfs memory").state, Check::State::warning);
    fs::remove_all(system_.root / "sys");
    EXPECT_EQ(check("usbfs memory").state, Check::State::unknown);
}

}  // namespace
}  // namespace reef::tool

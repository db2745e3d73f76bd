// What keeps a stick from working, on a system made of files.
#include "edgetpu/usb/usb_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "reef/edgetpu/usb/simulated_bus.h"
#include "small_program.h"
#include "support/temporary_folder.h"

namespace reef::edgetpu::usb {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

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
        bus_->plug(stick, test::small_core());
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
        check_usb(fail(Cause::device_denied, "libusb does not start", {}, "pass it on"), system_);
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
}  // namespace reef::edgetpu::usb

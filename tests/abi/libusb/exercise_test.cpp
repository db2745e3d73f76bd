// The C program's cases, with simulated sticks in libusb's place.
#include <gmock/gmock.h>

#include "abi/libusb/simulated_libusb.h"
#include "support/process.h"

namespace reef::abi::libusb {
namespace {

struct Case {
    std::string name;
    std::vector<std::string> environment = {"REEF_USB_STATE=ready"};
    std::string err = {};  ///< what standard error holds
};

void PrintTo(const Case& one, std::ostream* out) {
    *out << one.name;
}

std::vector<Case> cases() {
    return {
        {"library", {}},
        {"boot_descriptors", {}},
        {"chip_descriptors",
         {"REEF_USB_STATE=ready"},
         "reef usb: the stick at 2-1 refuses a transfer: no descriptor 0x0303\n"},
        {"init_options", {}},
        {"interfaces"},
        {"refused"},
        {"no_sticks", {"REEF_USB_STICKS=0"}},
        {"wrong_settings",
         {"REEF_USB_SPEED=fast"},
         "reef usb: REEF_USB_SPEED: 'fast' is not full, high, super or super_plus\n"},
        {"several_sticks",
         {"REEF_USB_PORTS=1-1.4.2,1-3", "REEF_USB_STATE=ready,boot", "REEF_USB_SPEED=high"}},
        {"exit_with_open_handle"},
        {"no_thread"},
        {"synchronous",
         {"REEF_USB_STATE=ready"},
         "reef usb: the stick at 2-1 refuses a transfer: no register of 32 bits at 0xfff0\n"
         "reef usb: the stick at 2-1 refuses a transfer: no register of 64 bits at 0x1a318\n"
         "reef usb: the stick at 2-1 refuses a transfer: request 9 of type 0xc0 is none of the "
         "chip's\n"
         "reef usb: the stick at 2-1 refuses a transfer: data for a chip that sleeps: scu_ctrl_3 "
         "wakes it\n"},
        {"detach"},
        {"no_time_limit"},
        {"unanswered_control", {"REEF_USB_STATE=ready", "REEF_USB_FAULTS=time_out@1"}},
        {"faults",
         {"REEF_USB_STATE=ready", "REEF_USB_FAULTS=stall@0,2-1:long_read@1,short_read@2"},
         "reef usb: the stick at 2-1 refuses a transfer: an injected stall\n"},
        {"cancelling"},
        {"flags"},
        {"inside_callbacks"},
        {"firmware", {}},
        {"unplugged", {"REEF_USB_STATE=ready", "REEF_USB_FAULTS=unplug@20+150"}},
        {"closing_wakes"},
        {"threads", {"REEF_USB_STATE=ready", "REEF_USB_STICKS=2"}},
        {"racing"},
        {"racing_and_unplugged", {"REEF_USB_STATE=ready", "REEF_USB_FAULTS=unplug@700+50"}},
        {"locks"},
        {"descriptors"},
        {"hotplug", {}},
        {"hotplug_and_back", {"REEF_USB_STATE=ready", "REEF_USB_FAULTS=unplug@3+100"}},
        {"back_at_the_end", {"REEF_USB_STATE=ready", "REEF_USB_FAULTS=unplug@3+100"}},
        {"no_hotplug", {"REEF_USB_HOTPLUG=no"}},
    };
}

class Exercise : public ::testing::TestWithParam<Case> {
  protected:
    void run(std::vector<std::string> environment) {
        const Case& each = GetParam();
        environment.insert(environment.end(), each.environment.begin(), each.environment.end());
        const auto result =
            test::run_process({USB_EXERCISE, each.name}, {.environment = environment});
        EXPECT_EQ(result.exit_code, 0) << environment[0];
        EXPECT_EQ(result.err, each.err) << environment[0];
    }
};

TEST_P(Exercise, Preloaded) {
    run(preloaded());
}

TEST_P(Exercise, OnTheLibraryPath) {
    run(on_library_path());
}

INSTANTIATE_TEST_SUITE_P(Cases, Exercise, ::testing::ValuesIn(cases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace reef::abi::libusb

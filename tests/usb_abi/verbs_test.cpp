// The reef command as one of the programs that know nothing of simulated sticks.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "reef/base/file.h"
#include "support/process.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"
#include "usb_abi/simulated_libusb.h"

namespace reef::usb_abi {
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
    static std::string dense() {
        return (test::shared_folder().value() / "data/edgetpu/templates/dense_256_edgetpu.tflite")
            .string();
    }
    [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

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
    EXPECT_THAT(names, ::testing::IsSupersetOf({"edgetpu:usb:1-4.2", "edgetpu:usb:2-1"}));
}

TEST_F(Verbs, DoctorFindsTheStick) {
    const auto result = reef({"doctor"}, {"REEF_USB_STATE=ready", "REEF_USB_SPEED=high"});
    EXPECT_THAT(result.out, HasSubstr("18d1:9302, firmware runs"));
    EXPECT_THAT(result.out, HasSubstr("USB 2 (480 Mbit/s)"));
    const auto none = reef({"doctor"}, {"REEF_USB_STICKS=0"});
    EXPECT_THAT(none.out, Not(HasSubstr("firmware runs")));
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
}

}  // namespace
}  // namespace reef::usb_abi

// Programs that drive a stick over libusb, with simulated sticks in libusb's place.
#include <gmock/gmock.h>

#include "abi/libusb/simulated_libusb.h"
#include "edgetpu/usb/scenarios.h"
#include "support/process.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace reef::abi::libusb {
namespace {

using edgetpu::usb::Recording;
using edgetpu::usb::Speed;
using edgetpu::usb::test::Scenario;

class Traffic : public ::testing::TestWithParam<Scenario> {
  protected:
    test::ProcessResult play(const std::string& mode, std::vector<std::string> environment) {
        const Scenario& scenario = GetParam();
        const auto data = test::shared_folder().value() / "data";
        if (mode != "simulate") {
            environment.emplace_back("REEF_USB_CORE=null");
            environment.push_back("REEF_USB_MODELS=" + (data / scenario.models[0]).string());
        }
        environment.push_back(scenario.boots ? "REEF_USB_STATE=boot" : "REEF_USB_STATE=ready");
        if (scenario.speed == Speed::high) environment.emplace_back("REEF_USB_SPEED=high");
        environment.push_back("REEF_USB_RECORD=" + record_);
        return test::run_process({USB_PLAYER, mode, scenario.name}, {.environment = environment});
    }

    /// The device's side of it, in the form that hides timing and addresses.
    std::vector<std::string> wire() {
        auto recording = edgetpu::usb::read_recording(record_).value();
        // Where the addresses are is told by remarks, which do not travel over USB.
        const auto golden = edgetpu::usb::test::golden(GetParam());
        std::string remarks;
        for (std::size_t at = 0; at < golden.recording.text.size();) {
            const std::size_t end = golden.recording.text.find('\n', at) + 1;
            const std::string line = golden.recording.text.substr(at, end - at);
            if (line.substr(7, 1) == "#") remarks += line;
            at = end;
        }
        recording.text.insert(0, remarks);
        return edgetpu::usb::wire_view(recording).value();
    }

    test::TemporaryFolder folder_;
    std::string record_ = folder_.file("traffic.log");
};

TEST(TwoSticks, TwoThreadsUseThemAtOnce) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    auto environment = preloaded();
    environment.insert(environment.end(), {"REEF_USB_STICKS=2", "REEF_USB_STATE=ready"});
    const auto result =
        test::run_process({USB_PLAYER, "pair", "dense_256_app"}, {.environment = environment});
    EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(StandingStill, TheReasonIsTold) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    // The null core knows another model.
    auto environment = preloaded();
    environment.insert(environment.end(),
                       {"REEF_USB_STATE=ready", "REEF_USB_CORE=null",
                        "REEF_USB_MODELS=" +
                            (shared / "data/edgetpu/templates/dense_256_edgetpu.tflite").string()});
    const auto result = test::run_process({USB_PLAYER, "vendor", "mobilenet_v1_0.25_128_quant"},
                                          {.environment = environment});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, ::testing::HasSubstr("reef usb: the chip at 2-1 stands still: null "
                                                 "device: parameters before any instructions"));
}

/// A stick is pulled out and back after 300 ms, as libusb tells or does not.
TEST(Hotplug, TheBusIsToldWhereLibusbTells) {
    for (const auto& [hotplug, said] :
         {std::pair{"yes", "boot, told of 2 changes\n"}, {"no", "boot, told of 0 changes\n"}}) {
        for (auto environment : {preloaded(), on_library_path()}) {
            environment.insert(environment.end(),
                               {"REEF_USB_STATE=ready", "REEF_USB_FAULTS=unplug@3+300",
                                std::string("REEF_USB_HOTPLUG=") + hotplug});
            const auto result =
                test::run_process({USB_PLAYER, "watch"}, {.environment = environment});
            EXPECT_EQ(result.exit_code, 0) << environment[0] << hotplug << result.err;
            EXPECT_EQ(result.out, said) << environment[0] << hotplug;
        }
    }
}

TEST(Hotplug, TheDriverBootsAStickWithoutIt) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    auto environment = preloaded();
    environment.insert(environment.end(), {"REEF_USB_STATE=boot", "REEF_USB_HOTPLUG=no"});
    const auto result =
        test::run_process({USB_PLAYER, "simulate", "dense_256"}, {.environment = environment});
    EXPECT_EQ(result.exit_code, 0) << result.err;
}

/// With a null core.
class NullTraffic : public Traffic {};

/// Without what the chip answered.
std::vector<std::string> sent(std::vector<std::string> wire) {
    std::erase_if(wire, [](const std::string& line) { return line.starts_with("in "); });
    return wire;
}

TEST_P(NullTraffic, ReefsDriverRunsOverLibusb) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    for (const auto& environment : {preloaded(), on_library_path()}) {
        const auto result = play("drive", environment);
        EXPECT_EQ(result.exit_code, 0) << environment[0] << "\n" << result.err;
        EXPECT_EQ(wire(), wire_of_a_stick(edgetpu::usb::test::golden(GetParam())))
            << environment[0];
    }
}

TEST_P(Traffic, TheSimulatedChipComputesBehindLibusb) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    const auto result = play("simulate", preloaded());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(sent(wire()), sent(wire_of_a_stick(edgetpu::usb::test::golden(GetParam()))));
}

TEST_P(NullTraffic, TheVendorsCallsAreAnsweredAsRecorded) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(shared.empty());
    const auto result = play("vendor", preloaded());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(wire(), edgetpu::usb::test::golden(GetParam()).wire);
}

std::string name_of(const ::testing::TestParamInfo<Scenario>& scenario) {
    return test_name(scenario.param);
}

/// The second of the co-compiled models is in no file, so that a null core cannot know it.
std::vector<Scenario> scenarios_of_one_model() {
    auto all = edgetpu::usb::test::scenarios();
    std::erase_if(all, [](const Scenario& scenario) { return scenario.models.size() != 1; });
    return all;
}

INSTANTIATE_TEST_SUITE_P(Reference, Traffic, ::testing::ValuesIn(edgetpu::usb::test::scenarios()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Reference, NullTraffic, ::testing::ValuesIn(scenarios_of_one_model()),
                         name_of);

}  // namespace
}  // namespace reef::abi::libusb

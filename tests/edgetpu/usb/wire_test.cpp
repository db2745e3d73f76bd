// The driver's traffic against that of the vendor's driver.
#include <gmock/gmock.h>

#include "edgetpu/usb/scenarios.h"
#include "support/shared_data.h"

namespace reef::edgetpu::usb {
namespace {

class Wire : public ::testing::TestWithParam<test::Scenario> {};

TEST_P(Wire, TheViewOfTheReferenceRecordingIsItsWireFile) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    const auto golden = test::golden(GetParam());
    const auto view = wire_view(golden.recording);
    ASSERT_TRUE(view) << view.error().message();
    EXPECT_EQ(*view, golden.wire);
}

TEST_P(Wire, TheDriverSendsWhatTheVendorsSends) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    const auto golden = test::golden(GetParam());
    const auto bus = std::make_shared<RecordingBus>(test::stick_for(GetParam(), golden));
    const auto played = test::play(GetParam(), golden, bus);
    ASSERT_TRUE(played) << played.error().message();
    const auto view = wire_view(bus->recording());
    ASSERT_TRUE(view) << view.error().message();
    const auto wire = test::wire_of_a_stick(golden);
    ASSERT_EQ(view->size(), wire.size());
    for (std::size_t i = 0; i < view->size(); ++i) {
        EXPECT_EQ(view->at(i), wire[i]) << "line " << i + 1;
    }
}

TEST_P(Wire, TheDriverRunsAgainstTheReferenceRecording) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    const auto golden = test::golden(GetParam());
    const auto replay = replay_bus(golden.recording);
    ASSERT_TRUE(replay) << replay.error().message();
    const auto replayed = test::play(GetParam(), golden, *replay);
    ASSERT_TRUE(replayed) << replayed.error().message();
    const auto simulated = test::play(GetParam(), golden, test::stick_for(GetParam(), golden));
    ASSERT_TRUE(simulated) << simulated.error().message();
    EXPECT_TRUE(*replayed == *simulated);
}

INSTANTIATE_TEST_SUITE_P(Reference, Wire, ::testing::ValuesIn(test::scenarios()),
                         [](const auto& scenario) { return test::test_name(scenario.param); });

}  // namespace
}  // namespace reef::edgetpu::usb

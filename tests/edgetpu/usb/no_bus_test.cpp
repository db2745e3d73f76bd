// USB that a process cannot reach at all, which is no matter of a stick.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/transport.h"
#include "small_program.h"

namespace reef::edgetpu::usb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The process may open no further file while the object lives: libusb needs some to start.
class NoFurtherFile {
  public:
    NoFurtherFile() {
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
        rlimit none = before_;
        none.rlim_cur = 3;
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    }
    NoFurtherFile(const NoFurtherFile&) = delete;
    NoFurtherFile& operator=(const NoFurtherFile&) = delete;
    ~NoFurtherFile() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

  private:
    rlimit before_{};
};

void expect_no_bus(const Error& error) {
    EXPECT_EQ(error.cause, Cause::device_denied) << error.message();
    EXPECT_THAT(error.what, HasSubstr("libusb does not start"));
    EXPECT_THAT(error.hint, HasSubstr("/dev/bus/usb"));
    EXPECT_THAT(error.hint, Not(HasSubstr("60-reef.rules")));
}

TEST(NoBus, LibusbThatDoesNotStartIsDenied) {
    const NoFurtherFile starved;
    const auto bus = libusb_bus();
    ASSERT_FALSE(bus);
    expect_no_bus(bus.error());
}

TEST(NoBus, LibusbThatDoesNotStartAgainIsDenied) {
    const auto bus = libusb_bus();
    if (!bus) GTEST_SKIP() << bus.error().message();
    const NoFurtherFile starved;
    const auto listed = (*bus)->list();
    ASSERT_FALSE(listed);
    EXPECT_EQ(listed.error().fault, Fault::no_bus);
    const auto device = Device::open(*bus, {});
    ASSERT_FALSE(device);
    expect_no_bus(device.error());
}

/// A simulated stick that is listed and cannot be opened.
class RefusingBus final : public Bus {
  public:
    explicit RefusingBus(Failure failure) : failure_(std::move(failure)) {
        bus_.plug({}, test::small_core());
    }
    Io<std::vector<DeviceInfo>> list() override { return bus_.list(); }
    Io<std::unique_ptr<Connection>> open(const DeviceInfo&) override {
        ++opened_;
        return std::unexpected(failure_);
    }
    TimePoint now() override { return bus_.now(); }
    void sleep(Milliseconds time) override { bus_.sleep(time); }
    [[nodiscard]] int opened() const { return opened_; }

  private:
    SimulatedBus bus_;
    Failure failure_;
    int opened_ = 0;
};

TEST(NoBus, ADeniedStickIsTriedAgainAndABusThatIsOutOfReachIsNot) {
    const auto denied = std::make_shared<RefusingBus>(Failure{Fault::denied, "open: denied"});
    const auto stick = Device::open(denied, {});
    ASSERT_FALSE(stick);
    EXPECT_GT(denied->opened(), 1);
    EXPECT_THAT(stick.error().hint, HasSubstr("60-reef.rules"));

    const auto unreachable =
        std::make_shared<RefusingBus>(Failure{Fault::no_bus, "libusb does not start: no files"});
    const auto none = Device::open(unreachable, {});
    ASSERT_FALSE(none);
    EXPECT_EQ(unreachable->opened(), 1);
    expect_no_bus(none.error());
}

}  // namespace
}  // namespace reef::edgetpu::usb

// A session that failed, replayed: the driver meets the same faults and says the same.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "edgetpu/usb/small_program.h"
#include "reef/base/file.h"
#include "reef/edgetpu/usb/recording.h"
#include "support/temporary_folder.h"

namespace reef::edgetpu::usb {

static void PrintTo(InjectedFault fault, std::ostream* out) {
    *out << to_string(fault);
}

namespace {

using ::testing::HasSubstr;

/// The errors of a session, each step of which is tried twice.
std::vector<std::string> errors_of(const std::shared_ptr<Bus>& bus, const std::string& firmware) {
    std::vector<std::string> errors;
    std::unique_ptr<Device> device;
    DeviceOptions options;
    options.firmware = firmware;
    const auto tried = [&](auto&& step) {
        for (int attempt = 0; attempt < 2; ++attempt) {
            const Status done = step();
            if (done) return true;
            errors.push_back(done.error().message());
            bus->sleep(Milliseconds(500));
        }
        return false;
    };
    const auto open = [&]() -> Status {
        device = REEF_TRY(Device::open(bus, options));
        return {};
    };
    if (!tried(open)) return errors;
    for (const std::uint8_t variant : {0, 0, 1}) {
        const auto program = test::small_program(7, variant);
        if (!tried([&] { return test::run_small(*device, program); })) return errors;
    }
    return errors;
}

/// A replayed stick has a port of its own.
std::string without_port(std::string text) {
    for (const std::string name : {"1-1", "replay"}) {
        for (const std::string before : {"edgetpu:usb:", "USB port "}) {
            for (std::size_t at = 0; (at = text.find(before + name)) != text.npos;) {
                text.replace(at, before.size() + name.size(), before + "PORT");
            }
        }
    }
    return text;
}

class ReplayedFaults : public ::testing::TestWithParam<InjectedFault> {
  protected:
    void SetUp() override {
        firmware_ = folder_.file("firmware.bin");
        ASSERT_TRUE(write_file(firmware_, test::any_firmware()));
    }
    struct Session {
        Recording recording;
        std::vector<std::string> errors;
        std::size_t transactions = 0;
    };
    [[nodiscard]] Session recorded(const StickOptions& stick) const {
        const auto simulated = std::make_shared<SimulatedBus>();
        simulated->plug(stick, test::small_core());
        const auto recorder = std::make_shared<RecordingBus>(simulated);
        Session session;
        session.errors = errors_of(recorder, firmware_);
        session.recording = recorder->recording();
        session.transactions = simulated->transactions(stick.port);
        return session;
    }
    void expect_the_same(const Session& session, const std::string& what) const {
        const auto replay = replay_bus(session.recording);
        ASSERT_TRUE(replay) << what << ": " << replay.error().message();
        const auto replayed = errors_of(*replay, firmware_);
        ASSERT_EQ(replayed.size(), session.errors.size())
            << what << ": " << ::testing::PrintToString(replayed) << " for "
            << ::testing::PrintToString(session.errors);
        for (std::size_t i = 0; i < replayed.size(); ++i) {
            EXPECT_EQ(without_port(replayed[i]), without_port(session.errors[i])) << what;
        }
    }

    reef::test::TemporaryFolder folder_;
    std::string firmware_;
};

TEST_P(ReplayedFaults, AreThoseThatWereRecorded) {
    for (const bool has_firmware : {true, false}) {
        StickOptions stick;
        stick.has_firmware = has_firmware;
        const std::size_t transactions = recorded(stick).transactions;
        std::size_t errors = 0;
        for (std::size_t at = 0; at < transactions; ++at) {
            stick.faults = {
                {.transaction = at, .fault = GetParam(), .back_after = Milliseconds(100)}};
            const Session session = recorded(stick);
            errors += session.errors.size();
            expect_the_same(session, fmt::format("{} at {}", to_string(GetParam()), at));
            if (HasFailure()) return;
        }
        // A start recovers from these by itself, and nothing else meets them.
        if (GetParam() == InjectedFault::firmware_status ||
            GetParam() == InjectedFault::stuck_register) {
            continue;
        }
        EXPECT_GT(errors, 0U);
    }
}

INSTANTIATE_TEST_SUITE_P(Each, ReplayedFaults, ::testing::ValuesIn(injected_faults),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

TEST(ReplayedFault, OfAnInterruptTransferReachesTheDriver) {
    const auto simulated = std::make_shared<SimulatedBus>();
    StickOptions stick;
    stick.has_firmware = true;
    simulated->plug(stick, test::small_core());
    const auto recorder = std::make_shared<RecordingBus>(simulated);
    EXPECT_TRUE(errors_of(recorder, {}).empty());
    Recording recording = recorder->recording();
    // The first end of any transfer becomes one of the interrupt transfer.
    std::string& text = recording.text;
    const std::size_t submitted = text.find("INTR IN  ep=83 async id=");
    ASSERT_NE(submitted, text.npos);
    const std::size_t id = text.find("id=", submitted);
    const std::string name = text.substr(id, text.find(' ', id) - id);
    const std::size_t end = text.find(" complete");
    const std::size_t line = text.rfind('\n', end) + 1;
    text.insert(line, fmt::format("000000 INTR IN  ep=83 async {} failed overflow\n", name));
    const auto replay = replay_bus(recording);
    ASSERT_TRUE(replay) << replay.error().message();
    const auto errors = errors_of(*replay, {});
    ASSERT_FALSE(errors.empty());
    EXPECT_THAT(errors[0], HasSubstr("ep 83"));
    EXPECT_THAT(errors[0], HasSubstr("overflow"));
}

}  // namespace
}  // namespace reef::edgetpu::usb

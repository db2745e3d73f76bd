// Every fault at every transaction, and many at random: a typed error in time, then a good run.
#include <gmock/gmock.h>

#include <random>

#include "edgetpu/usb/small_program.h"
#include "reef/base/file.h"
#include "support/temporary_folder.h"

namespace reef::edgetpu::usb {
namespace {

/// What came of a session: open, three runs of two programs, two at once, close.
struct Outcome {
    std::vector<Error> errors;
    bool opened_at_once = false;
    bool finished = false;
    std::chrono::steady_clock::duration longest{};  ///< of one call
};

class Session {
  public:
    Session(StickOptions stick, std::string firmware)
        : bus_(std::make_shared<SimulatedBus>()), port_(stick.port) {
        bus_->plug(stick, test::small_core());
        options_.firmware = std::move(firmware);
    }

    Outcome play(std::size_t attempts) {
        Outcome outcome;
        std::unique_ptr<Device> device;
        const auto timed = [&](auto&& call) {
            const TimePoint start = bus_->now();
            auto status = call();
            outcome.longest = std::max(outcome.longest, bus_->now() - start);
            if (!status) outcome.errors.push_back(status.error());
            return status.has_value();
        };
        const auto open = [&]() -> Status {
            device = REEF_TRY(Device::open(bus_, options_));
            return {};
        };
        const auto until_good = [&](auto&& call) {
            for (std::size_t i = 0; i < attempts; ++i) {
                if (timed(call)) return true;
                // A stick that was unplugged for a moment.
                bus_->sleep(Milliseconds(500));
            }
            return false;
        };
        if (!until_good(open)) return outcome;
        outcome.opened_at_once = outcome.errors.empty();
        const auto a = test::small_program(7, 0), b = test::small_program(9, 1);
        for (const auto& program : {a, a, b}) {
            if (!until_good([&] { return test::run_small(*device, program); })) return outcome;
        }
        const auto pair = [&]() -> Status {
            auto status = test::start_small(*device, a);
            if (!status) return status;
            status = test::start_small(*device, b);
            if (status) status = test::finish_small(*device);
            const auto other = test::finish_small(*device);
            if (status && !other) status = other;
            return status;
        };
        if (!until_good(pair)) return outcome;
        outcome.finished = true;
        device.reset();
        return outcome;
    }
    std::size_t transactions() const { return bus_->transactions(port_); }

  private:
    std::shared_ptr<SimulatedBus> bus_;
    std::string port_;
    DeviceOptions options_;
};

/// Longer than any call may take: two rungs of recovery, each with one register that does not come,
/// and a run.
constexpr std::chrono::seconds patience{40};

void expect_good(const Outcome& outcome, const std::string& what) {
    EXPECT_TRUE(outcome.finished) << what;
    EXPECT_LT(outcome.longest, patience) << what;
    for (const Error& error : outcome.errors) {
        const bool typed =
            error.cause == Cause::device_failed || error.cause == Cause::device_missing;
        EXPECT_TRUE(typed) << what << ": " << to_string(error.cause) << ": " << error.message();
        EXPECT_THAT(error.message(), ::testing::HasSubstr("edgetpu:usb:")) << what;
    }
}

class Faults : public ::testing::Test {
  protected:
    void SetUp() override {
        firmware_ = folder_.file("firmware.bin");
        ASSERT_TRUE(write_file(firmware_, test::any_firmware()));
        Session plain({}, firmware_);
        const Outcome outcome = plain.play(1);
        ASSERT_TRUE(outcome.finished) << outcome.errors.at(0).message();
        transactions_ = plain.transactions();
        ASSERT_GT(transactions_, 150U);
    }
    reef::test::TemporaryFolder folder_;
    std::string firmware_;
    std::size_t transactions_ = 0;
};

TEST_F(Faults, OneAtEveryTransaction) {
    for (const InjectedFault fault : injected_faults) {
        std::size_t of_this = 0;
        for (std::size_t at = 0; at < transactions_; ++at) {
            StickOptions stick;
            stick.faults = {{.transaction = at, .fault = fault, .back_after = Milliseconds(100)}};
            const Outcome outcome = Session(stick, firmware_).play(2);
            const auto what =
                std::string(to_string(fault)) + " at transaction " + std::to_string(at);
            expect_good(outcome, what);
            // The start climbs the ladder by itself.
            EXPECT_TRUE(outcome.opened_at_once) << what;
            // A refusal is an answer: nothing waits for another one.
            if (fault == InjectedFault::stall) {
                EXPECT_LT(outcome.longest, std::chrono::seconds(1)) << at;
            }
            of_this += outcome.errors.size();
            if (HasFailure()) return;
        }
        // Only a start meets these, and it recovers by itself.
        const bool of_starts =
            fault == InjectedFault::firmware_status || fault == InjectedFault::stuck_register;
        EXPECT_EQ(of_this == 0, of_starts) << to_string(fault);
    }
}

TEST_F(Faults, AThousandRandomSchedules) {
    std::mt19937 random(5);
    for (int round = 0; round < 1000; ++round) {
        StickOptions stick;
        const std::size_t faults = 1 + random() % 4;
        for (std::size_t i = 0; i < faults; ++i) {
            stick.faults.push_back({.transaction = random() % (2 * transactions_),
                                    .fault = injected_faults[random() % std::size(injected_faults)],
                                    .back_after = Milliseconds(random() % 300)});
        }
        expect_good(Session(stick, firmware_).play(faults + 1), "round " + std::to_string(round));
        if (HasFailure()) return;
    }
}

// A stick whose chip never becomes ready: every rung is taken once, and named.
TEST_F(Faults, AStartThatFailsForGoodSaysWhatWasTried) {
    StickOptions stick;
    stick.has_firmware = true;
    for (int i = 0; i < 200; ++i) stick.faults.push_back({.transaction = 20, .back_after = {}});
    const auto bus = std::make_shared<SimulatedBus>();
    bus->plug(stick, test::small_core());
    const auto device = Device::open(bus, {});
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().cause, Cause::device_failed);
    const std::string said = device.error().message();
    EXPECT_THAT(said, ::testing::ContainsRegex("edgetpu:usb:1-1: .*the device refused it"));
    EXPECT_THAT(said, ::testing::HasSubstr("tried: clear halt and chip reset ("));
    EXPECT_THAT(said, ::testing::HasSubstr("bus reset and start; the first start failed with: "));
    EXPECT_THAT(said, ::testing::ContainsRegex("initialise chip: (read|write) of [a-z0-9_]+: "));
    EXPECT_THAT(said, ::testing::HasSubstr("at another port or with another cable"));
}

TEST_F(Faults, ARunThatFailsNamesTheTransferAndWhatComesNext) {
    StickOptions stick;
    stick.has_firmware = true;
    const auto bus = std::make_shared<SimulatedBus>();
    bus->plug(stick, test::small_core());
    const auto opened = Device::open(bus, {});
    ASSERT_TRUE(opened) << opened.error().message();
    stick.faults = {{.transaction = bus->transactions("1-1") + 12, .back_after = {}}};
    bus->plug(stick, test::small_core());
    const auto device = Device::open(bus, {});
    ASSERT_TRUE(device) << device.error().message();
    const auto failed = test::run_small(**device, test::small_program());
    ASSERT_FALSE(failed);
    const std::string said = failed.error().message();
    EXPECT_THAT(said, ::testing::ContainsRegex("edgetpu:usb:1-1: run: .*ep [0-9a-f]+ \\("));
    EXPECT_THAT(said, ::testing::HasSubstr("(stall); still waiting for "));
    EXPECT_THAT(said, ::testing::HasSubstr("no recovery was tried yet"));
    EXPECT_THAT(said, ::testing::HasSubstr("the next run restarts the device"));
}

TEST_F(Faults, AStickThatIsPulledOutForGoodIsMissing) {
    for (std::size_t at = 0; at < transactions_; at += 7) {
        StickOptions stick;
        stick.faults = {{.transaction = at, .fault = InjectedFault::unplug, .back_after = {}}};
        Session session(stick, firmware_);
        const Outcome outcome = session.play(2);
        // The last transactions are those of the destructor, which reports nothing.
        if (outcome.finished) continue;
        ASSERT_EQ(outcome.errors.size(), 2U);
        EXPECT_EQ(outcome.errors.back().cause, Cause::device_missing)
            << outcome.errors.back().message();
        EXPECT_LT(outcome.longest, patience);
    }
}

}  // namespace
}  // namespace reef::edgetpu::usb

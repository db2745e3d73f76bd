// What other threads can do while a run waits for the device: count, and end it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "edgetpu/usb/small_program.h"

namespace reef::edgetpu::usb {
namespace {

using namespace std::chrono_literals;

/// Holds every wait() while it is closed, as a device does that does not answer.
struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = true;
    bool interrupted = false;
    int waiting = 0;

    void set(bool to) {
        {
            const std::lock_guard lock(mutex);
            open = to;
        }
        changed.notify_all();
    }
    /// Until somebody waits.
    void await() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return waiting > 0; });
    }
    /// Whether it was interrupted.
    bool pass() {
        std::unique_lock lock(mutex);
        ++waiting;
        changed.notify_all();
        changed.wait(lock, [&] { return open || interrupted; });
        --waiting;
        return std::exchange(interrupted, false);
    }
    void interrupt() {
        {
            const std::lock_guard lock(mutex);
            interrupted = waiting > 0;
        }
        changed.notify_all();
    }
};

class GatedConnection final : public Connection {
  public:
    GatedConnection(std::unique_ptr<Connection> inner, Gate& gate)
        : inner_(std::move(inner)), gate_(gate) {}
    Speed speed() const override { return inner_->speed(); }
    Io<std::size_t> control(const Setup& setup, MutableBytes data, Milliseconds time) override {
        return inner_->control(setup, data, time);
    }
    Io<void> claim(unsigned interface) override { return inner_->claim(interface); }
    Io<void> release(unsigned interface) override { return inner_->release(interface); }
    Io<void> reset() override { return inner_->reset(); }
    Io<void> clear_halt(std::uint8_t endpoint) override { return inner_->clear_halt(endpoint); }
    Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) override {
        return inner_->submit_out(endpoint, bytes);
    }
    Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType type,
                                MutableBytes bytes) override {
        return inner_->submit_in(endpoint, type, bytes);
    }
    Io<std::optional<Completion>> wait(Milliseconds timeout) override {
        if (gate_.pass()) return std::optional<Completion>();
        return inner_->wait(timeout);
    }
    void interrupt() override { gate_.interrupt(); }
    void cancel(std::uint32_t id) override { inner_->cancel(id); }
    void cancel_all() override { inner_->cancel_all(); }

  private:
    std::unique_ptr<Connection> inner_;
    Gate& gate_;
};

class GatedBus final : public Bus {
  public:
    GatedBus(std::shared_ptr<Bus> inner, Gate& gate) : inner_(std::move(inner)), gate_(gate) {}
    Io<std::vector<DeviceInfo>> list() override { return inner_->list(); }
    Io<std::unique_ptr<Connection>> open(const DeviceInfo& device) override {
        auto inner = inner_->open(device);
        if (!inner) return std::unexpected(inner.error());
        return std::make_unique<GatedConnection>(std::move(*inner), gate_);
    }
    TimePoint now() override { return inner_->now(); }
    void sleep(Milliseconds time) override { inner_->sleep(time); }

  private:
    std::shared_ptr<Bus> inner_;
    Gate& gate_;
};

class StopAsked final : public RunWatch {
  public:
    [[nodiscard]] Status may_go_on() const override {
        if (!asked) return {};
        return fail(Cause::unsupported, "enough");
    }
    std::atomic<bool> asked = false;
};

class WaitingRun : public testing::Test {
  protected:
    WaitingRun() {
        auto sticks = std::make_shared<SimulatedBus>();
        sticks->plug({.has_firmware = true, .faults = {}}, test::small_core());
        auto opened =
            Device::open(std::make_shared<GatedBus>(sticks, gate), {.port = {}, .firmware = {}});
        EXPECT_TRUE(opened) << (opened ? "" : opened.error().message());
        device = std::move(*opened);
        for (const auto& layer : program->inputs())
            inputs.emplace_back(tensor_bytes(layer).value());
        for (const auto& layer : program->outputs())
            outputs.emplace_back(tensor_bytes(layer).value());
    }
    Status run(const RunLimits& limits = {}) {
        const std::vector<Bytes> in(inputs.begin(), inputs.end());
        const std::vector<MutableBytes> out(outputs.begin(), outputs.end());
        return device->run(program, in, out, limits);
    }

    Gate gate;
    std::unique_ptr<Device> device;
    std::shared_ptr<const Program> program = test::small_program();
    std::vector<std::vector<std::byte>> inputs, outputs;
};

TEST_F(WaitingRun, CountersAreToldMeanwhile) {
    ASSERT_TRUE(run());
    gate.set(false);
    Status done;
    std::thread runs([&] { done = run(); });
    gate.await();
    // A run that waits for ever would hang the test here.
    EXPECT_EQ(device->counters().runs, 1U);
    gate.set(true);
    runs.join();
    EXPECT_TRUE(done) << done.error().message();
    EXPECT_EQ(device->counters().runs, 2U);
}

TEST_F(WaitingRun, EndsWhenItsWatchSaysSo) {
    ASSERT_TRUE(run());
    gate.set(false);
    StopAsked stop;
    Status done;
    std::thread runs([&] { done = run({.watch = &stop}); });
    gate.await();
    stop.asked = true;
    device->interrupt();
    gate.set(true);
    runs.join();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().cause, Cause::unsupported);
    EXPECT_THAT(done.error().message(), testing::HasSubstr("run: enough"));
    EXPECT_THAT(done.error().message(), testing::Not(testing::HasSubstr("no recovery")));
    // The chip was in the middle of it: the next run restarts it.
    EXPECT_TRUE(run());
    EXPECT_EQ(device->counters().recoveries, 1U);
}

TEST_F(WaitingRun, DoesNotWaitForItsTurnForLongerThanItsWatchLikes) {
    gate.set(false);
    Status first;
    std::thread runs([&] { first = run(); });
    gate.await();
    StopAsked stop;
    stop.asked = true;
    const Status second = run({.watch = &stop});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message(), "run: enough");
    gate.set(true);
    runs.join();
    EXPECT_TRUE(first);
}

}  // namespace
}  // namespace reef::edgetpu::usb

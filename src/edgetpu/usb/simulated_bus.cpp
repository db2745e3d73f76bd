#include "reef/edgetpu/usb/simulated_bus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "edgetpu/usb/simulated_stick.h"

namespace reef::edgetpu::usb {
namespace {

std::unexpected<Failure> failure(Fault fault, std::string_view transaction) {
    return std::unexpected(Failure{fault, fmt::format("{}: {}", transaction, to_string(fault))});
}

}  // namespace

std::string_view to_string(InjectedFault fault) {
    switch (fault) {
        case InjectedFault::stall:
            return "stall";
        case InjectedFault::time_out:
            return "time_out";
        case InjectedFault::short_read:
            return "short_read";
        case InjectedFault::long_read:
            return "long_read";
        case InjectedFault::unplug:
            return "unplug";
        case InjectedFault::wrong_event:
            return "wrong_event";
        case InjectedFault::firmware_status:
            return "firmware_status";
        case InjectedFault::stuck_register:
            return "stuck_register";
    }
    return "unknown";
}

class SimulatedConnection final : public Connection {
  public:
    SimulatedConnection(SimulatedBus& bus, std::shared_ptr<SimulatedStick> stick)
        : bus_(bus), stick_(std::move(stick)), address_(stick_->address()) {
        const std::lock_guard lock(bus_.mutex_);
        speed_ = stick_->info().speed;
    }

    Speed speed() const override { return speed_; }

    Io<std::size_t> control(const Setup& setup, MutableBytes data, Milliseconds timeout) override {
        const std::lock_guard lock(bus_.mutex_);
        if (data.size() != setup.length) return failure(Fault::failed, "control transfer");
        const auto fault =
            begin({InjectedFault::stall, InjectedFault::time_out, InjectedFault::short_read,
                   InjectedFault::long_read, InjectedFault::unplug, InjectedFault::firmware_status,
                   InjectedFault::stuck_register});
        if (gone()) return failure(Fault::disconnected, "control transfer");
        if (fault == InjectedFault::stall) {
            stick_->refuse("an injected stall");
            return failure(Fault::stall, "control transfer");
        }
        if (fault == InjectedFault::time_out) {
            bus_.time_ += timeout;
            return failure(Fault::timed_out, "control transfer");
        }
        if (fault == InjectedFault::long_read && setup.to_host()) {
            return failure(Fault::overflow, "control transfer");
        }
        if (fault == InjectedFault::stuck_register) stick_->stick_register();
        if (fault == InjectedFault::firmware_status) stick_->corrupt_status();
        auto done = stick_->control(setup, data);
        if (done && fault == InjectedFault::short_read) *done /= 2;
        return done;
    }

    Io<void> claim(unsigned) override { return simple("claim"); }
    Io<void> release(unsigned) override { return simple("release"); }

    Io<void> reset() override {
        const std::lock_guard lock(bus_.mutex_);
        const auto fault = begin({InjectedFault::stall, InjectedFault::unplug});
        if (gone()) return failure(Fault::disconnected, "bus reset");
        if (fault == InjectedFault::stall) return failure(Fault::failed, "bus reset");
        stick_->bus_reset();
        return {};
    }

    Io<void> clear_halt(std::uint8_t endpoint) override {
        const std::lock_guard lock(bus_.mutex_);
        begin({InjectedFault::unplug});
        if (gone()) return failure(Fault::disconnected, "clear halt");
        std::erase(halted_, endpoint);
        return {};
    }

    Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) override {
        const std::lock_guard lock(bus_.mutex_);
        const auto fault =
            begin({InjectedFault::stall, InjectedFault::time_out, InjectedFault::unplug});
        if (gone()) return failure(Fault::disconnected, "bulk out");
        const std::uint32_t id = next_id_++;
        if (fault == InjectedFault::time_out) {
            pending_.push_back({.id = id, .endpoint = endpoint, .room = {}});
            return id;
        }
        const bool halted = std::ranges::find(halted_, endpoint) != halted_.end();
        if (fault == InjectedFault::stall) stick_->refuse("an injected stall");
        if (fault == InjectedFault::stall || halted || !stick_->receive(endpoint, bytes)) {
            if (!halted) halted_.push_back(endpoint);
            done_.push_back({.id = id, .endpoint = endpoint, .fault = Fault::stall});
            return id;
        }
        done_.push_back({.id = id, .endpoint = endpoint, .fault = {}, .size = bytes.size()});
        return id;
    }

    Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType, MutableBytes bytes) override {
        const std::lock_guard lock(bus_.mutex_);
        begin({InjectedFault::unplug});
        if (gone()) return failure(Fault::disconnected, "bulk in");
        pending_.push_back({.id = next_id_, .endpoint = endpoint, .room = bytes});
        return next_id_++;
    }

    Io<std::optional<Completion>> wait(Milliseconds timeout) override {
        const std::lock_guard lock(bus_.mutex_);
        if (done_.empty()) {
            const auto fault =
                begin({InjectedFault::stall, InjectedFault::short_read, InjectedFault::long_read,
                       InjectedFault::unplug, InjectedFault::wrong_event, InjectedFault::time_out});
            if (gone()) return failure(Fault::disconnected, "wait");
            if (fault) arriving_ = fault;
            if (arriving_ != InjectedFault::time_out) answer();
        }
        if (done_.empty()) {
            bus_.time_ += timeout;
            if (arriving_ == InjectedFault::time_out) arriving_.reset();
            return std::optional<Completion>();
        }
        const Completion first = done_.front();
        done_.pop_front();
        return first;
    }

    void cancel(std::uint32_t id) override {
        const std::lock_guard lock(bus_.mutex_);
        const auto it = std::ranges::find(pending_, id, &Pending::id);
        if (it == pending_.end()) return;
        done_.push_back({.id = id, .endpoint = it->endpoint, .fault = Fault::cancelled});
        pending_.erase(it);
    }
    void cancel_all() override {
        const std::lock_guard lock(bus_.mutex_);
        for (const Pending& pending : pending_) {
            done_.push_back(
                {.id = pending.id, .endpoint = pending.endpoint, .fault = Fault::cancelled});
        }
        pending_.clear();
    }

    void watch(const RunWatch* watch) override {
        const std::lock_guard lock(bus_.mutex_);
        stick_->watch(watch);
    }

  private:
    struct Pending {
        std::uint32_t id;
        std::uint8_t endpoint;
        MutableBytes room;  ///< empty: an unanswered out transfer
    };

    std::optional<InjectedFault> begin(std::initializer_list<InjectedFault> fitting) {
        stick_->pass_time(TimePoint(bus_.time_));
        if (gone()) return std::nullopt;
        return stick_->next_transaction(TimePoint(bus_.time_), fitting);
    }
    bool gone() const { return !stick_->plugged() || stick_->address() != address_; }

    Io<void> simple(std::string_view transaction) {
        const std::lock_guard lock(bus_.mutex_);
        const auto fault = begin({InjectedFault::unplug});
        if (gone()) return failure(Fault::disconnected, transaction);
        static_cast<void>(fault);
        return {};
    }

    std::deque<Pending>::iterator pending_on(std::uint8_t endpoint) {
        return std::ranges::find_if(pending_, [&](const Pending& pending) {
            return pending.endpoint == endpoint && !pending.room.empty();
        });
    }
    void complete(std::deque<Pending>::iterator it, std::size_t size,
                  std::optional<Fault> fault = {}) {
        done_.push_back({.id = it->id, .endpoint = it->endpoint, .fault = fault, .size = size});
        pending_.erase(it);
    }
    /// The fault that waits for arriving bytes, if it is `fault`.
    bool take(InjectedFault fault) {
        if (arriving_ != fault) return false;
        arriving_.reset();
        return true;
    }

    /// Moves what the chip has to the transfers that wait for it.
    void answer() {
        for (auto it = pending_on(output_endpoint); it != pending_.end();
             it = pending_on(output_endpoint)) {
            const std::size_t size = stick_->take_output(it->room);
            if (size == 0) break;
            if (take(InjectedFault::stall)) {
                stick_->refuse("an injected stall");
                halted_.push_back(output_endpoint);
                complete(it, 0, Fault::stall);
            } else if (take(InjectedFault::long_read) || it->room.size() < least_room(size)) {
                complete(it, 0, Fault::overflow);
            } else if (take(InjectedFault::short_read)) {
                complete(it, size / 2);
            } else {
                complete(it, size);
            }
        }
        for (auto it = pending_on(event_endpoint); it != pending_.end();
             it = pending_on(event_endpoint)) {
            auto event = stick_->take_event();
            if (!event) break;
            if (take(InjectedFault::wrong_event)) event->tag = static_cast<Tag>(9);
            std::byte bytes[event_bytes] = {};
            std::memcpy(bytes, &event->address, 8);
            std::memcpy(bytes + 8, &event->size, 4);
            bytes[12] = static_cast<std::byte>(event->tag);
            const std::size_t size = std::min(it->room.size(), sizeof bytes);
            std::ranges::copy(Bytes(bytes).first(size), it->room.begin());
            if (take(InjectedFault::stall)) {
                stick_->refuse("an injected stall");
                halted_.push_back(event_endpoint);
                complete(it, 0, Fault::stall);
            } else if (take(InjectedFault::long_read)) {
                complete(it, 0, Fault::overflow);
            } else {
                complete(it, take(InjectedFault::short_read) ? size / 2 : size);
            }
        }
    }

    /// A request must hold what the device sends at once.
    std::size_t least_room(std::size_t size) const {
        return std::min(size, stick_->output_chunk());
    }

    SimulatedBus& bus_;
    std::shared_ptr<SimulatedStick> stick_;
    unsigned address_;
    Speed speed_ = Speed::unknown;
    std::uint32_t next_id_ = 0;
    std::deque<Pending> pending_;
    std::deque<Completion> done_;
    std::vector<std::uint8_t> halted_;
    std::optional<InjectedFault> arriving_;
};

SimulatedBus::SimulatedBus() = default;
SimulatedBus::~SimulatedBus() = default;

void SimulatedBus::plug(const StickOptions& options, std::unique_ptr<ChipCore> core) {
    const std::lock_guard lock(mutex_);
    std::erase_if(sticks_, [&](const auto& stick) { return stick->info().port == options.port; });
    sticks_.push_back(std::make_shared<SimulatedStick>(options, std::move(core)));
}

void SimulatedBus::unplug(std::string_view port) {
    const std::lock_guard lock(mutex_);
    for (const auto& stick : sticks_) {
        if (stick->info().port == port) stick->unplug();
    }
}

std::size_t SimulatedBus::transactions(std::string_view port) const {
    const std::lock_guard lock(mutex_);
    for (const auto& stick : sticks_) {
        if (stick->info().port == port) return stick->transactions();
    }
    return 0;
}

Result<StickDescriptors> SimulatedBus::descriptors(std::string_view port) const {
    const std::lock_guard lock(mutex_);
    for (const auto& stick : sticks_) {
        if (stick->info().port == port && stick->plugged()) return stick->descriptors();
    }
    return fail(Cause::device_missing, fmt::format("no simulated stick at USB port {}", port));
}

std::string SimulatedBus::standstill(std::string_view port) const {
    const std::lock_guard lock(mutex_);
    for (const auto& stick : sticks_) {
        if (stick->info().port == port) return stick->standstill();
    }
    return {};
}

std::string SimulatedBus::refusal(std::string_view port) const {
    const std::lock_guard lock(mutex_);
    for (const auto& stick : sticks_) {
        if (stick->info().port == port) return stick->refusal();
    }
    return {};
}

Io<std::vector<DeviceInfo>> SimulatedBus::list() {
    const std::lock_guard lock(mutex_);
    std::vector<DeviceInfo> devices;
    for (const auto& stick : sticks_) {
        stick->pass_time(TimePoint(time_));
        if (stick->plugged()) devices.push_back(stick->info());
    }
    std::ranges::sort(devices, {}, &DeviceInfo::port);
    return devices;
}

Io<std::unique_ptr<Connection>> SimulatedBus::open(const DeviceInfo& device) {
    std::shared_ptr<SimulatedStick> found;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& stick : sticks_) {
            if (stick->plugged() && stick->info() == device) found = stick;
        }
    }
    if (!found) return failure(Fault::disconnected, "open");
    return std::make_unique<SimulatedConnection>(*this, std::move(found));
}

TimePoint SimulatedBus::now() {
    const std::lock_guard lock(mutex_);
    return TimePoint(time_);
}

void SimulatedBus::sleep(Milliseconds time) {
    const std::lock_guard lock(mutex_);
    time_ += time;
}

}  // namespace reef::edgetpu::usb

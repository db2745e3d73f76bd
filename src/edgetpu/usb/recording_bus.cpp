#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "reef/base/sha256.h"
#include "reef/edgetpu/usb/recording.h"

namespace reef::edgetpu::usb {

class RecordingSink {
  public:
    void line(std::string_view text) {
        const std::lock_guard lock(mutex_);
        write_waited();
        recording_.text += fmt::format("{:06d} {}\n", number_++, text);
    }
    /// The line with "len=... off=... data=..." behind it.
    void line_with(std::string_view text, Bytes payload) {
        const std::lock_guard lock(mutex_);
        write_waited();
        recording_.text += fmt::format("{:06d} {}{}\n", number_++, text, append(payload));
    }
    /// Nothing came in that time; one line for all until something happens.
    void waited(TimePoint::duration time) {
        const std::lock_guard lock(mutex_);
        waited_ += time;
    }
    [[nodiscard]] Recording recording() {
        const std::lock_guard lock(mutex_);
        write_waited();
        return recording_;
    }

  private:
    void write_waited() {
        const auto ms = std::chrono::ceil<Milliseconds>(waited_).count();
        if (ms > 0) recording_.text += fmt::format("{:06d} WAIT ms={}\n", number_++, ms);
        waited_ = {};
    }
    std::string append(Bytes payload) {
        if (payload.empty()) return " len=0";
        constexpr std::size_t shown = 32;
        const std::string text =
            fmt::format(" len={} off={} data={}{}", payload.size(), recording_.data.size(),
                        to_hex(payload.first(std::min(payload.size(), shown))),
                        payload.size() > shown ? ".." : "");
        recording_.data.insert(recording_.data.end(), payload.begin(), payload.end());
        return text;
    }

    std::mutex mutex_;
    Recording recording_;
    std::size_t number_ = 0;
    TimePoint::duration waited_{};
};

namespace {

int result_of(const Io<std::size_t>& done) {
    return done ? static_cast<int>(*done) : -1 - static_cast<int>(done.error().fault);
}

/// " fault=FAULT" behind what failed.
template <class T>
std::string fault_text(const Io<T>& done) {
    return done ? "" : fmt::format(" fault={}", to_string(done.error().fault));
}

class RecordingConnection final : public Connection {
  public:
    RecordingConnection(std::shared_ptr<Bus> bus, std::unique_ptr<Connection> connection,
                        std::shared_ptr<RecordingSink> sink)
        : bus_(std::move(bus)), connection_(std::move(connection)), sink_(std::move(sink)) {}
    ~RecordingConnection() override {
        connection_.reset();
        sink_->line("CLOSE");
    }

    Speed speed() const override { return connection_->speed(); }

    Io<std::size_t> control(const Setup& setup, MutableBytes data, Milliseconds timeout) override {
        const auto done = connection_->control(setup, data, timeout);
        const std::size_t shown = !setup.to_host() ? data.size() : done.value_or(0);
        sink_->line_with(
            fmt::format("CTRL {} bmRequestType={:02x} bRequest={:02x} wValue={:04x} wIndex={:04x} "
                        "wLength={} timeout={} ret={}{}",
                        setup.to_host() ? "IN " : "OUT", setup.request_type, setup.request,
                        setup.value, setup.index, setup.length, timeout.count(), result_of(done),
                        fault_text(done)),
            data.first(std::min(shown, data.size())));
        return done;
    }
    Io<void> claim(unsigned interface) override {
        return written(fmt::format("CLAIM {}", interface), connection_->claim(interface));
    }
    Io<void> release(unsigned interface) override {
        return written(fmt::format("RELEASE {}", interface), connection_->release(interface));
    }
    /// A device that comes back as another one is no fault of the reset.
    Io<void> reset() override {
        auto done = connection_->reset();
        const bool other = !done && done.error().fault == Fault::disconnected;
        sink_->line(other ? "RESET" : "RESET" + fault_text(done));
        return done;
    }
    Io<void> clear_halt(std::uint8_t endpoint) override {
        return written(fmt::format("CLEAR {:02x}", endpoint), connection_->clear_halt(endpoint));
    }

    Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) override {
        const auto id = connection_->submit_out(endpoint, bytes);
        if (id) {
            sink_->line_with(fmt::format("BULK OUT ep={:02x} async id={} timeout=0", endpoint, *id),
                             bytes);
        } else {
            refused("BULK OUT", endpoint, bytes.size(), id);
        }
        return id;
    }
    Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType type,
                                MutableBytes bytes) override {
        const auto id = connection_->submit_in(endpoint, type, bytes);
        const char* kind = type == EndpointType::bulk ? "BULK" : "INTR";
        if (!id) {
            refused(fmt::format("{} IN ", kind), endpoint, bytes.size(), id);
        } else {
            sink_->line(fmt::format("{} IN  ep={:02x} async id={} submit len={} timeout=0", kind,
                                    endpoint, *id, bytes.size()));
            rooms_[*id] = {kind, bytes};
        }
        return id;
    }
    Io<std::optional<Completion>> wait(Milliseconds timeout) override {
        const TimePoint start = bus_->now();
        auto completion = connection_->wait(timeout);
        if (completion && *completion) {
            write_down(**completion);
        } else if (completion) {
            // Who only looks whether something is there does not wait.
            if (timeout > Milliseconds(0)) sink_->waited(bus_->now() - start);
        } else if (!wait_failed_) {
            wait_failed_ = true;
            sink_->line("WAIT" + fault_text(completion));
        }
        return completion;
    }
    void interrupt() override { connection_->interrupt(); }
    void cancel(std::uint32_t id) override { connection_->cancel(id); }
    void cancel_all() override { connection_->cancel_all(); }
    void watch(const RunWatch* watch) override { connection_->watch(watch); }
    void note(std::string_view text) override {
        sink_->line(fmt::format("# {}", text));
        connection_->note(text);
    }

  private:
    struct Room {
        const char* kind;
        MutableBytes bytes;
    };

    Io<void> written(const std::string& text, Io<void> done) {
        sink_->line(text + fault_text(done));
        return done;
    }
    void refused(std::string_view kind, std::uint8_t endpoint, std::size_t size,
                 const Io<std::uint32_t>& id) {
        sink_->line(fmt::format("{} ep={:02x} async submit{} len={}", kind, endpoint,
                                fault_text(id), size));
    }

    void write_down(const Completion& completion) {
        const auto room = rooms_.find(completion.id);
        const bool in = room != rooms_.end();
        const char* kind = in ? room->second.kind : "BULK";
        const std::string head =
            fmt::format("{} {} ep={:02x} async id={}", kind, in ? "IN " : "OUT",
                        completion.endpoint, completion.id);
        if (completion.fault == Fault::cancelled) {
            sink_->line(fmt::format("{}     ep={:02x} id={} cancelled", kind, completion.endpoint,
                                    completion.id));
        } else if (completion.fault) {
            sink_->line(fmt::format("{} failed {}", head, to_string(*completion.fault)));
        } else if (in) {
            sink_->line_with(head + " complete", room->second.bytes.first(completion.size));
        } else {
            sink_->line(head + " complete");
        }
        if (in) rooms_.erase(room);
    }

    std::shared_ptr<Bus> bus_;  ///< for its time
    std::unique_ptr<Connection> connection_;
    std::shared_ptr<RecordingSink> sink_;
    bool wait_failed_ = false;
    std::map<std::uint32_t, Room> rooms_;  ///< of the in transfers under way
};

}  // namespace

RecordingBus::RecordingBus(std::shared_ptr<Bus> bus)
    : bus_(std::move(bus)), sink_(std::make_shared<RecordingSink>()) {}
RecordingBus::~RecordingBus() = default;

Recording RecordingBus::recording() const {
    return sink_->recording();
}

Io<std::vector<DeviceInfo>> RecordingBus::list() {
    return bus_->list();
}

Io<std::unique_ptr<Connection>> RecordingBus::open(const DeviceInfo& device) {
    auto connection = bus_->open(device);
    sink_->line(
        fmt::format("OPEN {:04x}:{:04x}{}", device.vendor, device.product, fault_text(connection)));
    if (!connection) return connection;
    return std::make_unique<RecordingConnection>(bus_, std::move(*connection), sink_);
}

std::uint64_t RecordingBus::changes() const {
    return bus_->changes();
}
void RecordingBus::wait_for_change(std::uint64_t seen, Milliseconds most) {
    bus_->wait_for_change(seen, most);
}
TimePoint RecordingBus::now() {
    return bus_->now();
}
void RecordingBus::sleep(Milliseconds time) {
    bus_->sleep(time);
}

}  // namespace reef::edgetpu::usb

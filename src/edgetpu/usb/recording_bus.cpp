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
        recording_.text += fmt::format("{:06d} {}\n", number_++, text);
    }
    /// The line with "len=... off=... data=..." behind it.
    void line_with(std::string_view text, Bytes payload) {
        const std::lock_guard lock(mutex_);
        recording_.text += fmt::format("{:06d} {}{}\n", number_++, text, append(payload));
    }
    [[nodiscard]] Recording recording() const {
        const std::lock_guard lock(mutex_);
        return recording_;
    }

  private:
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

    mutable std::mutex mutex_;
    Recording recording_;
    std::size_t number_ = 0;
};

namespace {

int result_of(const Io<std::size_t>& done) {
    return done ? static_cast<int>(*done) : -1 - static_cast<int>(done.error().fault);
}

class RecordingConnection final : public Connection {
  public:
    RecordingConnection(std::unique_ptr<Connection> connection, std::shared_ptr<RecordingSink> sink)
        : connection_(std::move(connection)), sink_(std::move(sink)) {}
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
                        "wLength={} timeout={} ret={}",
                        setup.to_host() ? "IN " : "OUT", setup.request_type, setup.request,
                        setup.value, setup.index, setup.length, timeout.count(), result_of(done)),
            data.first(std::min(shown, data.size())));
        return done;
    }
    Io<void> claim(unsigned interface) override {
        sink_->line(fmt::format("CLAIM {}", interface));
        return connection_->claim(interface);
    }
    Io<void> release(unsigned interface) override {
        sink_->line(fmt::format("RELEASE {}", interface));
        return connection_->release(interface);
    }
    Io<void> reset() override {
        sink_->line("RESET");
        return connection_->reset();
    }
    Io<void> clear_halt(std::uint8_t endpoint) override {
        sink_->line(fmt::format("CLEAR {:02x}", endpoint));
        return connection_->clear_halt(endpoint);
    }

    Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) override {
        const auto id = connection_->submit_out(endpoint, bytes);
        if (id) {
            sink_->line_with(fmt::format("BULK OUT ep={:02x} async id={} timeout=0", endpoint, *id),
                             bytes);
        }
        return id;
    }
    Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType type,
                                MutableBytes bytes) override {
        const auto id = connection_->submit_in(endpoint, type, bytes);
        if (id) {
            const char* kind = type == EndpointType::bulk ? "BULK" : "INTR";
            sink_->line(fmt::format("{} IN  ep={:02x} async id={} submit len={} timeout=0", kind,
                                    endpoint, *id, bytes.size()));
            rooms_[*id] = {kind, bytes};
        }
        return id;
    }
    Io<std::optional<Completion>> wait(Milliseconds timeout) override {
        auto completion = connection_->wait(timeout);
        if (completion && *completion) write_down(**completion);
        return completion;
    }
    void cancel(std::uint32_t id) override { connection_->cancel(id); }
    void cancel_all() override { connection_->cancel_all(); }
    void note(std::string_view text) override {
        sink_->line(fmt::format("# {}", text));
        connection_->note(text);
    }

  private:
    struct Room {
        const char* kind;
        MutableBytes bytes;
    };

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

    std::unique_ptr<Connection> connection_;
    std::shared_ptr<RecordingSink> sink_;
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
    if (!connection) return connection;
    sink_->line(fmt::format("OPEN {:04x}:{:04x}", device.vendor, device.product));
    return std::make_unique<RecordingConnection>(std::move(*connection), sink_);
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

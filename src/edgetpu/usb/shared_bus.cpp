#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "edgetpu/usb/shared_request.h"

namespace reef::edgetpu::usb {
namespace {

Packet request_of(SharedRequest what) {
    return Packet().put(what);
}

class SharedConnection final : public Connection {
  public:
    SharedConnection(Exchange exchange, Speed speed)
        : exchange_(std::move(exchange)), speed_(speed) {}
    ~SharedConnection() override { static_cast<void>(exchange_(request_of(SharedRequest::close))); }

    Speed speed() const override { return speed_; }

    Io<std::size_t> control(const Setup& setup, MutableBytes data, Milliseconds timeout) override {
        auto request = request_of(SharedRequest::control);
        request.put(setup).put(static_cast<std::int64_t>(timeout.count())).put_bytes(data);
        auto answer = exchange_(request);
        const auto done = take_outcome(answer);
        if (!done) return std::unexpected(done.error());
        const auto moved = answer->take<std::uint64_t>();
        if (setup.to_host()) {
            const Bytes came = answer->take_bytes();
            std::ranges::copy(came.first(std::min(came.size(), data.size())), data.begin());
        }
        return static_cast<std::size_t>(moved);
    }
    Io<void> claim(unsigned interface) override {
        return plain(request_of(SharedRequest::claim).put(interface));
    }
    Io<void> release(unsigned interface) override {
        return plain(request_of(SharedRequest::release).put(interface));
    }
    Io<void> reset() override { return plain(request_of(SharedRequest::reset)); }
    Io<void> clear_halt(std::uint8_t endpoint) override {
        return plain(request_of(SharedRequest::clear_halt).put(endpoint));
    }
    Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) override {
        auto request = request_of(SharedRequest::submit_out);
        return submit(request.put(endpoint)
                          .put(EndpointType::bulk)
                          .put(static_cast<std::uint64_t>(bytes.size()))
                          .put_bytes(bytes));
    }
    Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType type,
                                MutableBytes room) override {
        auto request = request_of(SharedRequest::submit_in);
        const auto id = submit(request.put(endpoint)
                                   .put(type)
                                   .put(static_cast<std::uint64_t>(room.size()))
                                   .put_bytes({}));
        if (id) rooms_[*id] = room;
        return id;
    }
    Io<std::optional<Completion>> wait(Milliseconds timeout) override {
        const TimePoint end = std::chrono::steady_clock::now() + timeout;
        while (true) {
            auto completion = look();
            const bool over = std::chrono::steady_clock::now() >= end;
            if (!completion || *completion || over) return completion;
            std::this_thread::sleep_for(Milliseconds(1));
        }
    }
    void cancel(std::uint32_t id) override {
        static_cast<void>(exchange_(request_of(SharedRequest::cancel).put(id)));
    }
    void cancel_all() override {
        static_cast<void>(exchange_(request_of(SharedRequest::cancel_all)));
    }

  private:
    /// What has ended, if anything has.
    Io<std::optional<Completion>> look() {
        auto answer = exchange_(request_of(SharedRequest::wait));
        const auto done = take_outcome(answer);
        if (!done) return std::unexpected(done.error());
        if (answer->take<std::uint8_t>() == 0) return std::optional<Completion>();
        Completion completion;
        completion.id = answer->take<std::uint32_t>();
        completion.endpoint = answer->take<std::uint8_t>();
        const bool failed = answer->take<std::uint8_t>() != 0;
        const auto fault = answer->take<Fault>();
        if (failed) completion.fault = fault;
        completion.size = static_cast<std::size_t>(answer->take<std::uint64_t>());
        const Bytes came = answer->take_bytes();
        if (const auto room = rooms_.extract(completion.id); !room.empty()) {
            std::ranges::copy(came.first(std::min(came.size(), room.mapped().size())),
                              room.mapped().begin());
        }
        return completion;
    }
    Io<void> plain(const Packet& request) {
        auto answer = exchange_(request);
        return take_outcome(answer);
    }
    Io<std::uint32_t> submit(const Packet& request) {
        auto answer = exchange_(request);
        const auto done = take_outcome(answer);
        if (!done) return std::unexpected(done.error());
        return answer->take<std::uint32_t>();
    }

    Exchange exchange_;
    Speed speed_;
    std::map<std::uint32_t, MutableBytes> rooms_;  ///< of the in transfers under way
};

}  // namespace

SharedBus::SharedBus(Connect connect, std::string port)
    : connect_(std::move(connect)), port_(std::move(port)), exchange_(connect_()) {}

std::optional<std::vector<std::string>> SharedBus::ports(const Connect& connect) {
    const auto exchange = connect();
    if (!exchange) return std::nullopt;
    auto answer = (*exchange)(request_of(SharedRequest::ports));
    if (!answer) return std::nullopt;
    std::vector<std::string> ports;
    for (auto left = answer->take<std::uint32_t>(); left != 0 && answer->good(); --left)
        ports.push_back(answer->take_text());
    if (!answer->good()) return std::nullopt;
    return ports;
}

std::optional<Packet> SharedBus::ask(const Packet& request) const {
    const std::lock_guard lock(mutex_);
    if (!exchange_) return std::nullopt;
    return (*exchange_)(request);
}

Io<std::vector<DeviceInfo>> SharedBus::list() {
    auto answer = ask(request_of(SharedRequest::list).put_text(port_));
    std::vector<DeviceInfo> devices;
    if (answer && answer->take<std::uint8_t>() != 0) devices.push_back(take_device(*answer));
    return devices;
}

Io<std::unique_ptr<Connection>> SharedBus::open(const DeviceInfo& device) {
    auto exchange = connect_();
    auto request = request_of(SharedRequest::open);
    put_device(request, device);
    auto answer = exchange ? (*exchange)(request) : std::nullopt;
    const auto done = take_outcome(answer);
    if (!done) return std::unexpected(done.error());
    return std::make_unique<SharedConnection>(std::move(*exchange), answer->take<Speed>());
}

Result<StickDescriptors> SharedBus::descriptors(std::string_view port) const {
    auto answer = ask(request_of(SharedRequest::descriptors).put_text(port));
    StickDescriptors all;
    const auto bytes = [&] {
        const Bytes taken = answer->take_bytes();
        return std::vector<std::byte>(taken.begin(), taken.end());
    };
    if (answer) {
        all.device = bytes();
        all.configuration = bytes();
        all.object_store = bytes();
        for (auto left = answer->take<std::uint32_t>(); left != 0 && answer->good(); --left)
            all.strings.push_back(bytes());
    }
    if (!answer || !answer->good())
        return fail(Cause::device_missing, fmt::format("no simulated stick at USB port {}", port));
    return all;
}

std::string SharedBus::standstill(std::string_view port) const {
    auto answer = ask(request_of(SharedRequest::standstill).put_text(port));
    return answer ? answer->take_text() : std::string();
}

std::string SharedBus::refusal(std::string_view port) const {
    auto answer = ask(request_of(SharedRequest::refusal).put_text(port));
    return answer ? answer->take_text() : std::string();
}

}  // namespace reef::edgetpu::usb

#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/usb/shared_request.h"

namespace reef::edgetpu::usb {
namespace {

/// Of one transfer; the largest that libusb's users make are 1 MiB.
constexpr std::size_t most_bytes = std::size_t{64} << 20;

std::unexpected<Failure> busy(std::string_view what) {
    return std::unexpected(
        Failure{Fault::busy, fmt::format("{}: another process has claimed the interface", what)});
}

}  // namespace

struct StickServer::Stick {
    std::string port;
    SimulatedBus bus;
    TimePoint plugged = std::chrono::steady_clock::now();

    std::mutex mutex;  ///< of what follows
    std::map<unsigned, const Session*> claims;

    void pass_time() {
        const std::lock_guard lock(mutex);
        const auto real = std::chrono::steady_clock::now() - plugged;
        const auto behind = std::chrono::floor<Milliseconds>(real - bus.now().time_since_epoch());
        if (behind.count() > 0) bus.sleep(behind);
    }
    /// Also when the session has it already.
    bool claim(unsigned interface, const Session* session) {
        const std::lock_guard lock(mutex);
        return claims.try_emplace(interface, session).first->second == session;
    }
    bool others_claim(const Session* session) {
        const std::lock_guard lock(mutex);
        return std::ranges::any_of(claims,
                                   [&](const auto& each) { return each.second != session; });
    }
    void release(unsigned interface, const Session* session) {
        const std::lock_guard lock(mutex);
        const auto found = claims.find(interface);
        if (found != claims.end() && found->second == session) claims.erase(found);
    }
    void release_all(const Session* session) {
        const std::lock_guard lock(mutex);
        std::erase_if(claims, [&](const auto& each) { return each.second == session; });
    }
};

void StickServer::plug(const StickOptions& options, std::unique_ptr<ChipCore> core) {
    auto stick = std::make_shared<Stick>();
    stick->port = options.port;
    stick->bus.plug(options, std::move(core));
    sticks_.push_back(std::move(stick));
}

StickServer::Stick* StickServer::find(std::string_view port) {
    const auto found =
        std::ranges::find_if(sticks_, [&](const auto& each) { return each->port == port; });
    return found == sticks_.end() ? nullptr : found->get();
}

struct StickServer::Session::State {
    const Session* session = nullptr;
    Stick* stick = nullptr;  ///< of the open device
    std::unique_ptr<Connection> connection;
    /// Of transfers under way: what is sent, or room for what comes.
    std::map<std::uint32_t, std::vector<std::byte>> payloads;

    void close() {
        connection.reset();
        payloads.clear();
        if (stick != nullptr) stick->release_all(session);
        stick = nullptr;
    }
    void of_a_port(SharedRequest what, StickServer& server, Packet& request, Packet& answer);
    void open(StickServer& server, Packet& request, Packet& answer);
    void of_the_device(SharedRequest what, Packet& request, Packet& answer);
    void control(Packet& request, Packet& answer);
    void interface(SharedRequest what, Packet& request, Packet& answer);
    void submit(bool in, Packet& request, Packet& answer);
    void wait(Packet& answer);
};

StickServer::Session::Session(StickServer& server)
    : server_(server), state_(std::make_unique<State>()) {
    state_->session = this;
}
StickServer::Session::~Session() {
    state_->close();
}

Packet StickServer::Session::answer(Packet request) {
    Packet answer;
    const auto what = request.take<SharedRequest>();
    if (!request.good()) return answer;
    switch (what) {
        case SharedRequest::ports:
            answer.put(static_cast<std::uint32_t>(server_.sticks_.size()));
            for (const auto& stick : server_.sticks_) answer.put_text(stick->port);
            return answer;
        case SharedRequest::list:
        case SharedRequest::descriptors:
        case SharedRequest::standstill:
        case SharedRequest::refusal:
            state_->of_a_port(what, server_, request, answer);
            return answer;
        case SharedRequest::open:
            state_->open(server_, request, answer);
            return answer;
        case SharedRequest::close:
            state_->close();
            return answer;
        default:
            state_->of_the_device(what, request, answer);
            return answer;
    }
}

void StickServer::Session::State::of_a_port(SharedRequest what, StickServer& server,
                                            Packet& request, Packet& answer) {
    Stick* const one = server.find(request.take_text());
    if (one == nullptr) return;
    one->pass_time();
    if (what == SharedRequest::standstill) {
        answer.put_text(one->bus.standstill(one->port));
    } else if (what == SharedRequest::refusal) {
        answer.put_text(one->bus.refusal(one->port));
    } else if (what == SharedRequest::list) {
        const auto devices = one->bus.list();
        answer.put(devices && !devices->empty());
        if (devices && !devices->empty()) put_device(answer, devices->front());
    } else if (const auto all = one->bus.descriptors(one->port)) {
        answer.put_bytes(all->device).put_bytes(all->configuration).put_bytes(all->object_store);
        answer.put(static_cast<std::uint32_t>(all->strings.size()));
        for (const auto& text : all->strings) answer.put_bytes(text);
    }
}

void StickServer::Session::State::open(StickServer& server, Packet& request, Packet& answer) {
    const DeviceInfo device = take_device(request);
    Stick* const one = server.find(device.port);
    close();
    if (!request.good() || one == nullptr) return;
    one->pass_time();
    auto opened = one->bus.open(device);
    put_outcome(answer, opened);
    if (!opened) return;
    stick = one;
    connection = std::move(*opened);
    answer.put(connection->speed());
}

void StickServer::Session::State::of_the_device(SharedRequest what, Packet& request,
                                                Packet& answer) {
    if (!connection) return;
    stick->pass_time();
    switch (what) {
        case SharedRequest::control:
            return control(request, answer);
        case SharedRequest::claim:
        case SharedRequest::release:
            return interface(what, request, answer);
        case SharedRequest::reset:
            put_outcome(answer, stick->others_claim(session) ? Io<void>(busy("bus reset"))
                                                             : connection->reset());
            return;
        case SharedRequest::clear_halt:
            put_outcome(answer, connection->clear_halt(request.take<std::uint8_t>()));
            return;
        case SharedRequest::submit_out:
        case SharedRequest::submit_in:
            return submit(what == SharedRequest::submit_in, request, answer);
        case SharedRequest::wait:
            return wait(answer);
        case SharedRequest::cancel:
            connection->cancel(request.take<std::uint32_t>());
            return;
        case SharedRequest::cancel_all:
            connection->cancel_all();
            return;
        default:
            return;
    }
}

void StickServer::Session::State::control(Packet& request, Packet& answer) {
    const auto setup = request.take<Setup>();
    const auto timeout = Milliseconds(request.take<std::int64_t>());
    const Bytes given = request.take_bytes();
    if (!request.good()) return;
    std::vector<std::byte> data(setup.length);
    std::ranges::copy(given.first(std::min(given.size(), data.size())), data.begin());
    const auto done = connection->control(setup, data, timeout);
    put_outcome(answer, done);
    if (!done) return;
    answer.put(static_cast<std::uint64_t>(*done));
    if (setup.to_host()) answer.put_bytes(Bytes(data).first(std::min(*done, data.size())));
}

/// An interface has one user among all processes.
void StickServer::Session::State::interface(SharedRequest what, Packet& request, Packet& answer) {
    const auto number = request.take<unsigned>();
    if (what == SharedRequest::release) {
        stick->release(number, session);
        put_outcome(answer, connection->release(number));
    } else if (stick->claim(number, session)) {
        put_outcome(answer, connection->claim(number));
    } else {
        put_outcome(answer, Io<void>(busy("claim")));
    }
}

void StickServer::Session::State::submit(bool in, Packet& request, Packet& answer) {
    const auto endpoint = request.take<std::uint8_t>();
    const auto type = request.take<EndpointType>();
    const auto size = request.take<std::uint64_t>();
    const Bytes given = request.take_bytes();
    if (!request.good() || size > most_bytes) return;
    std::vector<std::byte> payload(given.begin(), given.end());
    if (in) payload.assign(size, std::byte{0});
    const auto id = in ? connection->submit_in(endpoint, type, payload)
                       : connection->submit_out(endpoint, payload);
    put_outcome(answer, id);
    if (!id) return;
    answer.put(*id);
    payloads.insert_or_assign(*id, std::move(payload));
}

void StickServer::Session::State::wait(Packet& answer) {
    const auto completion = connection->wait(Milliseconds(0));
    put_outcome(answer, completion);
    if (!completion) return;
    answer.put(completion->has_value());
    if (!*completion) return;
    const Completion& one = **completion;
    const auto payload = payloads.extract(one.id);
    const bool in = (one.endpoint & 0x80U) != 0;
    const Bytes came = in && !payload.empty() ? Bytes(payload.mapped()) : Bytes();
    answer.put(one.id).put(one.endpoint).put(one.fault.has_value());
    answer.put(one.fault.value_or(Fault::failed)).put(static_cast<std::uint64_t>(one.size));
    answer.put_bytes(came.first(std::min(one.size, came.size())));
}

}  // namespace reef::edgetpu::usb

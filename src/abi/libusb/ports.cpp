#include "abi/libusb/ports.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "abi/libusb/log.h"
#include "abi/libusb/sharing.h"

namespace reef::abi::libusb {
namespace {

using edgetpu::usb::DeviceInfo;
using edgetpu::usb::Milliseconds;

/// The numbers of "2-1.4": the bus and its ports.
std::vector<std::uint8_t> numbers_of(const std::string& port) {
    std::vector<std::uint8_t> numbers;
    const char *at = port.data(), *end = port.data() + port.size();
    while (at < end) {
        std::uint8_t value = 0;
        at = std::from_chars(at, end, value).ptr + 1;
        numbers.push_back(value);
    }
    return numbers;
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

}  // namespace

Port::Port(const edgetpu::usb::StickOptions& stick, std::unique_ptr<edgetpu::usb::ChipCore> core,
           std::string record)
    : name_(stick.port), record_(std::move(record)), process_(::getpid()) {
    auto bus = std::make_shared<edgetpu::usb::SimulatedBus>();
    bus->plug(stick, std::move(core));
    stick_ = std::move(bus);
    comes_back_ = std::ranges::any_of(
        stick.faults, [](const auto& fault) { return fault.back_after.has_value(); });
    if (!record_.empty()) recorder_ = std::make_shared<edgetpu::usb::RecordingBus>(stick_);
}

Port::Port(std::string name, std::shared_ptr<edgetpu::usb::StickBus> shared, std::string record)
    : name_(std::move(name)),
      stick_(std::move(shared)),
      record_(std::move(record)),
      process_(::getpid()),
      shared_(true) {
    if (!record_.empty()) recorder_ = std::make_shared<edgetpu::usb::RecordingBus>(stick_);
}

edgetpu::usb::Bus& Port::bus() {
    if (recorder_) return *recorder_;
    return *stick_;
}

void Port::pass_time() {
    const auto real = std::chrono::steady_clock::now() - plugged_;
    const auto behind = std::chrono::floor<Milliseconds>(real - stick_->now().time_since_epoch());
    if (behind.count() > 0) stick_->sleep(behind);
}

void Port::save() const {
    // A forked child has only a copy of what its parent did.
    if (!recorder_ || ::getpid() != process_) return;
    const auto recording = recorder_->recording();
    if (recording.text.empty()) return;
    if (auto written = edgetpu::usb::write_recording(record_, recording); !written) {
        complain(written.error().message());
    }
}

namespace {

/// With several sticks each has a recording of its own.
std::string record_of(const Settings& settings, const std::string& port, std::size_t ports) {
    if (settings.record.empty() || ports == 1) return settings.record;
    return settings.record + "." + port;
}

Result<std::vector<std::unique_ptr<Port>>> own_ports(const Settings& settings) {
    std::vector<std::unique_ptr<Port>> ports;
    for (const auto& stick : settings.sticks) {
        auto core = REEF_TRY(make_core(settings));
        ports.push_back(std::make_unique<Port>(
            stick, std::move(core), record_of(settings, stick.port, settings.sticks.size())));
    }
    return ports;
}

Result<std::vector<std::unique_ptr<Port>>> shared_ports(const Settings& settings) {
    edgetpu::usb::StickServer server;
    for (const auto& stick : settings.sticks) server.plug(stick, REEF_TRY(make_core(settings)));
    const auto connect = REEF_TRY(join_server(settings.shared, server));
    const auto names = edgetpu::usb::SharedBus::ports(connect);
    if (!names)
        return fail(Cause::io_failed, "no answer",
                    fmt::format("REEF_USB_SHARED {}", settings.shared),
                    "another program has that socket: name another file");
    std::vector<std::unique_ptr<Port>> ports;
    for (const std::string& name : *names) {
        ports.push_back(
            std::make_unique<Port>(name, std::make_shared<edgetpu::usb::SharedBus>(connect, name),
                                   record_of(settings, name, names->size())));
    }
    return ports;
}

}  // namespace

Result<Ports*> Ports::get() {
    // Never destroyed: handles that a program leaves open work until the process ends.
    static const auto& all = *new Result<Ports*>([]() -> Result<Ports*> {
        const Settings settings = REEF_TRY(read_settings(variable));
        auto ports =
            REEF_TRY(settings.shared.empty() ? own_ports(settings) : shared_ports(settings));
        return new Ports(std::move(ports), settings.hotplug);
    }());
    return all;
}

Ports::Ports(std::vector<std::unique_ptr<Port>> ports, bool hotplug)
    : hotplug_(hotplug), ports_(std::move(ports)) {
    for (const auto& port : ports_) refresh(*port);
    any_shared_ = std::ranges::any_of(ports_, &Port::shared_);
    const bool watched = any_shared_ || std::ranges::any_of(ports_, &Port::comes_back_);
    if (watched) watcher_ = std::thread([this] { watch(); });
    std::atexit([] {
        if (const auto all = get()) (*all)->save();
    });
}

std::vector<std::shared_ptr<Node>> Ports::nodes() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Node>> nodes;
    for (const auto& port : ports_) {
        if (port->node_) nodes.push_back(port->node_);
    }
    return nodes;
}

std::shared_ptr<Node> Ports::node_of(Port& port, const DeviceInfo& info) {
    auto numbers = numbers_of(port.name());
    const std::uint8_t bus = numbers.front();
    numbers.erase(numbers.begin());
    // Address 1 is the root hub's; they run from 2 to 127 and then from 2 again.
    unsigned& last = last_address_.try_emplace(bus, 1).first->second;
    last = last >= 127 ? 2 : last + 1;
    auto descriptors = port.stick().descriptors(port.name());
    if (!descriptors) return nullptr;
    return std::shared_ptr<Node>(new Node{.port = port,
                                          .info = info,
                                          .descriptors = std::move(*descriptors),
                                          .bus = bus,
                                          .address = static_cast<std::uint8_t>(last),
                                          .port_numbers = std::move(numbers),
                                          .mutex = {},
                                          .claims = {},
                                          .users = {}});
}

void Ports::refresh(Port& port) {
    const std::lock_guard refreshing(port.refreshing_);
    port.pass_time();
    const auto there = port.stick().list();
    const DeviceInfo* now = there && !there->empty() ? &there->front() : nullptr;
    std::shared_ptr<Node> left, arrived;
    {
        const std::lock_guard lock(mutex_);
        const bool same = now == nullptr ? !port.node_ : port.node_ && port.node_->info == *now;
        if (same) return;
        left = std::exchange(port.node_, now == nullptr ? nullptr : node_of(port, *now));
        arrived = port.node_;
        for (PortListener* context : contexts_) {
            if (left) context->device_left(*left);
            if (arrived) context->device_arrived(arrived);
        }
        if (!arrived && port.comes_back_) away_.notify_all();
    }
    if (!left) return;
    const std::lock_guard lock(left->mutex);
    for (NodeUser* user : left->users) user->device_is_gone();
}

/// Brings back the sticks whose time has come, and sees what other processes do to shared ones.
/// Time passes for a stick that nobody uses, too.
void Ports::watch() {
    const auto away = [](const std::unique_ptr<Port>& port) {
        return port->shared_ || (!port->node_ && port->comes_back_);
    };
    const Milliseconds pause(any_shared_ ? 50 : 5);
    std::unique_lock lock(mutex_);
    while (true) {
        away_.wait(lock, [&] { return std::ranges::any_of(ports_, away); });
        std::vector<Port*> due;
        for (const auto& port : ports_) {
            if (away(port)) due.push_back(port.get());
        }
        lock.unlock();
        std::this_thread::sleep_for(pause);
        for (Port* port : due) refresh(*port);
        lock.lock();
    }
}

void Ports::save() {
    for (const auto& port : ports_) port->save();
}

void Ports::attach(PortListener& context) {
    const std::lock_guard lock(mutex_);
    for (const auto& port : ports_) {
        if (port->node_) context.device_is_there(port->node_);
    }
    contexts_.push_back(&context);
}

void Ports::detach(PortListener& context) {
    const std::lock_guard lock(mutex_);
    std::erase(contexts_, &context);
}

}  // namespace reef::abi::libusb

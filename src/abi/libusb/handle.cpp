#include "abi/libusb/handle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <future>

#include "abi/libusb/log.h"

using reef::Bytes;
using reef::MutableBytes;
using reef::abi::libusb::Transfer;
using reef::edgetpu::usb::EndpointType;
using reef::edgetpu::usb::Fault;
using reef::edgetpu::usb::Milliseconds;
using reef::edgetpu::usb::Setup;

namespace {

libusb_transfer_status status_of(Fault fault) {
    switch (fault) {
        case Fault::stall:
            return LIBUSB_TRANSFER_STALL;
        case Fault::timed_out:
            return LIBUSB_TRANSFER_TIMED_OUT;
        case Fault::overflow:
            return LIBUSB_TRANSFER_OVERFLOW;
        case Fault::disconnected:
            return LIBUSB_TRANSFER_NO_DEVICE;
        case Fault::cancelled:
            return LIBUSB_TRANSFER_CANCELLED;
        case Fault::denied:
        case Fault::busy:
        case Fault::no_bus:
        case Fault::failed:
            break;
    }
    return LIBUSB_TRANSFER_ERROR;
}

MutableBytes bytes_of(const libusb_transfer& transfer) {
    return {reinterpret_cast<std::byte*>(transfer.buffer),
            static_cast<std::size_t>(transfer.length)};
}

}  // namespace

libusb_device_handle::libusb_device_handle(reef::abi::libusb::Ports& ports, libusb_device& device,
                                           std::unique_ptr<Connection> connection)
    : ports_(ports), device_(device), connection_(std::move(connection)) {
    const std::lock_guard lock(node().mutex);
    node().users.push_back(this);
    try {
        worker_ = std::thread([this] { work(); });
    } catch (...) {
        node().users.pop_back();
        throw;
    }
    libusb_ref_device(&device_);
}

libusb_device_handle::~libusb_device_handle() {
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    awake_.notify_one();
    worker_.join();
    connection_.reset();
    context().forget(*this);
    context().closed(*this);
    {
        const std::lock_guard lock(node().mutex);
        std::erase(node().users, this);
        std::erase_if(node().claims, [&](const auto& claim) { return claim.second == this; });
    }
    try {
        node().port.save();
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "reef usb: the recording was not written: %s\n", failure.what());
    }
    libusb_unref_device(&device_);
}

void libusb_device_handle::device_is_gone() {
    gone_ = true;
    look_again();
}

void libusb_device_handle::look_again() {
    {
        const std::lock_guard lock(mutex_);
        look_again_ = true;
    }
    awake_.notify_one();
}

void libusb_device_handle::queue(Command command) {
    {
        const std::lock_guard lock(mutex_);
        commands_.push_back(std::move(command));
    }
    awake_.notify_one();
}

void libusb_device_handle::start(Transfer& transfer) {
    queue({.kind = Command::Kind::start, .transfer = &transfer, .call = {}});
}
void libusb_device_handle::stop(Transfer& transfer) {
    queue({.kind = Command::Kind::stop, .transfer = &transfer, .call = {}});
}

libusb_device_handle::Io<void> libusb_device_handle::in_turn(
    std::function<Io<void>(Connection&)> action) {
    std::promise<Io<void>> promise;
    auto done = promise.get_future();
    queue({.kind = Command::Kind::call, .transfer = nullptr, .call = [&] {
               try {
                   auto result = action(*connection_);
                   ports_.refresh(node().port);
                   promise.set_value(std::move(result));
               } catch (...) {
                   promise.set_exception(std::current_exception());
               }
           }});
    return done.get();
}

libusb_device_handle::Io<void> libusb_device_handle::claim(unsigned interface) {
    return in_turn([=](Connection& connection) { return connection.claim(interface); });
}
libusb_device_handle::Io<void> libusb_device_handle::release(unsigned interface) {
    // The system ends what is under way on the interface's endpoints.
    return in_turn([=, this](Connection& connection) {
        connection.cancel_all();
        collect();
        return connection.release(interface);
    });
}
libusb_device_handle::Io<void> libusb_device_handle::clear_halt(std::uint8_t endpoint) {
    return in_turn([=](Connection& connection) { return connection.clear_halt(endpoint); });
}
libusb_device_handle::Io<void> libusb_device_handle::reset() {
    return in_turn([this](Connection& connection) {
        cancel_pending();
        return connection.reset();
    });
}

// -- The worker -----------------------------------------------------------------------------------

void libusb_device_handle::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        awake_.wait(lock, [&] { return ends_ || look_again_ || !commands_.empty(); });
        if (ends_) return;
        look_again_ = false;
        const auto commands = std::exchange(commands_, {});
        lock.unlock();
        for (const Command& command : commands) {
            node().port.pass_time();
            execute(command);
            collect();
        }
        if (commands.empty()) collect();
        ports_.refresh(node().port);
        if (gone_) fail_pending();
        lock.lock();
    }
}

void libusb_device_handle::execute(const Command& command) {
    switch (command.kind) {
        case Command::Kind::start:
            return begin(*command.transfer);
        case Command::Kind::stop:
            return cancel(*command.transfer);
        case Command::Kind::call:
            return command.call();
    }
}

void libusb_device_handle::finish(Transfer& transfer, libusb_transfer_status status,
                                  std::size_t moved) {
    if (status == LIBUSB_TRANSFER_STALL) explain();
    transfer.context->finished(transfer, status, static_cast<int>(moved));
}

void libusb_device_handle::begin(Transfer& transfer) {
    const libusb_transfer& open = transfer.open();
    if (gone_) return finish(transfer, LIBUSB_TRANSFER_NO_DEVICE, 0);
    if (open.type == LIBUSB_TRANSFER_TYPE_CONTROL) return begin_control(transfer);
    const bool in = (open.endpoint & LIBUSB_ENDPOINT_IN) != 0;
    const auto type =
        open.type == LIBUSB_TRANSFER_TYPE_INTERRUPT ? EndpointType::interrupt : EndpointType::bulk;
    const auto id = in ? connection_->submit_in(open.endpoint, type, bytes_of(open))
                       : connection_->submit_out(open.endpoint, bytes_of(open));
    if (!id) return finish(transfer, status_of(id.error().fault), 0);
    pending_[*id] = &transfer;
    if (in) return;
    collect();
    const std::lock_guard lock(node().mutex);
    for (reef::abi::libusb::NodeUser* user : node().users) {
        if (user != this) user->look_again();
    }
}

void libusb_device_handle::begin_control(Transfer& transfer) {
    const libusb_transfer& open = transfer.open();
    const auto* setup = reinterpret_cast<const libusb_control_setup*>(open.buffer);
    const Setup request{.request_type = setup->bmRequestType,
                        .request = setup->bRequest,
                        .value = libusb_le16_to_cpu(setup->wValue),
                        .index = libusb_le16_to_cpu(setup->wIndex),
                        .length = libusb_le16_to_cpu(setup->wLength)};
    const auto data = bytes_of(open).subspan(LIBUSB_CONTROL_SETUP_SIZE, request.length);
    const auto done = connection_->control(request, data, Milliseconds(open.timeout));
    if (done) return finish(transfer, LIBUSB_TRANSFER_COMPLETED, *done);
    if (done.error().fault != Fault::timed_out) {
        return finish(transfer, status_of(done.error().fault), 0);
    }
    // Its own timeout ends it, or its program.
    unanswered_.push_back(&transfer);
}

/// One that is neither pending nor unanswered has ended, and its program may have freed it.
void libusb_device_handle::cancel(Transfer& transfer) {
    const auto pending =
        std::ranges::find(pending_, &transfer, [](const auto& each) { return each.second; });
    const bool unanswered = std::erase(unanswered_, &transfer) != 0;
    if (pending == pending_.end() && !unanswered) return;
    if (transfer.timed_out) explain();
    if (unanswered) return finish(transfer, LIBUSB_TRANSFER_CANCELLED, 0);
    connection_->cancel(pending->first);
}

void libusb_device_handle::cancel_pending() {
    for (Transfer* transfer : std::exchange(unanswered_, {})) {
        finish(*transfer, LIBUSB_TRANSFER_CANCELLED, 0);
    }
    connection_->cancel_all();
    collect();
}

/// Takes what the connection has completed.
void libusb_device_handle::collect() {
    while (!pending_.empty()) {
        const auto completion = connection_->wait(Milliseconds(0));
        if (!completion) {
            if (completion.error().fault == Fault::disconnected) gone_ = true;
            return;
        }
        if (!*completion) return;
        const auto it = pending_.find((*completion)->id);
        if (it == pending_.end()) continue;
        Transfer& transfer = *it->second;
        pending_.erase(it);
        const auto fault = (*completion)->fault;
        finish(transfer, fault ? status_of(*fault) : LIBUSB_TRANSFER_COMPLETED,
               (*completion)->size);
    }
}

void libusb_device_handle::fail_pending() {
    for (Transfer* transfer : std::exchange(unanswered_, {})) {
        finish(*transfer, LIBUSB_TRANSFER_NO_DEVICE, 0);
    }
    for (const auto& [id, transfer] : std::exchange(pending_, {})) {
        finish(*transfer, LIBUSB_TRANSFER_NO_DEVICE, 0);
    }
}

/// Programs only see that an endpoint refuses or does not answer; why is told here, once.
void libusb_device_handle::explain() {
    auto& port = node().port;
    std::string reason = port.stick().refusal(port.name());
    if (!reason.empty()) {
        reason = fmt::format("the stick at {} refuses a transfer: {}", port.name(), reason);
    } else if (reason = port.stick().standstill(port.name()); !reason.empty()) {
        reason = fmt::format("the chip at {} stands still: {}", port.name(), reason);
    }
    if (reason.empty() || reason == explained_) return;
    reef::abi::libusb::complain(reason);
    explained_ = std::move(reason);
}

#include "abi/libusb/context.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

using reef::abi::libusb::Transfer;

namespace reef::abi::libusb {
namespace {

thread_local const libusb_context* handling = nullptr;

void drain(int descriptor) {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(descriptor, &count, sizeof count);
}

}  // namespace

InCallbacks::InCallbacks(const libusb_context& context) : outer_(handling) {
    handling = &context;
}
InCallbacks::~InCallbacks() {
    handling = outer_;
}

}  // namespace reef::abi::libusb

libusb_context::libusb_context() {
    event_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (event_fd_ >= 0 && timer_fd_ >= 0) return;
    const int error = errno;
    ::close(event_fd_);
    ::close(timer_fd_);
    throw std::system_error(error, std::generic_category());
}

libusb_context::~libusb_context() {
    for (const HotplugMessage& message : messages_) libusb_unref_device(message.device);
    for (libusb_device* device : devices_) libusb_unref_device(device);
    ::close(event_fd_);
    ::close(timer_fd_);
}

// -- Devices --------------------------------------------------------------------------------------

std::vector<libusb_device*> libusb_context::devices() {
    const std::lock_guard lock(mutex_);
    if (!discovers_) return {};
    for (libusb_device* device : devices_) ++device->references;
    return devices_;
}

void libusb_context::device_is_there(const std::shared_ptr<Node>& node) {
    const std::lock_guard lock(mutex_);
    devices_.push_back(new libusb_device{.context = this, .node = node});
}

void libusb_context::device_arrived(const std::shared_ptr<Node>& node) {
    const std::lock_guard lock(mutex_);
    auto* device = new libusb_device{.context = this, .node = node};
    devices_.push_back(device);
    if (!discovers_ || hotplug_.empty()) return;
    ++device->references;
    messages_.push_back({device, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED});
    signal();
}

void libusb_context::device_left(const Node& node) {
    const std::lock_guard lock(mutex_);
    const auto it = std::ranges::find_if(
        devices_, [&](const libusb_device* device) { return device->node.get() == &node; });
    if (it == devices_.end()) return;
    libusb_device* device = *it;
    devices_.erase(it);
    device->attached = false;
    if (!discovers_ || hotplug_.empty()) return libusb_unref_device(device);
    messages_.push_back({device, LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT});
    signal();
}

void libusb_context::opened(libusb_device_handle& handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(&handle);
}

void libusb_context::closed(libusb_device_handle& handle) {
    const std::lock_guard lock(mutex_);
    std::erase(handles_, &handle);
}

std::vector<libusb_device_handle*> libusb_context::open_handles() {
    const std::lock_guard lock(mutex_);
    return handles_;
}

// -- Transfers ------------------------------------------------------------------------------------

int libusb_context::submit(Transfer& transfer, TransferMover& mover) {
    const libusb_transfer& open = transfer.open();
    const std::lock_guard lock(mutex_);
    if (transfer.under_way) return LIBUSB_ERROR_BUSY;
    if (mover.is_gone()) return LIBUSB_ERROR_NO_DEVICE;
    transfer.context = this;
    transfer.mover = &mover;
    transfer.under_way = true;
    transfer.cancelling = transfer.timed_out = false;
    transfer.moved = 0;
    transfer.deadline.reset();
    try {
        under_way_.insert(&transfer);
        if (open.timeout != 0) {
            transfer.deadline = Clock::now() + std::chrono::milliseconds(open.timeout);
            deadlines_.insert({*transfer.deadline, &transfer});
            arm_timer();
        }
        mover.start(transfer);
    } catch (...) {
        transfer.under_way = false;
        under_way_.erase(&transfer);
        if (transfer.deadline) deadlines_.erase({*transfer.deadline, &transfer});
        throw;
    }
    reef::abi::libusb::log(log_, LIBUSB_LOG_LEVEL_DEBUG,
                           "submitted transfer {}: endpoint {:02x}, {} bytes", fmt::ptr(&open),
                           open.endpoint, open.length);
    return LIBUSB_SUCCESS;
}

int libusb_context::cancel(Transfer& transfer) {
    const std::lock_guard lock(mutex_);
    if (!transfer.under_way || transfer.cancelling) return LIBUSB_ERROR_NOT_FOUND;
    if (transfer.mover != nullptr && transfer.mover->is_gone()) return LIBUSB_ERROR_NO_DEVICE;
    cancel_locked(transfer);
    return LIBUSB_SUCCESS;
}

void libusb_context::cancel_locked(Transfer& transfer) {
    transfer.mover->stop(transfer);
    transfer.cancelling = true;
}

void libusb_context::finished(Transfer& transfer, libusb_transfer_status status, int moved) {
    const std::lock_guard lock(mutex_);
    transfer.status = status;
    transfer.moved = moved;
    finished_.push_back(&transfer);
    signal();
}

void libusb_context::forget(const TransferMover& mover) {
    const std::lock_guard lock(mutex_);
    std::erase_if(finished_, [&](const Transfer* each) { return each->mover == &mover; });
    std::erase_if(deadlines_, [&](const auto& each) { return each.second->mover == &mover; });
    std::erase_if(under_way_, [&](Transfer* transfer) {
        if (transfer->mover != &mover) return false;
        transfer->under_way = false;
        transfer->mover = nullptr;
        return true;
    });
    arm_timer();
}

/// Sets the timer to the first deadline.
void libusb_context::arm_timer() {
    std::optional<Clock::time_point> first;
    if (!deadlines_.empty()) first = deadlines_.begin()->first;
    if (first == timer_at_) return;
    timer_at_ = first;
    itimerspec time{};
    if (first) {
        const auto ns = std::chrono::nanoseconds(first->time_since_epoch()).count();
        time.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    }
    ::timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &time, nullptr);
}

/// Cancels the transfers whose time is over.
void libusb_context::cancel_late() {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
        Transfer& transfer = *deadlines_.begin()->second;
        if (!transfer.cancelling) {
            transfer.timed_out = true;
            cancel_locked(transfer);
        }
        deadlines_.erase(deadlines_.begin());
    }
    arm_timer();
}

// -- Events ---------------------------------------------------------------------------------------

bool libusb_context::handling_here() const {
    return reef::abi::libusb::handling == this;
}

void libusb_context::signal() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto put = ::write(event_fd_, &one, sizeof one);
}

bool libusb_context::try_lock_events() {
    {
        const std::lock_guard lock(mutex_);
        if (closing_ != 0) return false;
    }
    if (!events_lock_.try_lock()) return false;
    handler_active_ = true;
    return true;
}

void libusb_context::lock_events() {
    events_lock_.lock();
    handler_active_ = true;
}

void libusb_context::unlock_events() {
    handler_active_ = false;
    events_lock_.unlock();
    const std::lock_guard lock(waiters_lock_);
    waiters_.notify_all();
}

bool libusb_context::handling_ok() {
    const std::lock_guard lock(mutex_);
    return closing_ == 0;
}

bool libusb_context::handler_active() {
    return handler_active_ || !handling_ok();
}

void libusb_context::interrupt() {
    signal();
}

bool libusb_context::wait_for_event(std::optional<Clock::duration> time) {
    if (!time) {
        waiters_.wait(waiters_lock_);
        return true;
    }
    return waiters_.wait_for(waiters_lock_, *time) == std::cv_status::no_timeout;
}

void libusb_context::begin_closing() {
    {
        const std::lock_guard lock(mutex_);
        ++closing_;
        signal();
    }
    lock_events();
}

void libusb_context::end_closing() {
    {
        const std::lock_guard lock(mutex_);
        --closing_;
        // A thread that decided to handle events just before returns at once and looks again at
        // what it waits for.
        signal();
    }
    unlock_events();
}

int libusb_context::handle_events(Clock::duration time) {
    if (handling_here()) return LIBUSB_ERROR_BUSY;
    pollfd descriptors[] = {{event_fd_, POLLIN, 0}, {timer_fd_, POLLIN, 0}};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    const int ready = ::poll(descriptors, 2, static_cast<int>(std::clamp<long>(wait, 0, 1 << 30)));
    if (ready < 0) return errno == EINTR ? LIBUSB_ERROR_INTERRUPTED : LIBUSB_ERROR_IO;
    if (ready == 0) return LIBUSB_SUCCESS;
    if (descriptors[1].revents != 0) {
        reef::abi::libusb::drain(timer_fd_);
        {
            const std::lock_guard lock(mutex_);
            timer_at_.reset();
        }
        cancel_late();
    }
    if (descriptors[0].revents == 0) return LIBUSB_SUCCESS;
    reef::abi::libusb::drain(event_fd_);

    // What comes up from now on signals again.
    std::unique_lock lock(mutex_);
    std::size_t messages = messages_.size(), transfers = finished_.size();
    for (; messages != 0 && !messages_.empty(); --messages) {
        const HotplugMessage message = messages_.front();
        messages_.pop_front();
        lock.unlock();
        deliver(message);
        lock.lock();
    }
    for (; transfers != 0 && !finished_.empty(); --transfers) {
        Transfer& transfer = *finished_.front();
        finished_.pop_front();
        lock.unlock();
        complete(transfer);
        lock.lock();
    }
    return LIBUSB_SUCCESS;
}

void libusb_context::complete(Transfer& transfer) {
    libusb_transfer& open = transfer.open();
    {
        const std::lock_guard lock(mutex_);
        // forget() may have been quicker.
        if (under_way_.erase(&transfer) == 0) return;
        if (transfer.deadline && deadlines_.erase({*transfer.deadline, &transfer}) != 0)
            arm_timer();
        transfer.under_way = false;
        open.status = transfer.status;
        open.actual_length = transfer.moved;
        if (open.status == LIBUSB_TRANSFER_CANCELLED && transfer.timed_out) {
            open.status = LIBUSB_TRANSFER_TIMED_OUT;
        }
        const bool whole = transfer.moved == reef::abi::libusb::payload_bytes(open);
        if (open.status == LIBUSB_TRANSFER_COMPLETED && !whole &&
            (open.flags & LIBUSB_TRANSFER_SHORT_NOT_OK) != 0) {
            open.status = LIBUSB_TRANSFER_ERROR;
        }
    }
    reef::abi::libusb::log(log_, LIBUSB_LOG_LEVEL_DEBUG,
                           "transfer {}: endpoint {:02x}, status {}, {} bytes", fmt::ptr(&open),
                           open.endpoint, static_cast<int>(open.status), open.actual_length);
    // The callback may free the transfer.
    const bool frees = (open.flags & LIBUSB_TRANSFER_FREE_TRANSFER) != 0;
    if (open.callback != nullptr) {
        const reef::abi::libusb::InCallbacks in(*this);
        open.callback(&open);
    }
    if (frees) libusb_free_transfer(&open);
    const std::lock_guard lock(waiters_lock_);
    waiters_.notify_all();
}

// -- Hot-plug -------------------------------------------------------------------------------------

bool libusb_context::HotplugCallback::matches(const libusb_device& device,
                                              libusb_hotplug_event event) const {
    const auto fits = [](int wanted, int value) {
        return wanted == LIBUSB_HOTPLUG_MATCH_ANY || wanted == value;
    };
    constexpr std::size_t class_at = 4;
    return (events & event) != 0 && fits(vendor, device.node->info.vendor) &&
           fits(product, device.node->info.product) &&
           fits(device_class, static_cast<int>(device.node->descriptors.device[class_at]));
}

libusb_hotplug_callback_handle libusb_context::add(HotplugCallback callback) {
    const std::lock_guard lock(mutex_);
    callback.number = next_hotplug_++;
    hotplug_.push_back(callback);
    return callback.number;
}

void libusb_context::remove(libusb_hotplug_callback_handle number) {
    const std::lock_guard lock(mutex_);
    std::erase_if(hotplug_, [&](const HotplugCallback& each) { return each.number == number; });
}

bool libusb_context::has(libusb_hotplug_callback_handle number) {
    const std::lock_guard lock(mutex_);
    return std::ranges::find(hotplug_, number, &HotplugCallback::number) != hotplug_.end();
}

void* libusb_context::user_data_of(libusb_hotplug_callback_handle number) {
    const std::lock_guard lock(mutex_);
    const auto it = std::ranges::find(hotplug_, number, &HotplugCallback::number);
    return it == hotplug_.end() ? nullptr : it->user_data;
}

void libusb_context::call(const HotplugCallback& callback, libusb_device& device,
                          libusb_hotplug_event event) {
    if (callback.call(this, &device, event, callback.user_data) != 0) remove(callback.number);
}

void libusb_context::deliver(const HotplugMessage& message) {
    const auto& node = *message.device->node;
    reef::abi::libusb::log(log_, LIBUSB_LOG_LEVEL_INFO, "{:04x}:{:04x} at {} {}", node.info.vendor,
                           node.info.product, node.port.name(),
                           message.event == LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT ? "left" : "arrived");
    std::vector<HotplugCallback> callbacks;
    {
        const std::lock_guard lock(mutex_);
        callbacks = hotplug_;
    }
    for (const HotplugCallback& callback : callbacks) {
        // One of the callbacks before may have removed it.
        if (!has(callback.number) || !callback.matches(*message.device, message.event)) continue;
        const reef::abi::libusb::InCallbacks in(*this);
        call(callback, *message.device, message.event);
    }
    libusb_unref_device(message.device);
}

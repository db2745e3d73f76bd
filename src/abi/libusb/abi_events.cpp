// Handling events, by one thread at a time or several, and hot-plug callbacks.
#include <poll.h>

#include <atomic>
#include <cstdlib>

#include "abi/libusb/boundary.h"
#include "abi/libusb/context.h"

namespace reef::abi::libusb {
namespace {

constexpr timeval a_minute = {.tv_sec = 60, .tv_usec = 0};

bool is_time(const timeval& time) {
    return time.tv_sec >= 0 && time.tv_usec >= 0 && time.tv_usec < 1'000'000;
}

Clock::duration duration_of(const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

bool is_set(int* completed) {
    return completed != nullptr && std::atomic_ref(*completed).load() != 0;
}

/// The event lock, which the thread has.
class HeldEvents {
  public:
    explicit HeldEvents(libusb_context& context) : context_(context) {}
    ~HeldEvents() { context_.unlock_events(); }
    HeldEvents(const HeldEvents&) = delete;
    HeldEvents& operator=(const HeldEvents&) = delete;

  private:
    libusb_context& context_;
};

/// Either handles events or waits for the thread that does.
int handle(libusb_context& context, Clock::duration time, int* completed) {
    if (context.handling_here()) return LIBUSB_ERROR_BUSY;
    while (true) {
        if (context.try_lock_events()) {
            const HeldEvents held(context);
            return is_set(completed) ? LIBUSB_SUCCESS : context.handle_events(time);
        }
        context.lock_waiters();
        const bool waits = !is_set(completed) && context.handler_active();
        const bool done = is_set(completed);
        if (waits) static_cast<void>(context.wait_for_event(time));
        context.unlock_waiters();
        if (waits || done) return LIBUSB_SUCCESS;
        // The handler has stopped in the meantime.
    }
}

}  // namespace
}  // namespace reef::abi::libusb

using namespace reef::abi::libusb;

extern "C" {

int libusb_try_lock_events(libusb_context* context) try {
    context = context_or_default(context);
    return context != nullptr && context->try_lock_events() ? 0 : 1;
} catch (const std::exception&) {
    return 1;
}

void libusb_lock_events(libusb_context* context) try {
    context_or_default(context)->lock_events();
} catch (const std::exception&) {
}

void libusb_unlock_events(libusb_context* context) try {
    context_or_default(context)->unlock_events();
} catch (const std::exception&) {
}

int libusb_event_handling_ok(libusb_context* context) try {
    return context_or_default(context)->handling_ok() ? 1 : 0;
} catch (const std::exception&) {
    return 0;
}

int libusb_event_handler_active(libusb_context* context) try {
    return context_or_default(context)->handler_active() ? 1 : 0;
} catch (const std::exception&) {
    return 0;
}

void libusb_interrupt_event_handler(libusb_context* context) try {
    context_or_default(context)->interrupt();
} catch (const std::exception&) {
}

void libusb_lock_event_waiters(libusb_context* context) try {
    context_or_default(context)->lock_waiters();
} catch (const std::exception&) {
}

void libusb_unlock_event_waiters(libusb_context* context) try {
    context_or_default(context)->unlock_waiters();
} catch (const std::exception&) {
}

int libusb_wait_for_event(libusb_context* context, timeval* time) try {
    std::optional<Clock::duration> limit;
    if (time != nullptr) {
        if (!is_time(*time)) return LIBUSB_ERROR_INVALID_PARAM;
        limit = duration_of(*time);
    }
    return context_or_default(context)->wait_for_event(limit) ? 0 : 1;
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_handle_events_timeout_completed(libusb_context* context, timeval* time,
                                           int* completed) try {
    context = context_or_default(context);
    if (context == nullptr || time == nullptr || !is_time(*time)) {
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    return handle(*context, duration_of(*time), completed);
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_handle_events_timeout(libusb_context* context, timeval* time) {
    return libusb_handle_events_timeout_completed(context, time, nullptr);
}

int libusb_handle_events_completed(libusb_context* context, int* completed) {
    timeval time = a_minute;
    return libusb_handle_events_timeout_completed(context, &time, completed);
}

int libusb_handle_events(libusb_context* context) {
    return libusb_handle_events_completed(context, nullptr);
}

int libusb_handle_events_locked(libusb_context* context, timeval* time) try {
    context = context_or_default(context);
    if (context == nullptr || time == nullptr || !is_time(*time)) {
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    return context->handle_events(duration_of(*time));
} catch (const std::exception& failure) {
    return error_of(failure);
}

// A file descriptor tells of transfers whose time is over: programs need not ask.

int libusb_pollfds_handle_timeouts(libusb_context*) {
    return 1;
}

int libusb_get_next_timeout(libusb_context*, timeval* time) {
    if (time != nullptr) *time = {};
    return 0;
}

const libusb_pollfd** libusb_get_pollfds(libusb_context* context) try {
    context = context_or_default(context);
    if (context == nullptr) return nullptr;
    // Pointers, a null, and what they point to, in one block.
    constexpr std::size_t count = 2, pointers = (count + 1) * sizeof(libusb_pollfd*);
    auto* block = static_cast<char*>(std::calloc(1, pointers + count * sizeof(libusb_pollfd)));
    if (block == nullptr) return nullptr;
    auto** list = reinterpret_cast<libusb_pollfd**>(block);
    auto* descriptors = reinterpret_cast<libusb_pollfd*>(block + pointers);
    descriptors[0] = {.fd = context->event_descriptor(), .events = POLLIN};
    descriptors[1] = {.fd = context->timer_descriptor(), .events = POLLIN};
    for (std::size_t i = 0; i < count; ++i) list[i] = &descriptors[i];
    return const_cast<const libusb_pollfd**>(list);
} catch (const std::exception&) {
    return nullptr;
}

void libusb_free_pollfds(const libusb_pollfd** list) {
    std::free(const_cast<libusb_pollfd**>(list));
}

/// The descriptors of a context never change.
void libusb_set_pollfd_notifiers(libusb_context*, libusb_pollfd_added_cb, libusb_pollfd_removed_cb,
                                 void*) {}

// -- Hot-plug -------------------------------------------------------------------------------------

int libusb_hotplug_register_callback(libusb_context* context, int events, int flags, int vendor,
                                     int product, int device_class,
                                     libusb_hotplug_callback_fn function, void* user_data,
                                     libusb_hotplug_callback_handle* number) try {
    constexpr int known_events =
        LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT;
    const auto fits = [](int value, int most) {
        return value == LIBUSB_HOTPLUG_MATCH_ANY || (value >= 0 && value <= most);
    };
    context = context_or_default(context);
    if (context == nullptr || function == nullptr || events == 0 || (events & ~known_events) != 0 ||
        (flags & ~LIBUSB_HOTPLUG_ENUMERATE) != 0 || !fits(vendor, 0xffff) ||
        !fits(product, 0xffff) || !fits(device_class, 0xff)) {
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    if (libusb_has_capability(LIBUSB_CAP_HAS_HOTPLUG) == 0) return LIBUSB_ERROR_NOT_SUPPORTED;
    libusb_context::HotplugCallback callback{.number = 0,
                                             .events = events,
                                             .vendor = vendor,
                                             .product = product,
                                             .device_class = device_class,
                                             .call = function,
                                             .user_data = user_data};
    callback.number = context->add(callback);
    if (number != nullptr) *number = callback.number;
    if ((flags & LIBUSB_HOTPLUG_ENUMERATE) == 0) return LIBUSB_SUCCESS;
    for (libusb_device* device : context->devices()) {
        if (context->has(callback.number) &&
            callback.matches(*device, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED)) {
            context->call(callback, *device, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED);
        }
        libusb_unref_device(device);
    }
    return LIBUSB_SUCCESS;
} catch (const std::exception& failure) {
    return error_of(failure);
}

void libusb_hotplug_deregister_callback(libusb_context* context,
                                        libusb_hotplug_callback_handle number) try {
    if (auto* one = context_or_default(context)) one->remove(number);
} catch (const std::exception&) {
}

void* libusb_hotplug_get_user_data(libusb_context* context,
                                   libusb_hotplug_callback_handle number) try {
    auto* one = context_or_default(context);
    return one == nullptr ? nullptr : one->user_data_of(number);
} catch (const std::exception&) {
    return nullptr;
}

}  // extern "C"

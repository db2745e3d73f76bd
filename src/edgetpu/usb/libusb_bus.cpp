#include <fmt/format.h>
#include <libusb-1.0/libusb.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <thread>

#include "edgetpu/usb/link.h"
#include "edgetpu/usb/protocol.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/transport.h"

namespace reef::edgetpu::usb {
namespace {

Fault fault_of(int code) {
    switch (code) {
        case LIBUSB_ERROR_PIPE:
            return Fault::stall;
        case LIBUSB_ERROR_TIMEOUT:
            return Fault::timed_out;
        case LIBUSB_ERROR_OVERFLOW:
            return Fault::overflow;
        case LIBUSB_ERROR_NO_DEVICE:
        case LIBUSB_ERROR_NOT_FOUND:
            return Fault::disconnected;
        case LIBUSB_ERROR_ACCESS:
            return Fault::denied;
        case LIBUSB_ERROR_BUSY:
            return Fault::busy;
        default:
            return Fault::failed;
    }
}

std::optional<Fault> fault_of(libusb_transfer_status status) {
    switch (status) {
        case LIBUSB_TRANSFER_COMPLETED:
            return std::nullopt;
        case LIBUSB_TRANSFER_STALL:
            return Fault::stall;
        case LIBUSB_TRANSFER_TIMED_OUT:
            return Fault::timed_out;
        case LIBUSB_TRANSFER_OVERFLOW:
            return Fault::overflow;
        case LIBUSB_TRANSFER_NO_DEVICE:
            return Fault::disconnected;
        case LIBUSB_TRANSFER_CANCELLED:
            return Fault::cancelled;
        default:
            return Fault::failed;
    }
}

std::unexpected<Failure> failure(int code, std::string_view transaction) {
    return std::unexpected(Failure{
        fault_of(code),
        fmt::format("{}: {}", transaction, libusb_strerror(static_cast<libusb_error>(code)))});
}

Io<void> checked(int code, std::string_view transaction) {
    if (code < 0) return failure(code, transaction);
    return {};
}

Speed speed_of(libusb_device* device) {
    switch (libusb_get_device_speed(device)) {
        case LIBUSB_SPEED_LOW:
        case LIBUSB_SPEED_FULL:
            return Speed::full;
        case LIBUSB_SPEED_HIGH:
            return Speed::high;
        case LIBUSB_SPEED_SUPER:
            return Speed::super;
        case LIBUSB_SPEED_SUPER_PLUS:
            return Speed::super_plus;
        default:
            return Speed::unknown;
    }
}

std::string port_of(libusb_device* device) {
    std::array<std::uint8_t, 7> ports{};
    const int depth = libusb_get_port_numbers(device, ports.data(), static_cast<int>(ports.size()));
    std::string port = fmt::format("{}", libusb_get_bus_number(device));
    for (int i = 0; i < depth; ++i) {
        port += fmt::format("{}{}", i == 0 ? '-' : '.', ports[static_cast<std::size_t>(i)]);
    }
    return port;
}

using Context = std::shared_ptr<libusb_context>;

class LibusbConnection final : public Connection {
  public:
    LibusbConnection(Context context, libusb_device_handle* handle)
        : context_(std::move(context)), handle_(handle) {}

    ~LibusbConnection() override {
        cancel_all();
        // What does not end within a second belongs to a device that is gone; its transfers and
        // the handle are leaked rather than freed under libusb.
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (under_way_ != 0 && std::chrono::steady_clock::now() < end) {
            handle_events(Milliseconds(50));
        }
        if (under_way_ != 0) {
            for (auto& slot : slots_) static_cast<void>(slot.release());
            return;
        }
        libusb_close(handle_);
    }

    Speed speed() const override { return speed_of(libusb_get_device(handle_)); }

    Io<std::size_t> control(const Setup& setup, MutableBytes data, Milliseconds timeout) override {
        const int done =
            libusb_control_transfer(handle_, setup.request_type, setup.request, setup.value,
                                    setup.index, reinterpret_cast<unsigned char*>(data.data()),
                                    setup.length, static_cast<unsigned>(timeout.count()));
        if (done < 0) return failure(done, "control transfer");
        return static_cast<std::size_t>(done);
    }
    Io<void> claim(unsigned interface) override {
        return checked(libusb_claim_interface(handle_, static_cast<int>(interface)), "claim");
    }
    Io<void> release(unsigned interface) override {
        return checked(libusb_release_interface(handle_, static_cast<int>(interface)), "release");
    }
    Io<void> reset() override { return checked(libusb_reset_device(handle_), "bus reset"); }
    Io<void> clear_halt(std::uint8_t endpoint) override {
        return checked(libusb_clear_halt(handle_, endpoint), "clear halt");
    }

    Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) override {
        // libusb does not write to what it sends.
        auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
        return submit(endpoint, LIBUSB_TRANSFER_TYPE_BULK, data, bytes.size());
    }
    Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType type,
                                MutableBytes bytes) override {
        const auto kind =
            type == EndpointType::bulk ? LIBUSB_TRANSFER_TYPE_BULK : LIBUSB_TRANSFER_TYPE_INTERRUPT;
        return submit(endpoint, kind, reinterpret_cast<unsigned char*>(bytes.data()), bytes.size());
    }

    Io<std::optional<Completion>> wait(Milliseconds timeout) override {
        if (done_.empty() && under_way_ != 0) {
            if (const int code = handle_events(timeout); code < 0) return failure(code, "wait");
        } else if (done_.empty()) {
            std::this_thread::sleep_for(timeout);
        }
        if (done_.empty()) return std::optional<Completion>();
        const Completion first = done_.front();
        done_.pop_front();
        return first;
    }

    void interrupt() override { libusb_interrupt_event_handler(context_.get()); }
    void cancel(std::uint32_t id) override {
        for (const auto& slot : slots_) {
            if (slot->busy && slot->id == id) libusb_cancel_transfer(slot->transfer);
        }
    }
    void cancel_all() override {
        for (const auto& slot : slots_) {
            if (slot->busy) libusb_cancel_transfer(slot->transfer);
        }
    }

  private:
    /// One of libusb's transfers, used again and again.
    struct Slot {
        LibusbConnection* connection = nullptr;
        libusb_transfer* transfer = nullptr;
        std::uint32_t id = 0;
        bool busy = false;
        ~Slot() { libusb_free_transfer(transfer); }
    };

    static void LIBUSB_CALL completed(libusb_transfer* transfer) {
        auto* slot = static_cast<Slot*>(transfer->user_data);
        slot->busy = false;
        LibusbConnection* connection = slot->connection;
        --connection->under_way_;
        connection->done_.push_back({.id = slot->id,
                                     .endpoint = transfer->endpoint,
                                     .fault = fault_of(transfer->status),
                                     .size = static_cast<std::size_t>(transfer->actual_length)});
        connection->event_ = 1;
    }

    Slot* free_slot() {
        for (const auto& slot : slots_) {
            if (!slot->busy) return slot.get();
        }
        auto slot = std::make_unique<Slot>();
        slot->transfer = libusb_alloc_transfer(0);
        if (slot->transfer == nullptr) return nullptr;
        slot->connection = this;
        slots_.push_back(std::move(slot));
        return slots_.back().get();
    }

    Io<std::uint32_t> submit(std::uint8_t endpoint, std::uint8_t type, unsigned char* data,
                             std::size_t size) {
        Slot* slot = free_slot();
        if (slot == nullptr) return failure(LIBUSB_ERROR_NO_MEM, "submit");
        libusb_fill_bulk_transfer(slot->transfer, handle_, endpoint, data, static_cast<int>(size),
                                  completed, slot, 0);
        slot->transfer->type = type;
        if (const int code = libusb_submit_transfer(slot->transfer); code < 0) {
            return failure(code, "submit");
        }
        slot->id = next_id_++;
        slot->busy = true;
        ++under_way_;
        return slot->id;
    }

    /// Until a transfer completes or the time is over.
    int handle_events(Milliseconds timeout) {
        event_ = 0;
        const auto us = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
        timeval time{.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
        return libusb_handle_events_timeout_completed(context_.get(), &time, &event_);
    }

    Context context_;
    libusb_device_handle* handle_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::deque<Completion> done_;
    std::size_t under_way_ = 0;
    std::uint32_t next_id_ = 0;
    int event_ = 0;
};

/// Each connection has a context of its own, so that one thread never runs the completions of
/// another's transfers.
Io<Context> new_context() {
    libusb_context* context = nullptr;
    if (const int code = libusb_init(&context); code < 0) {
        return std::unexpected(
            Failure{Fault::no_bus, fmt::format("libusb does not start: {}",
                                               libusb_strerror(static_cast<libusb_error>(code)))});
    }
    return Context(context, libusb_exit);
}

/// What libusb tells of Edge TPUs that come and leave, to whoever handles the context's events.
/// Nothing, where libusb has no hot-plug.
class HotplugWatch {
  public:
    explicit HotplugWatch(libusb_context* context) : context_(context) {
        if (libusb_has_capability(LIBUSB_CAP_HAS_HOTPLUG) == 0) return;
        tells_ = watch(boot_vendor, boot_product) && watch(chip_vendor, chip_product);
    }
    ~HotplugWatch() {
        for (const auto number : callbacks_) libusb_hotplug_deregister_callback(context_, number);
    }
    HotplugWatch(const HotplugWatch&) = delete;
    HotplugWatch& operator=(const HotplugWatch&) = delete;

    bool tells() const { return tells_; }
    std::uint64_t changes() const { return changes_; }

  private:
    static int LIBUSB_CALL changed(libusb_context*, libusb_device*, libusb_hotplug_event,
                                   void* watch) {
        ++static_cast<HotplugWatch*>(watch)->changes_;
        return 0;
    }
    bool watch(int vendor, int product) {
        libusb_hotplug_callback_handle number = 0;
        const int code = libusb_hotplug_register_callback(
            context_, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT,
            LIBUSB_HOTPLUG_NO_FLAGS, vendor, product, LIBUSB_HOTPLUG_MATCH_ANY, changed, this,
            &number);
        if (code == LIBUSB_SUCCESS) callbacks_.push_back(number);
        return code == LIBUSB_SUCCESS;
    }

    libusb_context* context_;
    std::vector<libusb_hotplug_callback_handle> callbacks_;
    bool tells_ = false;
    std::atomic<std::uint64_t> changes_ = 0;
};

class LibusbBus final : public Bus {
  public:
    explicit LibusbBus(Context context) : context_(std::move(context)), watch_(context_.get()) {}

    /// With a context of its own, which looks for devices anew: in a container without the system's
    /// hot-plug messages, one that libusb has had for a while never learns of a device.
    Io<std::vector<DeviceInfo>> list() override {
        const auto context = new_context();
        if (!context) return std::unexpected(context.error());
        std::vector<DeviceInfo> devices;
        const auto each = for_each(context->get(), [&](libusb_device*, const DeviceInfo& info) {
            devices.push_back(info);
            return false;
        });
        if (!each) return std::unexpected(each.error());
        std::ranges::sort(devices, {}, &DeviceInfo::port);
        return devices;
    }

    Io<std::unique_ptr<Connection>> open(const DeviceInfo& device) override {
        auto context = new_context();
        if (!context) return std::unexpected(context.error());
        libusb_device_handle* handle = nullptr;
        int code = LIBUSB_ERROR_NO_DEVICE;
        const auto each =
            for_each(context->get(), [&](libusb_device* found, const DeviceInfo& info) {
                if (info != device) return false;
                code = libusb_open(found, &handle);
                return true;
            });
        if (!each) return std::unexpected(each.error());
        if (code < 0) return failure(code, "open");
        return std::make_unique<LibusbConnection>(std::move(*context), handle);
    }

    std::uint64_t changes() const override { return watch_.changes(); }
    void wait_for_change(std::uint64_t seen, Milliseconds most) override {
        if (!watch_.tells()) return Bus::wait_for_change(seen, most);
        // The messages may be kept from a container.
        constexpr Milliseconds longest{100};
        const TimePoint end = now() + std::min(most, longest);
        while (changes() == seen) {
            const auto left =
                std::chrono::duration_cast<std::chrono::microseconds>(end - now()).count();
            if (left <= 0) return;
            timeval time{.tv_sec = 0, .tv_usec = left};
            if (libusb_handle_events_timeout_completed(context_.get(), &time, nullptr) < 0) {
                return sleep(Milliseconds(10));
            }
        }
    }

    TimePoint now() override { return std::chrono::steady_clock::now(); }
    void sleep(Milliseconds time) override { std::this_thread::sleep_for(time); }

  private:
    /// Other errors may pass, as when a stick comes back while devices are listed.
    static Failure unlisted(libusb_error code) {
        const bool out_of_reach = code == LIBUSB_ERROR_ACCESS || code == LIBUSB_ERROR_NOT_FOUND ||
                                  code == LIBUSB_ERROR_NOT_SUPPORTED;
        return {out_of_reach ? Fault::no_bus : Fault::failed,
                fmt::format("the list of devices cannot be read: {}", libusb_strerror(code))};
    }
    /// Calls `action` for every Edge TPU until it returns true.
    template <class Action>
    static Io<void> for_each(libusb_context* context, Action&& action) {
        libusb_device** list = nullptr;
        const ssize_t count = libusb_get_device_list(context, &list);
        if (count < 0) return std::unexpected(unlisted(static_cast<libusb_error>(count)));
        for (ssize_t i = 0; i < count; ++i) {
            libusb_device_descriptor descriptor;
            if (libusb_get_device_descriptor(list[i], &descriptor) < 0) continue;
            const DeviceInfo info{.vendor = descriptor.idVendor,
                                  .product = descriptor.idProduct,
                                  .port = port_of(list[i]),
                                  .address = libusb_get_device_address(list[i]),
                                  .speed = speed_of(list[i]),
                                  .simulated = libusb_get_version()->describe == simulated_library};
            if (!is_boot_loader(info) && !is_chip(info)) continue;
            if (action(list[i], info)) break;
        }
        libusb_free_device_list(list, 1);
        return {};
    }

    Context context_;
    HotplugWatch watch_;
};

}  // namespace

Result<std::shared_ptr<Bus>> libusb_bus() {
    auto context = REEF_TRY(checked(new_context(), {}));
    return std::make_shared<LibusbBus>(std::move(context));
}

}  // namespace reef::edgetpu::usb

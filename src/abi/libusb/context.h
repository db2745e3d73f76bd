// A libusb context: its devices, the transfers under way, and the events that wait for a thread
// that handles them.
#pragma once

#include <libusb-1.0/libusb.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_set>
#include <vector>

#include "abi/libusb/log.h"
#include "abi/libusb/ports.h"
#include "abi/libusb/transfer.h"

struct libusb_device {
    std::atomic<int> references = 1;
    libusb_context* const context;
    const std::shared_ptr<reef::abi::libusb::Node> node;
    std::atomic<bool> attached = true;
};

struct libusb_context final : public reef::abi::libusb::PortListener {
  public:
    using Transfer = reef::abi::libusb::Transfer;
    using TransferMover = reef::abi::libusb::TransferMover;
    using Clock = reef::abi::libusb::Clock;
    using Node = reef::abi::libusb::Node;

    /// Throws std::system_error when the system has no file descriptors left.
    libusb_context();
    ~libusb_context() override;
    libusb_context(const libusb_context&) = delete;
    libusb_context& operator=(const libusb_context&) = delete;

    // -- Settings ---------------------------------------------------------------------------------
    [[nodiscard]] reef::abi::libusb::Log& log() { return log_; }
    void stop_discovery() { discovers_ = false; }

    // -- Devices ----------------------------------------------------------------------------------
    /// A reference to each of them, for the caller to drop.
    [[nodiscard]] std::vector<libusb_device*> devices();
    void device_is_there(const std::shared_ptr<Node>& node) override;
    void device_arrived(const std::shared_ptr<Node>& node) override;
    void device_left(const Node& node) override;
    void opened(libusb_device_handle& handle);
    void closed(libusb_device_handle& handle);
    /// Handles that the program has not closed.
    [[nodiscard]] std::vector<libusb_device_handle*> open_handles();

    // -- Transfers --------------------------------------------------------------------------------
    [[nodiscard]] int submit(Transfer& transfer, TransferMover& mover);
    [[nodiscard]] int cancel(Transfer& transfer);
    /// By the mover: the device is done with it.
    void finished(Transfer& transfer, libusb_transfer_status status, int moved);
    /// Forgets the transfers of a device that moves none any more; their callbacks are not called.
    void forget(const TransferMover& mover);

    // -- Events -----------------------------------------------------------------------------------
    /// The calling thread is inside a callback of this context.
    [[nodiscard]] bool handling_here() const;
    [[nodiscard]] bool try_lock_events();
    void lock_events();
    void unlock_events();
    [[nodiscard]] bool handling_ok();
    [[nodiscard]] bool handler_active();
    void interrupt();
    void lock_waiters() { waiters_lock_.lock(); }
    void unlock_waiters() { waiters_lock_.unlock(); }
    /// With the waiters' lock held. False: the time is over.
    [[nodiscard]] bool wait_for_event(std::optional<Clock::duration> time);
    /// With the event lock held: waits for events and handles them. Returns a libusb_error.
    [[nodiscard]] int handle_events(Clock::duration time);
    /// A thread that closes a handle takes the event lock from whoever has it.
    void begin_closing();
    void end_closing();
    /// Their file descriptors: something happened; a transfer's time is over.
    [[nodiscard]] int event_descriptor() const { return event_fd_; }
    [[nodiscard]] int timer_descriptor() const { return timer_fd_; }

    // -- Hot-plug ---------------------------------------------------------------------------------
    struct HotplugCallback {
        libusb_hotplug_callback_handle number = 0;
        int events = 0;
        int vendor = LIBUSB_HOTPLUG_MATCH_ANY;
        int product = LIBUSB_HOTPLUG_MATCH_ANY;
        int device_class = LIBUSB_HOTPLUG_MATCH_ANY;
        libusb_hotplug_callback_fn call = nullptr;
        void* user_data = nullptr;
        [[nodiscard]] bool matches(const libusb_device& device, libusb_hotplug_event event) const;
    };
    [[nodiscard]] libusb_hotplug_callback_handle add(HotplugCallback callback);
    void remove(libusb_hotplug_callback_handle number);
    [[nodiscard]] bool has(libusb_hotplug_callback_handle number);
    [[nodiscard]] void* user_data_of(libusb_hotplug_callback_handle number);
    /// Calls the callback for a device; removes it if it says so.
    void call(const HotplugCallback& callback, libusb_device& device, libusb_hotplug_event event);

  private:
    struct HotplugMessage {
        libusb_device* device;  ///< with a reference
        libusb_hotplug_event event;
    };
    void signal() const;
    void arm_timer();
    void cancel_locked(Transfer& transfer);
    void cancel_late();
    void deliver(const HotplugMessage& message);
    void complete(Transfer& transfer);

    reef::abi::libusb::Log log_{this};
    std::atomic<bool> discovers_ = true;

    std::mutex mutex_;  ///< of what follows
    std::vector<libusb_device*> devices_;
    std::vector<libusb_device_handle*> handles_;
    std::unordered_set<Transfer*> under_way_;
    std::set<std::pair<Clock::time_point, Transfer*>> deadlines_;
    std::deque<Transfer*> finished_;
    std::deque<HotplugMessage> messages_;
    std::vector<HotplugCallback> hotplug_;
    libusb_hotplug_callback_handle next_hotplug_ = 1;
    int closing_ = 0;  ///< threads that close handles
    std::optional<Clock::time_point> timer_at_;

    int event_fd_ = -1;
    int timer_fd_ = -1;
    std::mutex events_lock_;
    std::atomic<bool> handler_active_ = false;
    std::mutex waiters_lock_;
    std::condition_variable_any waiters_;
};

namespace reef::abi::libusb {

/// The context that a null pointer stands for, or else `context` itself; null when there is none.
[[nodiscard]] libusb_context* context_or_default(libusb_context* context);

/// Calls end on the thread that runs them; this marks it.
class InCallbacks {
  public:
    explicit InCallbacks(const libusb_context& context);
    ~InCallbacks();
    InCallbacks(const InCallbacks&) = delete;
    InCallbacks& operator=(const InCallbacks&) = delete;

  private:
    const libusb_context* outer_;
};

}  // namespace reef::abi::libusb

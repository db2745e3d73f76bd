// An opened device: a thread of its own moves its transfers, so that submitting one never waits
// for the chip.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "abi/libusb/context.h"

struct libusb_device_handle final : public reef::abi::libusb::TransferMover,
                                    public reef::abi::libusb::NodeUser {
  public:
    using Transfer = reef::abi::libusb::Transfer;
    using Connection = reef::edgetpu::usb::Connection;
    using Failure = reef::edgetpu::usb::Failure;
    template <class T>
    using Io = reef::edgetpu::usb::Io<T>;

    /// Takes a reference to the device.
    libusb_device_handle(reef::abi::libusb::Ports& ports, libusb_device& device,
                         std::unique_ptr<Connection> connection);
    /// Waits for what the device is doing; transfers under way are forgotten.
    ~libusb_device_handle() override;
    libusb_device_handle(const libusb_device_handle&) = delete;
    libusb_device_handle& operator=(const libusb_device_handle&) = delete;

    [[nodiscard]] libusb_device& device() const { return device_; }
    [[nodiscard]] libusb_context& context() const { return *device_.context; }
    [[nodiscard]] reef::abi::libusb::Node& node() const { return *device_.node; }
    [[nodiscard]] bool is_gone() const override { return gone_; }
    void device_is_gone() override;
    void look_again() override;
    void start(Transfer& transfer) override;
    void stop(Transfer& transfer) override;

    /// Done by the worker, in turn; waits for it.
    [[nodiscard]] Io<void> claim(unsigned interface);
    [[nodiscard]] Io<void> release(unsigned interface);
    [[nodiscard]] Io<void> clear_halt(std::uint8_t endpoint);
    /// Transfers under way are cancelled.
    [[nodiscard]] Io<void> reset();

  private:
    struct Command {
        enum class Kind : std::uint8_t { start, stop, call } kind = Kind::call;
        Transfer* transfer = nullptr;
        std::function<void()> call;
    };
    void work();
    void queue(Command command);
    [[nodiscard]] Io<void> in_turn(std::function<Io<void>(Connection&)> action);
    void execute(const Command& command);
    void begin(Transfer& transfer);
    void begin_control(Transfer& transfer);
    void cancel(Transfer& transfer);
    void cancel_pending();
    void collect();
    void fail_pending();
    void finish(Transfer& transfer, libusb_transfer_status status, std::size_t moved);
    void explain();

    reef::abi::libusb::Ports& ports_;
    libusb_device& device_;
    std::atomic<bool> gone_ = false;

    std::mutex mutex_;  ///< of what follows
    std::condition_variable awake_;
    std::deque<Command> commands_;
    bool look_again_ = false;
    bool ends_ = false;

    // The worker's.
    std::unique_ptr<Connection> connection_;
    std::map<std::uint32_t, Transfer*> pending_;  ///< by the connection's number
    std::vector<Transfer*> unanswered_;           ///< control transfers that nothing answers
    std::string explained_;                       ///< why the chip stood still last

    std::thread worker_;
};

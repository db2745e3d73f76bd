// USB as the driver sees it: a bus that lists and opens devices, and a connection to one of them.
//
// Makers: libusb_bus() for real sticks, SimulatedBus for simulated ones, RecordingBus around
// either, ReplayBus for a recording. A Bus may be used by several threads; a Connection by one at a
// time.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/run_watch.h"

namespace reef::edgetpu::usb {

using Milliseconds = std::chrono::milliseconds;
using TimePoint = std::chrono::steady_clock::time_point;

/// How a transaction failed.
enum class Fault : std::uint8_t {
    stall,         ///< the device refused; the endpoint is halted until clear_halt()
    timed_out,     ///< no answer within the deadline
    overflow,      ///< the device sent more than was asked for
    disconnected,  ///< the device is gone, or came back as another one
    cancelled,     ///< by cancel()
    denied,        ///< the system forbids it
    busy,          ///< another program has the device
    failed,        ///< anything else
    no_bus,        ///< USB itself is out of this process's reach, whatever is plugged in
};
/// "stall", "time-out", "overflow", ...
[[nodiscard]] std::string_view to_string(Fault fault);

struct Failure {
    Fault fault = Fault::failed;
    std::string what;  ///< the transaction and the system's words
};

template <typename T>
using Io = std::expected<T, Failure>;

enum class Speed : std::uint8_t { unknown, full, high, super, super_plus };
[[nodiscard]] std::string_view to_string(Speed speed);

struct DeviceInfo {
    std::uint16_t vendor = 0;
    std::uint16_t product = 0;
    std::string port;      ///< "2-1.4": bus and ports; stays when the device re-enumerates
    unsigned address = 0;  ///< changes whenever it does
    Speed speed = Speed::unknown;
    bool simulated = false;  ///< the system's libusb is a stand-in with simulated sticks
    friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

/// "boot loader, no firmware yet" or "firmware runs"; "simulated" behind it.
[[nodiscard]] std::string state_of(const DeviceInfo& device);

/// The first 8 bytes of a control transfer (USB 2.0, 9.3).
struct Setup {
    std::uint8_t request_type = 0;  ///< bit 7: device to host
    std::uint8_t request = 0;
    std::uint16_t value = 0;
    std::uint16_t index = 0;
    std::uint16_t length = 0;  ///< bytes
    [[nodiscard]] bool to_host() const { return (request_type & 0x80) != 0; }
    friend bool operator==(const Setup&, const Setup&) = default;
};

/// The end of an asynchronous transfer.
struct Completion {
    std::uint32_t id = 0;       ///< what submit gave
    std::uint8_t endpoint = 0;  ///< address; bit 7: device to host
    std::optional<Fault> fault;
    std::size_t size = 0;  ///< bytes that travelled
};

enum class EndpointType : std::uint8_t { bulk, interrupt };

/// One opened device; the destructor cancels what is under way and closes.
class Connection {
  public:
    Connection() = default;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    virtual ~Connection() = default;

    [[nodiscard]] virtual Speed speed() const = 0;

    /// `data` is sent or filled, by the setup's direction; its size is setup.length. Returns the
    /// bytes that travelled.
    [[nodiscard]] virtual Io<std::size_t> control(const Setup& setup, MutableBytes data,
                                                  Milliseconds timeout) = 0;
    [[nodiscard]] virtual Io<void> claim(unsigned interface) = 0;
    [[nodiscard]] virtual Io<void> release(unsigned interface) = 0;
    /// A bus reset. The device may come back as another one: the connection can then only be
    /// closed.
    [[nodiscard]] virtual Io<void> reset() = 0;
    [[nodiscard]] virtual Io<void> clear_halt(std::uint8_t endpoint) = 0;

    // Asynchronous transfers. The bytes stay the caller's and must live until the completion.
    [[nodiscard]] virtual Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) = 0;
    [[nodiscard]] virtual Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType type,
                                                      MutableBytes bytes) = 0;
    /// The next completion; nothing when there is none until `timeout`.
    [[nodiscard]] virtual Io<std::optional<Completion>> wait(Milliseconds timeout) = 0;
    /// A wait() under way ends soon, as if its time were over. Any thread; others ignore it, where
    /// nobody waits in real time.
    virtual void interrupt() {}
    /// The transfer completes, as cancelled unless it was done before; an id that is not under way
    /// is ignored.
    virtual void cancel(std::uint32_t id) = 0;
    /// Every transfer under way completes, as cancelled unless it was done before.
    virtual void cancel_all() = 0;

    /// Who may end the run that works over this connection; null: nobody. A chip that is simulated
    /// in this process asks while it works; others ignore it. Must outlive the run.
    virtual void watch(const RunWatch* /*watch*/) {}

    /// A remark for recordings; others ignore it.
    virtual void note(std::string_view /*text*/) {}
};

class Bus {
  public:
    Bus() = default;
    Bus(const Bus&) = delete;
    Bus& operator=(const Bus&) = delete;
    virtual ~Bus() = default;

    /// The Edge TPUs that are connected, in either mode, by port.
    [[nodiscard]] virtual Io<std::vector<DeviceInfo>> list() = 0;
    [[nodiscard]] virtual Io<std::unique_ptr<Connection>> open(const DeviceInfo& device) = 0;

    // Devices come and go; some buses are told of it.
    /// How often the bus was told that an Edge TPU came or left.
    [[nodiscard]] virtual std::uint64_t changes() const { return 0; }
    /// Until changes() is no longer `seen`; a short while, of `most` at most, where nobody tells.
    virtual void wait_for_change(std::uint64_t seen, Milliseconds most);

    // Time, which a simulated bus makes up: a deadline of seconds then costs nothing.
    [[nodiscard]] virtual TimePoint now() = 0;
    virtual void sleep(Milliseconds time) = 0;
};

/// The system's devices. Told of changes where libusb has hot-plug. Errors: device_denied when
/// libusb does not start.
[[nodiscard]] Result<std::shared_ptr<Bus>> libusb_bus();

}  // namespace reef::edgetpu::usb

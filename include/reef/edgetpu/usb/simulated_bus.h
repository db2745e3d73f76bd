// Simulated sticks: everything of an Edge TPU on USB but the chip proper, which is a ChipCore.
//
// A stick without firmware is a DFU boot loader; with it, after a bus reset, the chip: registers
// with their reset values, the power state that follows force_sleep, one out endpoint with headers,
// output, events. Faults happen on request, at any transaction. Time is made up.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "reef/edgetpu/usb/chip_core.h"
#include "reef/edgetpu/usb/transport.h"

namespace reef::edgetpu::usb {

/// What goes wrong with a transaction. Transactions are what a Connection's methods do; faults that
/// do not fit the transaction (a wrong event on a register write) wait for the next that fits.
enum class InjectedFault : std::uint8_t {
    stall,            ///< any transfer is refused; bulk endpoints stay halted
    time_out,         ///< it is never answered
    short_read,       ///< the device answers with fewer bytes
    long_read,        ///< with more
    unplug,           ///< the stick is gone, and back without firmware after `back_after`
    wrong_event,      ///< an event has a tag that nobody waits for
    firmware_status,  ///< DFU_GETSTATUS reports an error
    stuck_register,   ///< the register that is read keeps the opposite of its value
};
inline constexpr InjectedFault injected_faults[] = {
    InjectedFault::stall,           InjectedFault::time_out,      InjectedFault::short_read,
    InjectedFault::long_read,       InjectedFault::unplug,        InjectedFault::wrong_event,
    InjectedFault::firmware_status, InjectedFault::stuck_register};
[[nodiscard]] std::string_view to_string(InjectedFault fault);

struct FaultAt {
    std::size_t transaction = 0;  ///< of the stick, from 0
    InjectedFault fault = InjectedFault::stall;
    std::optional<Milliseconds> back_after;  ///< of unplug; never without
};

struct StickOptions {
    std::string port = "1-1";
    Speed speed = Speed::super;
    bool has_firmware = false;
    std::vector<FaultAt> faults;
};

/// What a host's system reads of a device when it appears (USB 2.0, 9.6).
struct StickDescriptors {
    std::vector<std::byte> device;         ///< 18 bytes
    std::vector<std::byte> configuration;  ///< the only one, with all that belongs to it
    std::vector<std::byte> object_store;   ///< BOS; empty: the device has none
    /// By index. A real stick has none, and as in its device descriptor nothing here names one:
    /// they are for who asks whether this is a simulated stick.
    std::vector<std::vector<std::byte>> strings;
};
/// What a libusb with simulated sticks says of itself (libusb_version::describe).
inline constexpr std::string_view simulated_library = "reef simulated stick";
/// What string 2 of a simulated stick says.
inline constexpr std::string_view simulated_product = "simulated Edge TPU";

/// A bus of simulated sticks, which tells what no host can see of them.
class StickBus : public Bus {
  public:
    /// Why a stick's chip takes nothing any more, or what its program waits for
    /// (ChipCore::standstill()).
    [[nodiscard]] virtual std::string standstill(std::string_view port) const = 0;
    /// Why the stick refused its last transfer; empty when it did not.
    [[nodiscard]] virtual std::string refusal(std::string_view port) const = 0;
    /// Of the device that the stick is now; reading them is no transaction. Errors: device_missing.
    [[nodiscard]] virtual Result<StickDescriptors> descriptors(std::string_view port) const = 0;
};

class SimulatedStick;

class SimulatedBus final : public StickBus {
  public:
    SimulatedBus();
    ~SimulatedBus() override;

    /// Plugs a stick in.
    void plug(const StickOptions& options, std::unique_ptr<ChipCore> core);
    /// Pulls it out.
    void unplug(std::string_view port);
    /// Transactions of a stick since it was plugged in.
    [[nodiscard]] std::size_t transactions(std::string_view port) const;
    [[nodiscard]] std::string standstill(std::string_view port) const override;
    [[nodiscard]] std::string refusal(std::string_view port) const override;
    [[nodiscard]] Result<StickDescriptors> descriptors(std::string_view port) const override;

    [[nodiscard]] Io<std::vector<DeviceInfo>> list() override;
    [[nodiscard]] Io<std::unique_ptr<Connection>> open(const DeviceInfo& device) override;
    [[nodiscard]] TimePoint now() override;
    void sleep(Milliseconds time) override;

  private:
    friend class SimulatedConnection;
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<SimulatedStick>> sticks_;
    std::chrono::steady_clock::duration time_{};
};

}  // namespace reef::edgetpu::usb

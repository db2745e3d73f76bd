// One simulated stick: what it is without a host.
#pragma once

#include <deque>
#include <map>

#include "edgetpu/usb/protocol.h"
#include "reef/edgetpu/usb/simulated_bus.h"

namespace reef::edgetpu::usb {

/// Called under the bus's lock.
class SimulatedStick {
  public:
    SimulatedStick(StickOptions options, std::unique_ptr<ChipCore> core);

    [[nodiscard]] DeviceInfo info() const;
    [[nodiscard]] bool plugged() const { return plugged_; }
    [[nodiscard]] std::size_t transactions() const { return transactions_; }
    /// Changes whenever handles to the device become invalid; a bus reset that leaves the device
    /// what it was does not.
    [[nodiscard]] unsigned address() const { return address_; }

    /// What is to go wrong with the transaction that starts now, if it is one of `fitting`.
    [[nodiscard]] std::optional<InjectedFault> next_transaction(
        TimePoint now, std::initializer_list<InjectedFault> fitting);
    /// Comes back when its time has come.
    void pass_time(TimePoint now);
    void unplug();

    [[nodiscard]] StickDescriptors descriptors() const;
    [[nodiscard]] Io<std::size_t> control(const Setup& setup, MutableBytes data);
    void bus_reset();
    void stick_register() { stuck_next_ = true; }
    void corrupt_status() { corrupt_status_ = true; }

    /// False: the device refuses.
    [[nodiscard]] bool receive(Bytes bytes);
    [[nodiscard]] std::size_t take_output(MutableBytes room) { return core_->take_output(room); }
    /// Bytes that the output endpoint sends at least, when it has them.
    [[nodiscard]] std::size_t output_chunk() const;
    /// The next one whose tag is enabled in descr_ep.
    [[nodiscard]] std::optional<ChipEvent> take_event();
    [[nodiscard]] std::string standstill() const {
        return complaint_.empty() ? core_->standstill() : complaint_;
    }

  private:
    void power_on();
    [[nodiscard]] std::uint64_t read(std::uint32_t offset) const;
    void write(std::uint32_t offset, std::uint64_t value);
    [[nodiscard]] Io<std::size_t> dfu(const Setup& setup, MutableBytes data);
    [[nodiscard]] Io<std::size_t> standard(const Setup& setup, MutableBytes data) const;
    [[nodiscard]] bool runs() const;

    StickOptions options_;
    std::unique_ptr<ChipCore> core_;
    bool plugged_ = true;
    std::optional<TimePoint> back_at_;
    unsigned address_ = 1;
    std::size_t transactions_ = 0;

    bool is_chip_ = false;
    std::vector<std::byte> firmware_;
    bool firmware_complete_ = false;
    std::uint8_t dfu_state_ = dfu_idle;
    bool corrupt_status_ = false;

    std::map<std::uint32_t, std::uint64_t> registers_;  ///< by offset; reset values elsewhere
    bool stuck_next_ = false;
    std::map<std::uint32_t, std::uint64_t> stuck_;
    std::optional<Tag> stream_;    ///< of the data that is due
    std::size_t stream_left_ = 0;  ///< its bytes
    std::string complaint_;        ///< of the core; the chip takes nothing any more
};

}  // namespace reef::edgetpu::usb

// One simulated stick: what it is without a host.
#pragma once

#include <deque>
#include <map>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/stick_registers.h"
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
    void watch(const RunWatch* watch) { core_->watch(watch); }

    /// False: the device refuses; standstill() says why.
    [[nodiscard]] bool receive(std::uint8_t endpoint, Bytes bytes);
    /// Up to the end of a transfer: a chunk that is no full packet, or the end of what the chip
    /// sends together.
    [[nodiscard]] std::size_t take_output(MutableBytes room);
    /// Bytes that the output endpoint sends at least, when it has them.
    [[nodiscard]] std::size_t output_chunk() const { return registers_.output_chunk(); }
    /// The next one whose tag is enabled in descr_ep.
    [[nodiscard]] std::optional<ChipEvent> take_event();
    /// Why the last transfer was refused; else what the chip's program waits for.
    [[nodiscard]] std::string standstill() const;
    /// Why the last transfer was refused; empty when it was not.
    [[nodiscard]] const std::string& refusal() const { return refusal_; }
    /// A transfer is refused for this reason.
    void refuse(std::string why) { refusal_ = std::move(why); }

  private:
    void power_on();
    void boot(bool with_firmware);
    [[nodiscard]] std::uint64_t read(std::uint32_t offset) const;
    void write(std::uint32_t offset, std::uint64_t value);
    [[nodiscard]] Io<std::size_t> transfer(const Setup& setup, MutableBytes data);
    [[nodiscard]] Io<std::size_t> access(const Setup& setup, MutableBytes data);
    [[nodiscard]] Io<std::size_t> download(const Setup& setup, Bytes block);
    [[nodiscard]] Io<std::size_t> dfu(const Setup& setup, MutableBytes data);
    [[nodiscard]] Io<std::size_t> standard(const Setup& setup, MutableBytes data) const;
    void forget_streams();
    [[nodiscard]] bool accepts_data(std::uint8_t endpoint);
    [[nodiscard]] bool begin_stream(Bytes& bytes);
    [[nodiscard]] bool give(Tag tag, Bytes bytes);

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

    bool detached_ = false;  ///< by DFU_DETACH: the next bus reset leads to the boot loader

    StickRegisters registers_;
    bool stuck_next_ = false;
    std::map<std::uint32_t, std::uint64_t> stuck_;
    std::vector<std::byte> header_;  ///< of the next data, as far as it has come
    std::optional<Tag> stream_;      ///< of the data that is due
    std::size_t stream_bytes_ = 0, stream_left_ = 0;
    std::string refusal_;    ///< of the last transfer
    std::string complaint_;  ///< of the core; the chip takes nothing any more
};

}  // namespace reef::edgetpu::usb

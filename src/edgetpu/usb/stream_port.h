// The chip's DMA on USB: streams of bytes by tag, which the chip takes as its descriptors say.
#pragma once

#include <array>
#include <deque>
#include <optional>

#include "edgetpu/sim/core/scalar_engines.h"
#include "edgetpu/usb/byte_queue.h"
#include "reef/edgetpu/usb/chip_core.h"

namespace reef::edgetpu::usb {

/// Where the host's bytes wait for the chip, and the chip's for the host.
class StreamPort final : public sim::HostPort {
  public:
    void clear();

    // The host's side.
    /// Errors: bad_input when more bytes wait than a host would send ahead.
    [[nodiscard]] Status receive(Tag tag, Bytes bytes);
    /// As ChipCore::take_output().
    [[nodiscard]] std::size_t take_output(MutableBytes room);
    /// Interrupts come when the output that was asked for before them is there, and all of it but
    /// usb_output_ahead_bytes has left.
    [[nodiscard]] std::optional<ChipEvent> take_event();

    // The chip's side.
    bool take(bool activations, std::span<std::uint8_t> unit) override;
    std::size_t take_units(bool activations, std::size_t unit_bytes,
                           std::span<std::uint8_t> units) override;
    [[nodiscard]] bool has_room(std::size_t bytes) const override;
    [[nodiscard]] Status give(std::span<const std::uint8_t> unit) override;
    [[nodiscard]] Status fire(const sim::DmaDescriptor& descriptor) override;
    [[nodiscard]] Status end_stream() override;

    /// Output bytes that an event waits for the host to take; 0 when none does.
    [[nodiscard]] std::uint64_t output_before_event() const;

  private:
    struct ToChip {
        ByteQueue bytes;
        std::deque<std::uint64_t> asked;  ///< bytes left of each descriptor
    };
    struct Event {
        ChipEvent event;
        std::uint64_t behind_output = 0;  ///< output bytes before it
    };

    [[nodiscard]] std::uint64_t unanswered() const;

    std::array<ToChip, 2> to_chip_;  ///< parameters, activations
    ByteQueue output_;
    std::deque<std::uint64_t> packets_;  ///< bytes left of each output descriptor
    std::uint64_t asked_output_ = 0;     ///< of all descriptors, since clear()
    std::uint64_t given_output_ = 0;
    std::uint64_t taken_output_ = 0;
    std::deque<Event> events_;
};

}  // namespace reef::edgetpu::usb

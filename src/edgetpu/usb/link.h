// Control transfers with a phase and a deadline: what start-up, firmware download and debugging
// use.
#pragma once

#include <fmt/format.h>

#include "edgetpu/usb/protocol.h"
#include "reef/edgetpu/registers.h"
#include "reef/edgetpu/usb/device.h"

namespace reef::edgetpu::usb {

/// The udev rule that gives every user of a Coral stick access to it.
inline constexpr std::string_view udev_hint =
    "install udev/60-reef.rules (reef doctor shows how), then plug the stick in again";

/// What a process needs before it sees any stick.
inline constexpr std::string_view bus_hint =
    "let this process reach /dev/bus/usb, a container by -v /dev/bus/usb:/dev/bus/usb; where it "
    "does, its limit of open files, ulimit -n, may be too low";

/// What to do when the device answers wrongly and nothing else is known.
inline constexpr std::string_view replug_hint =
    "unplug the stick and plug it in again, at another port or with another cable; `reef doctor` "
    "checks the rest";

/// What happened, the same words for the same fault, wherever it comes from.
[[nodiscard]] std::string words_of(const Failure& failure);

/// An Error for a failed transaction.
[[nodiscard]] Error error_of(const Failure& failure, std::string_view place);

template <class T>
[[nodiscard]] Result<T> checked(Io<T> io, std::string_view place) {
    if (!io) return std::unexpected(error_of(io.error(), place));
    if constexpr (std::is_void_v<T>) {
        return {};
    } else {
        return std::move(*io);
    }
}

class Link {
  public:
    Link(Bus& bus, Connection& connection, Milliseconds timeout)
        : bus_(bus), connection_(connection), timeout_(timeout) {}

    /// In front of the places of errors, e.g. "quit reset".
    void phase(std::string_view name) { phase_ = name; }
    [[nodiscard]] std::string_view phase() const { return phase_; }

    [[nodiscard]] Result<std::uint64_t> read(const RegisterInfo* info);
    [[nodiscard]] Status write(const RegisterInfo* info, std::uint64_t value);
    /// Reads until value & mask == expected.
    [[nodiscard]] Result<std::uint64_t> poll(const RegisterInfo* info, std::uint64_t mask,
                                             std::uint64_t expected);

    /// Exactly setup.length bytes, or with `at_most` up to as many; returns how many.
    [[nodiscard]] Result<std::size_t> control(const Setup& setup, MutableBytes data,
                                              bool at_most = false);

    [[nodiscard]] Bus& bus() { return bus_; }
    [[nodiscard]] Milliseconds timeout() const { return timeout_; }

  private:
    Bus& bus_;
    Connection& connection_;
    Milliseconds timeout_;
    std::string_view phase_ = "open";
};

/// Brings a chip that was just opened up, and down again.
[[nodiscard]] Status start_chip(Link& link, Speed speed, Performance performance,
                                Endpoints endpoints);
[[nodiscard]] Status stop_chip(Link& link);
/// Events for every DMA descriptor that the chip fires, or for interrupts alone, as after a start.
[[nodiscard]] Status report_descriptors(Link& link, bool all);

/// wTransferSize of the boot loader's DFU functional descriptor.
[[nodiscard]] Result<std::size_t> firmware_block_bytes(Link& link);
/// Loads a firmware into a boot loader, in blocks of that size; it runs after the next bus reset.
[[nodiscard]] Status download_firmware(Link& link, Bytes firmware, std::size_t block);

/// Bytes of one request on the output endpoint; outfeed_chunk_length in units of 8 bytes.
[[nodiscard]] std::size_t output_request_bytes(Speed speed);

}  // namespace reef::edgetpu::usb

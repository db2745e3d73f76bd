// What clients of shared sticks ask.
#pragma once

#include <cstdint>

#include "reef/edgetpu/usb/shared_sticks.h"

namespace reef::edgetpu::usb {

enum class SharedRequest : std::uint8_t {
    ports,
    list,         ///< port
    descriptors,  ///< port
    standstill,   ///< port
    refusal,      ///< port
    open,         ///< device
    // Of the session's open device.
    control,
    claim,
    release,
    reset,
    clear_halt,
    submit_out,
    submit_in,
    wait,
    cancel,
    cancel_all,
    close,
};

void put_device(Packet& packet, const DeviceInfo& device);
[[nodiscard]] DeviceInfo take_device(Packet& packet);

/// A failure, or that there is none.
template <class T>
Packet& put_outcome(Packet& packet, const Io<T>& io) {
    packet.put(io.has_value());
    if (io) return packet;
    return packet.put(io.error().fault).put_text(io.error().what);
}
/// The same from an answer; disconnected when there is none.
[[nodiscard]] Io<void> take_outcome(std::optional<Packet>& answer);

}  // namespace reef::edgetpu::usb

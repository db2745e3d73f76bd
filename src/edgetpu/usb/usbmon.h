// Captures of the Linux kernel's usbmon as text, in two forms: usbmon's own
// (/sys/kernel/debug/usb/usbmon/Nu), one line for each event, and a packet analyser's export, a
// paragraph for each.
#pragma once

#include <string_view>
#include <vector>

#include "reef/edgetpu/usb/transport.h"

namespace reef::edgetpu::usb {

/// A request to the host controller, when it is submitted or when it ends.
struct UrbEvent {
    enum class Type : std::uint8_t { control, bulk, interrupt };
    std::size_t line = 0;    ///< of the text, from 1
    std::uint64_t urb = 0;   ///< the kernel's name for it; given again when it has ended
    bool submitted = false;  ///< else it ends
    Type type = Type::control;
    std::uint8_t endpoint = 0;  ///< with the direction in bit 7
    unsigned bus = 0, device = 0;
    int status = 0;  ///< of an end; a Linux error number
    Setup setup{};   ///< of a submitted control transfer
    std::size_t length = 0;
    std::vector<std::byte> data;  ///< as far as the text shows it
    /// Of a device descriptor among the answers; 0 elsewhere.
    std::uint16_t vendor = 0, product = 0;
};

/// usbmon's lines. Isochronous transfers are left out. Errors: bad_input with the line.
[[nodiscard]] Result<std::vector<UrbEvent>> read_usbmon_lines(std::string_view text);
[[nodiscard]] bool are_usbmon_lines(std::string_view text);

/// Paragraphs that begin with "Frame N: ". Errors as above.
[[nodiscard]] Result<std::vector<UrbEvent>> read_usbmon_frames(std::string_view text);
[[nodiscard]] bool are_usbmon_frames(std::string_view text);

}  // namespace reef::edgetpu::usb

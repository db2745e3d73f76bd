// The lines of a recording, parsed.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "reef/edgetpu/usb/recording.h"

namespace reef::edgetpu::usb {

struct RecordedItem {
    enum class Kind : std::uint8_t {
        open,
        close,
        reset,
        claim,
        release,
        clear,
        control,
        out,        ///< a submitted out transfer
        in,         ///< a submitted in transfer
        completed,  ///< an in transfer
        sent,       ///< an out transfer, to its end
        failed,     ///< any transfer that was under way, cancelled ones included
        waited,     ///< for transfers, in vain
    };
    Kind kind = Kind::open;
    std::size_t line = 0;   ///< from 1
    std::string_view text;  ///< without its number
    std::uint16_t vendor = 0, product = 0;
    unsigned interface = 0;
    std::uint8_t endpoint = 0;
    std::uint32_t id = 0;
    Setup setup;
    int result = 0;        ///< of a control transfer: bytes or a negative number
    Bytes data;            ///< of the payload, as far as it was recorded
    std::size_t size = 0;  ///< of the payload
    [[nodiscard]] bool cut() const { return data.size() != size; }
    std::size_t asked = 0;       ///< bytes of a submitted in transfer, or of a refused one
    std::optional<Fault> fault;  ///< how it failed, or was refused
    Milliseconds waited{0};
};

struct RecordedItems {
    std::vector<RecordedItem> items;
    /// For instruction transfers of a size: the first bits of fields that hold addresses.
    std::vector<std::pair<std::size_t, std::set<std::size_t>>> addresses;

    /// `payload` with those fields zeroed, if its size is known.
    [[nodiscard]] std::vector<std::byte> without_addresses(Bytes payload) const;
};

/// Views into `recording`. Errors: bad_input with the line.
[[nodiscard]] Result<RecordedItems> parse_recording(const Recording& recording);

}  // namespace reef::edgetpu::usb

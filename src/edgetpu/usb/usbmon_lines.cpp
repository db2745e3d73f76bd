// Linux, Documentation/usb/usbmon.rst: the text form "u".
#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/usbmon.h"
#include "edgetpu/usb/usbmon_text.h"

namespace reef::edgetpu::usb {
namespace {

/// "Ci:2:004:0": type and direction, bus, device, endpoint. False: of a type that is left out.
Result<bool> read_address(std::string_view word, UrbEvent& event) {
    const std::string_view kind = take_until(word, ':');
    if (kind.size() != 2 || (kind[1] != 'i' && kind[1] != 'o'))
        return fail(Cause::bad_input, fmt::format("'{:.20}' is no type and direction", kind));
    unsigned endpoint = 0;
    if (!read_number(take_until(word, ':'), 10, event.bus) ||
        !read_number(take_until(word, ':'), 10, event.device) || !read_number(word, 10, endpoint) ||
        endpoint > 15) {
        return fail(Cause::bad_input, "no bus, device and endpoint");
    }
    event.endpoint = static_cast<std::uint8_t>(endpoint | (kind[1] == 'i' ? 0x80U : 0U));
    if (kind[0] == 'Z') return false;
    if (kind[0] != 'C' && kind[0] != 'B' && kind[0] != 'I')
        return fail(Cause::bad_input, fmt::format("'{}' is no type of a transfer", kind[0]));
    event.type = kind[0] == 'C'   ? UrbEvent::Type::control
                 : kind[0] == 'B' ? UrbEvent::Type::bulk
                                  : UrbEvent::Type::interrupt;
    return true;
}

bool read_setup(std::string_view& words, Setup& setup) {
    return read_number(take_until(words, ' '), 16, setup.request_type) &&
           read_number(take_until(words, ' '), 16, setup.request) &&
           read_number(take_until(words, ' '), 16, setup.value) &&
           read_number(take_until(words, ' '), 16, setup.index) &&
           read_number(take_until(words, ' '), 16, setup.length);
}

/// Behind "=": words of up to four bytes.
bool read_data(std::string_view words, UrbEvent& event) {
    if (take_until(words, ' ') != "=") return true;
    while (!words.empty()) {
        if (!read_hex(take_until(words, ' '), event.data)) return false;
    }
    return event.data.size() <= event.length;
}

void read_identity(UrbEvent& event) {
    const auto word = [&](std::size_t at) {
        return static_cast<std::uint16_t>(static_cast<unsigned>(event.data[at]) |
                                          static_cast<unsigned>(event.data[at + 1]) << 8);
    };
    constexpr std::byte device_type{1};
    if (event.type != UrbEvent::Type::control || event.submitted ||
        event.data.size() != device_descriptor_bytes || event.data[1] != device_type) {
        return;
    }
    event.vendor = word(8);
    event.product = word(10);
}

/// False: of a type that is left out.
Result<bool> read_event(std::string_view line, UrbEvent& event) {
    if (!read_number(take_until(line, ' '), 16, event.urb))
        return fail(Cause::bad_input, "no request's address in front");
    std::uint64_t time = 0;
    if (!read_number(take_until(line, ' '), 10, time)) return fail(Cause::bad_input, "no time");
    const std::string_view what = take_until(line, ' ');
    if (what != "S" && what != "C" && what != "E")
        return fail(Cause::bad_input, fmt::format("'{:.20}' is no event", what));
    event.submitted = what == "S";
    if (!REEF_TRY(read_address(take_until(line, ' '), event))) return false;
    // A request that was refused, and one whose setup packet was not captured.
    std::string_view status = take_until(line, ' ');
    if (status == "s") {
        if (!read_setup(line, event.setup)) return fail(Cause::bad_input, "no setup packet");
    } else if (!read_number(take_until(status, ':'), 10, event.status)) {
        return fail(Cause::bad_input, "no status");
    }
    if (!read_number(take_until(line, ' '), 10, event.length))
        return fail(Cause::bad_input, "no length");
    if (!read_data(line, event)) return fail(Cause::bad_input, "no data behind '='");
    read_identity(event);
    return true;
}

}  // namespace

bool are_usbmon_lines(std::string_view text) {
    UrbEvent event;
    return read_event(take_until(text, '\n'), event).has_value();
}

Result<std::vector<UrbEvent>> read_usbmon_lines(std::string_view text) {
    std::vector<UrbEvent> events;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = take_until(text, '\n');
        if (line.empty()) continue;
        UrbEvent event;
        event.line = number;
        if (REEF_TRY(in_place(read_event(line, event), fmt::format("line {}", number))))
            events.push_back(std::move(event));
    }
    return events;
}

}  // namespace reef::edgetpu::usb

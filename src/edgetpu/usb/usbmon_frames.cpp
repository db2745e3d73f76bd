// A packet analyser's export of usbmon captures: "Print as text" with every detail.
#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/usbmon.h"
#include "edgetpu/usb/usbmon_text.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::string_view frame_head = "Frame ";

/// A line's label and what stands behind its colon.
struct Line {
    std::string_view label, value;
};

Line line_of(std::string_view text) {
    const std::size_t start = std::min(text.find_first_not_of(" ["), text.size());
    text.remove_prefix(start);
    while (text.ends_with(']') || text.ends_with('\r')) text.remove_suffix(1);
    const std::size_t colon = text.find(": ");
    if (colon == std::string_view::npos) return {text, {}};
    return {text.substr(0, colon), text.substr(colon + 2)};
}

/// "IN (0x80)", "GET DESCRIPTOR (6)", "-EINPROGRESS) (-115)": what the last brackets hold; else
/// all.
std::string_view in_brackets(std::string_view text) {
    const std::size_t open = text.rfind('(');
    if (open == std::string_view::npos || !text.ends_with(')')) return text;
    return text.substr(open + 1, text.size() - open - 2);
}

/// Decimal, or hexadecimal behind "0x".
template <class T>
bool read_either(std::string_view text, T& value) {
    if (text.starts_with("0x")) return read_number(text.substr(2), 16, value);
    return read_number(text, 10, value);
}

/// What one paragraph says, line by line. The first line that is wrong makes it wrong.
class Frame {
  public:
    explicit Frame(std::size_t line) { event_.line = line; }

    void add(std::string_view text) {
        const Line line = line_of(text);
        if (wrong_.empty() && !take(line)) wrong_ = text;
    }
    /// Nothing: a frame of another kind.
    [[nodiscard]] Result<std::optional<UrbEvent>> take() && {
        if (!wrong_.empty())
            return fail(Cause::bad_input, fmt::format("'{:.60}' is not understood", wrong_));
        if (!has_type_) return std::nullopt;
        if (!has_address_ || !has_event_)
            return fail(Cause::bad_input, "a frame without its device, its request or its event");
        if (event_.data.size() > event_.length)
            return fail(Cause::bad_input, "more data than the request's length");
        return std::move(event_);
    }

  private:
    bool take(const Line& line) {
        const auto& [label, value] = line;
        if (label == "URB transfer type") return take_type(value);
        if (label == "URB id") return read_either(value, event_.urb);
        if (label == "URB type") {
            has_event_ = true;
            event_.submitted = value.starts_with("URB_SUBMIT");
            return true;
        }
        if (label == "Endpoint" && value.starts_with("0x"))
            return read_either(value.substr(0, value.find(',')), event_.endpoint);
        if (label == "Source" || label == "Destination") return take_address(value);
        if (label == "URB status") return read_either(in_brackets(value), event_.status);
        if (label == "URB length [bytes") return true;  // a label with a bracket of its own
        if (label == "URB length [bytes]") return read_either(value, event_.length);
        return take_setup(line) && take_identity(line) && take_data(line);
    }
    bool take_type(std::string_view value) {
        const std::string_view name = value.substr(0, value.find(' '));
        has_type_ = true;
        if (name == "URB_CONTROL") {
            event_.type = UrbEvent::Type::control;
        } else if (name == "URB_BULK") {
            event_.type = UrbEvent::Type::bulk;
        } else if (name == "URB_INTERRUPT") {
            event_.type = UrbEvent::Type::interrupt;
        } else {
            has_type_ = false;
        }
        return true;
    }
    /// "host" or "2.4.1".
    bool take_address(std::string_view value) {
        if (value == "host") return true;
        std::string_view rest = value;
        has_address_ = read_number(take_until(rest, '.'), 10, event_.bus) &&
                       read_number(take_until(rest, '.'), 10, event_.device);
        return has_address_;
    }
    bool take_setup(const Line& line) {
        Setup& setup = event_.setup;
        if (line.label == "bmRequestType") return read_either(line.value, setup.request_type);
        if (line.label == "bRequest") return read_either(in_brackets(line.value), setup.request);
        if (line.label == "wValue") return read_either(line.value, setup.value);
        if (line.label == "wLength") return read_either(line.value, setup.length);
        if (line.label == "wIndex")
            return read_either(line.value.substr(0, line.value.find(' ')), setup.index);
        if (line.label == "bDescriptorType" && event_.submitted) {
            std::uint8_t type = 0;
            if (!read_either(line.value.substr(0, line.value.find(' ')), type)) return false;
            setup.value = static_cast<std::uint16_t>(type << 8U | (setup.value & 0xffU));
        }
        return true;
    }
    bool take_identity(const Line& line) {
        if (line.label == "idVendor") return read_either(in_brackets(line.value), event_.vendor);
        if (line.label == "idProduct") return read_either(in_brackets(line.value), event_.product);
        return true;
    }
    /// The analyser cuts what is long, and says so with dots.
    bool take_data(const Line& line) {
        if (line.label != "Leftover Capture Data" && line.label != "Data Fragment" &&
            line.label != "CONTROL response data" &&
            !line.label.starts_with("GET DESCRIPTOR Response data")) {
            return true;
        }
        std::string_view digits = line.value;
        for (const std::string_view dots : {std::string_view("..."), std::string_view("\u2026")}) {
            if (digits.ends_with(dots)) digits.remove_suffix(dots.size());
        }
        return read_hex(digits, event_.data);
    }

    UrbEvent event_;
    bool has_type_ = false, has_address_ = false, has_event_ = false;
    std::string_view wrong_;
};

}  // namespace

bool are_usbmon_frames(std::string_view text) {
    const std::string_view first = take_until(text, '\n');
    return first.starts_with(frame_head) && first.contains(" bytes on wire");
}

Result<std::vector<UrbEvent>> read_usbmon_frames(std::string_view text) {
    std::vector<UrbEvent> events;
    std::optional<Frame> frame;
    std::size_t begin = 0;
    const auto end_frame = [&]() -> Status {
        if (!frame) return {};
        auto event = REEF_TRY(in_place(std::move(*frame).take(), fmt::format("line {}", begin)));
        if (event) events.push_back(std::move(*event));
        return {};
    };
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::string_view line = take_until(text, '\n');
        if (line.starts_with(frame_head)) {
            REEF_CHECK(end_frame());
            frame.emplace(number);
            begin = number;
        } else if (frame) {
            frame->add(line);
        }
    }
    REEF_CHECK(end_frame());
    return events;
}

}  // namespace reef::edgetpu::usb

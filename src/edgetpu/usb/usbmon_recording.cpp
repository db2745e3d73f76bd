// A capture as a recording. The wire shows neither who opened a device nor claims: those lines are
// written as a driver of the Edge TPU does them, around what was captured.
#include <fmt/format.h>

#include <cerrno>
#include <map>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/stick_descriptors.h"
#include "edgetpu/usb/usbmon.h"
#include "reef/base/sha256.h"
#include "reef/edgetpu/usb/recording.h"

namespace reef::edgetpu::usb {
namespace {

/// Hubs' SET_FEATURE(PORT_RESET) and, for USB 3 ports, BH_PORT_RESET (USB 3.1, 10.16).
constexpr std::uint8_t of_a_port = 0x23, set_feature = 3;
constexpr std::uint16_t port_reset = 4, warm_port_reset = 28;

bool is_port_reset(const UrbEvent& event) {
    const Setup& setup = event.setup;
    return event.type == UrbEvent::Type::control && event.submitted &&
           setup.request_type == of_a_port && setup.request == set_feature &&
           (setup.value == port_reset || setup.value == warm_port_reset);
}

std::string_view fault_of(int status) {
    switch (-status) {
        case EPIPE:
            return to_string(Fault::stall);
        case ETIMEDOUT:
            return to_string(Fault::timed_out);
        case EOVERFLOW:
            return to_string(Fault::overflow);
        case ENODEV:
        case ESHUTDOWN:
            return to_string(Fault::disconnected);
        default:
            return to_string(Fault::failed);
    }
}

class Writer {
  public:
    Writer() {
        line(
            "# from a capture of usbmon; opening, claiming, releasing and closing are not on the "
            "wire");
    }

    Status add(const UrbEvent& event) {
        if (is_port_reset(event)) {
            close();
        } else if (event.vendor != 0) {
            devices_[{event.bus, event.device}] = {event.vendor, event.product};
        } else if (belongs_to_the_stick(event)) {
            return in_place(add_transfer(event), fmt::format("line {}", event.line));
        }
        return {};
    }
    [[nodiscard]] Result<Recording> take() && {
        if (!any_) {
            return fail(Cause::bad_input,
                        "no transfer of an Edge TPU (18d1:9302) is in the capture", {},
                        "the capture must hold the device's descriptor: begin it before the driver "
                        "opens the stick");
        }
        close();
        return std::move(recording_);
    }

  private:
    using Address = std::pair<unsigned, unsigned>;  ///< bus and device
    struct Identity {
        std::uint16_t vendor = 0, product = 0;
    };
    struct Flight {
        std::uint32_t id = 0;
        UrbEvent submitted;
    };

    [[nodiscard]] bool belongs_to_the_stick(const UrbEvent& event) const {
        const auto found = devices_.find({event.bus, event.device});
        if (found == devices_.end()) return false;
        const Identity& is = found->second;
        return (is.vendor == chip_vendor && is.product == chip_product) ||
               (is.vendor == boot_vendor && is.product == boot_product);
    }

    void line(std::string_view text) {
        recording_.text += fmt::format("{:06d} {}\n", number_++, text);
    }
    void line_with(std::string_view text, const UrbEvent& event, std::size_t length) {
        const auto& data = event.data;
        const auto held =
            data.size() == length ? std::string() : fmt::format(" held={}", data.size());
        constexpr std::size_t shown = 32;
        line(fmt::format("{} len={}{} off={} data={}{}", text, length, held, recording_.data.size(),
                         to_hex(Bytes(data).first(std::min(data.size(), shown))),
                         data.size() < length || data.size() > shown ? ".." : ""));
        recording_.data.insert(recording_.data.end(), data.begin(), data.end());
    }

    /// As the driver begins: the descriptor, a bus reset, and open again.
    void open() {
        any_ = opened_ = true;
        const std::string identity = fmt::format("OPEN {:04x}:{:04x}", chip_vendor, chip_product);
        line(identity);
        UrbEvent descriptor;
        descriptor.data = chip_descriptors(Speed::super).device;
        line_with(
            "CTRL IN  bmRequestType=80 bRequest=06 wValue=0100 wIndex=0000 wLength=18 "
            "timeout=0 ret=18",
            descriptor, descriptor.data.size());
        line("RESET");
        line("CLOSE");
        line(identity);
        line("CLAIM 0");
    }
    void close() {
        if (!opened_) return;
        opened_ = false;
        flights_.clear();
        line("RELEASE 0");
        line("CLOSE");
    }

    Status add_transfer(const UrbEvent& event) {
        if (event.type == UrbEvent::Type::control) return add_control(event);
        if (!opened_) open();
        const bool in = (event.endpoint & 0x80U) != 0;
        const char* kind = event.type == UrbEvent::Type::bulk ? "BULK" : "INTR";
        if (event.submitted) {
            const Flight& flight = flights_[event.urb] = {next_id_++, {}};
            const std::string head = fmt::format("{} {} ep={:02x} async id={}", kind,
                                                 in ? "IN " : "OUT", event.endpoint, flight.id);
            if (in) {
                line(fmt::format("{} submit len={} timeout=0", head, event.length));
            } else {
                line_with(head + " timeout=0", event, event.length);
            }
            return {};
        }
        const auto flight = flights_.find(event.urb);
        if (flight == flights_.end()) return {};  // submitted before the capture began
        const std::string head = fmt::format("{} {} ep={:02x} async id={}", kind,
                                             in ? "IN " : "OUT", event.endpoint, flight->second.id);
        if (event.status == -ENOENT || event.status == -ECONNRESET) {
            line(fmt::format("{}     ep={:02x} id={} cancelled", kind, event.endpoint,
                             flight->second.id));
        } else if (event.status != 0) {
            line(fmt::format("{} failed {}", head, fault_of(event.status)));
        } else if (in) {
            line_with(head + " complete", event, event.length);
        } else {
            line(head + " complete");
        }
        flights_.erase(flight);
        return {};
    }

    /// Written when it ends. What the system asks of a device is left out.
    Status add_control(const UrbEvent& event) {
        if (event.submitted) {
            const std::uint8_t type = event.setup.request_type;
            if (type == dfu_write || type == dfu_read) {
                return fail(Cause::unsupported, "not modelled: captures of a firmware download", {},
                            "begin the capture when the stick's firmware runs");
            }
            if (type == register_read || type == register_write) flights_[event.urb] = {0, event};
            return {};
        }
        const auto flight = flights_.find(event.urb);
        if (flight == flights_.end()) return {};
        if (!opened_) open();
        const UrbEvent& request = flight->second.submitted;
        const Setup& setup = request.setup;
        const bool in = setup.to_host();
        const UrbEvent& payload = in ? event : request;
        if (payload.data.size() > setup.length)
            return fail(Cause::bad_input, "more data than wLength");
        const int moved = static_cast<int>(in ? event.data.size() : setup.length);
        line_with(fmt::format("CTRL {} bmRequestType={:02x} bRequest={:02x} wValue={:04x} "
                              "wIndex={:04x} wLength={} timeout=0 ret={}{}",
                              in ? "IN " : "OUT", setup.request_type, setup.request, setup.value,
                              setup.index, setup.length, event.status == 0 ? moved : -1,
                              event.status == 0 ? std::string()
                                                : fmt::format(" fault={}", fault_of(event.status))),
                  payload, payload.data.size());
        flights_.erase(event.urb);
        return {};
    }

    Recording recording_;
    std::size_t number_ = 0;
    std::uint32_t next_id_ = 1;
    bool any_ = false, opened_ = false;
    std::map<Address, Identity> devices_;
    std::map<std::uint64_t, Flight> flights_;
};

}  // namespace

bool is_usbmon(std::string_view text) {
    return are_usbmon_frames(text) || are_usbmon_lines(text);
}

Result<Recording> recording_of_usbmon(std::string_view text) {
    const auto events = are_usbmon_frames(text) ? REEF_TRY(read_usbmon_frames(text))
                                                : REEF_TRY(read_usbmon_lines(text));
    Writer writer;
    for (const UrbEvent& event : events) REEF_CHECK(writer.add(event));
    return std::move(writer).take();
}

}  // namespace reef::edgetpu::usb

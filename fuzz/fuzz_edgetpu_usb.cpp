// USB recordings: the wire view of any text, and the driver against any recording as its device.
// The first four bytes are the size of the text; the payloads follow it. Text that is a capture of
// usbmon becomes a recording first.
#include <algorithm>
#include <cstring>

#include "check.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/recording.h"

namespace reef::fuzz {
namespace {

using namespace edgetpu::usb;

void try_recording(Bytes input) {
    std::uint32_t size = 0;
    if (input.size() < sizeof size) return;
    std::memcpy(&size, input.data(), sizeof size);
    input = input.subspan(sizeof size);
    const std::size_t text = std::min<std::size_t>(size, input.size());
    Recording recording{.text = std::string(as_text(input.first(text))), .data = {}};
    recording.data.assign(input.begin() + static_cast<std::ptrdiff_t>(text), input.end());

    if (is_usbmon(recording.text)) {
        auto read = recording_of_usbmon(recording.text);
        check(read.has_value() || !read.error().what.empty(), "an error says what is wrong");
        if (!read) return;
        recording = std::move(*read);
        check(wire_view(recording).has_value(), "what a capture becomes is a recording");
        check(register_transfers(recording).has_value(), "and so are its register transfers");
        check(wire_view(without_data_transfers(recording)).has_value(), "without its data, too");
    }
    const auto view = wire_view(recording);
    check(view.has_value() || !view.error().what.empty(), "an error says what is wrong");
    const auto bus = replay_bus(recording);
    check(bus.has_value() == view.has_value(), "what has a view can be replayed");
    if (!bus) return;
    const auto device = Device::open(*bus, {});
    check(device.has_value() || !device.error().what.empty(), "an error says what is wrong");
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    reef::fuzz::try_recording(std::as_bytes(std::span(data, size)));
    return 0;
}

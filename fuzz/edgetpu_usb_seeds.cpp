#include <span>

#include "edgetpu/usb/small_program.h"
#include "reef/edgetpu/usb/recording.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

using namespace edgetpu::usb;

std::vector<std::byte> as_input(const Recording& recording) {
    const auto size = static_cast<std::uint32_t>(recording.text.size());
    const auto head = std::as_bytes(std::span(&size, 1));
    std::vector<std::byte> bytes(head.begin(), head.end());
    const Bytes text = as_bytes(recording.text);
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.insert(bytes.end(), recording.data.begin(), recording.data.end());
    return bytes;
}

Result<Recording> session(Speed speed, bool runs) {
    const auto stick = std::make_shared<SimulatedBus>();
    StickOptions options;
    options.has_firmware = true;
    options.speed = speed;
    stick->plug(options, test::small_core());
    const auto bus = std::make_shared<RecordingBus>(stick);
    {
        const auto device = REEF_TRY(Device::open(bus, {}));
        if (runs) REEF_CHECK(test::run_small(*device, test::small_program()));
    }
    return bus->recording();
}

constexpr std::string_view lines =
    "ffff0001 100 S Ci:2:004:0 s 80 06 0100 0000 0012 18 <\n"
    "ffff0001 110 C Ci:2:004:0 0 18 = 12011003 00000009 d1180293 00010000 0001\n"
    "ffff0007 150 S Co:2:002:0 s 23 03 0004 0003 0000 0\n"
    "ffff0002 200 S Ci:2:004:0 s c0 01 a30c 0001 0004 4 <\n"
    "ffff0002 210 C Ci:2:004:0 0 4 = 59000f00\n"
    "ffff0003 220 S Co:2:004:0 s 40 01 a30c 0001 0004 4 = 59000f00\n"
    "ffff0003 230 C Co:2:004:0 -32 4 >\n"
    "ffff0004 240 S Bi:2:004:1 -115 1024 <\n"
    "ffff0006 260 S Bo:2:004:1 -115 40 = 01020304 05060708\n"
    "ffff0006 270 C Bo:2:004:1 0 40 >\n"
    "ffff0004 280 C Bi:2:004:1 -2 0\n";

constexpr std::string_view frames =
    "Frame 1: 64 bytes on wire (512 bits)\n"
    "    [Source: 2.4.0]\n    [Destination: host]\n    URB id: 0xffff0001\n"
    "    URB type: URB_COMPLETE ('C')\n    URB transfer type: URB_CONTROL (0x02)\n"
    "    Endpoint: 0x80, Direction: IN\n    URB status: Success (0)\n"
    "    URB length [bytes]: 18\nDEVICE DESCRIPTOR\n"
    "    idVendor: Google Inc. (0x18d1)\n    idProduct: Unknown (0x9302)\n\n"
    "Frame 2: 64 bytes on wire (512 bits)\n"
    "    [Source: host]\n    [Destination: 2.4.0]\n    URB id: 0xffff0002\n"
    "    URB type: URB_SUBMIT ('S')\n    URB transfer type: URB_CONTROL (0x02)\n"
    "    Endpoint: 0x00, Direction: OUT\n    URB length [bytes]: 4\nURB setup\n"
    "    bmRequestType: 0x40\n    bRequest: 1\n    wValue: 0xa30c\n"
    "    wIndex: 1 (0x0001)\n    wLength: 4\n    Data Fragment: 59000f00\n\n"
    "Frame 3: 64 bytes on wire (512 bits)\n"
    "    [Source: 2.4.0]\n    [Destination: host]\n    URB id: 0xffff0002\n"
    "    URB type: URB_COMPLETE ('C')\n    URB transfer type: URB_CONTROL (0x02)\n"
    "    Endpoint: 0x00, Direction: OUT\n    URB status: Success (0)\n"
    "    URB length [bytes]: 4\n\n"
    "Frame 4: 64 bytes on wire (512 bits)\n"
    "    [Source: host]\n    [Destination: 2.4.1]\n    URB id: 0xffff0003\n"
    "    URB type: URB_SUBMIT ('S')\n    URB transfer type: URB_BULK (0x03)\n"
    "    Endpoint: 0x01, Direction: OUT\n    URB length [bytes]: 8\n"
    "Leftover Capture Data: b01a00...\n";

}  // namespace

Result<Seeds> edgetpu_usb_seeds() {
    Seeds seeds;
    seeds.emplace_back("usbmon-lines", as_input({.text = std::string(lines), .data = {}}));
    seeds.emplace_back("usbmon-frames", as_input({.text = std::string(frames), .data = {}}));
    seeds.emplace_back("start", as_input(REEF_TRY(session(Speed::super, false))));
    seeds.emplace_back("run", as_input(REEF_TRY(session(Speed::super, true))));
    seeds.emplace_back("run-usb2", as_input(REEF_TRY(session(Speed::high, true))));
    return seeds;
}

}  // namespace reef::fuzz

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

}  // namespace

Result<Seeds> edgetpu_usb_seeds() {
    Seeds seeds;
    seeds.emplace_back("start", as_input(REEF_TRY(session(Speed::super, false))));
    seeds.emplace_back("run", as_input(REEF_TRY(session(Speed::super, true))));
    seeds.emplace_back("run-usb2", as_input(REEF_TRY(session(Speed::high, true))));
    return seeds;
}

}  // namespace reef::fuzz

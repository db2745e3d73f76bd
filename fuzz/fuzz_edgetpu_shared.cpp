// What clients ask of shared simulated sticks: packets of any bytes, one behind the other, each
// with its size in one byte in front.
#include "check.h"
#include "reef/edgetpu/usb/shared_sticks.h"

namespace reef::fuzz {
namespace {

using namespace edgetpu::usb;

/// A chip that takes everything and has nothing to say.
class Sink final : public ChipCore {
  public:
    void reset() override {}
    Status receive(edgetpu::Tag, Bytes) override { return {}; }
    std::size_t take_output(MutableBytes) override { return 0; }
    std::optional<ChipEvent> take_event() override { return std::nullopt; }
};

void try_packets(Bytes input) {
    StickServer server;
    server.plug({.port = "2-1", .has_firmware = true, .faults = {}}, std::make_unique<Sink>());
    StickServer::Session session(server);
    while (!input.empty()) {
        const std::size_t size =
            std::min(static_cast<std::size_t>(input.front()), input.size() - 1);
        const Bytes packet = input.subspan(1, size);
        input = input.subspan(1 + size);
        static_cast<void>(
            session.answer(Packet(std::vector<std::byte>(packet.begin(), packet.end()))));
    }
    const auto ports = SharedBus::ports([&]() -> std::optional<Exchange> {
        return
            [&](const Packet& request) -> std::optional<Packet> { return session.answer(request); };
    });
    check(ports.has_value() && ports->size() == 1, "the server still answers");
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    reef::fuzz::try_packets(std::as_bytes(std::span(data, size)));
    return 0;
}

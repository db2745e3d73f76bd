#include <fmt/format.h>

#include "edgetpu/usb/shared_request.h"

namespace reef::edgetpu::usb {

Packet& Packet::put_raw(Bytes bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
}

Packet& Packet::put_bytes(Bytes bytes) {
    return put(static_cast<std::uint32_t>(bytes.size())).put_raw(bytes);
}

Bytes Packet::take_raw(std::size_t size) {
    good_ = good_ && size <= bytes_.size() - at_;
    if (!good_) return {};
    at_ += size;
    return Bytes(bytes_).subspan(at_ - size, size);
}

Bytes Packet::take_bytes() {
    return take_raw(take<std::uint32_t>());
}

std::string Packet::take_text() {
    return std::string(as_text(take_bytes()));
}

void put_device(Packet& packet, const DeviceInfo& device) {
    packet.put(device.vendor).put(device.product).put(device.address).put(device.speed);
    packet.put_text(device.port);
}

DeviceInfo take_device(Packet& packet) {
    DeviceInfo device;
    device.vendor = packet.take<std::uint16_t>();
    device.product = packet.take<std::uint16_t>();
    device.address = packet.take<unsigned>();
    device.speed = packet.take<Speed>();
    device.port = packet.take_text();
    return device;
}

Io<void> take_outcome(std::optional<Packet>& answer) {
    if (!answer) return std::unexpected(Failure{Fault::disconnected, "the sticks' server is gone"});
    const auto done = answer->take<std::uint8_t>() != 0;
    if (done && answer->good()) return {};
    const auto fault = answer->take<Fault>();
    std::string what = answer->take_text();
    if (!answer->good()) return std::unexpected(Failure{Fault::failed, "no answer to a request"});
    return std::unexpected(Failure{fault, std::move(what)});
}

}  // namespace reef::edgetpu::usb

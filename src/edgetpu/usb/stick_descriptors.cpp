#include "edgetpu/usb/stick_descriptors.h"

#include <span>

#include "edgetpu/usb/protocol.h"

namespace reef::edgetpu::usb {
namespace {

using Raw = std::vector<std::uint8_t>;

constexpr std::uint8_t bulk_type = 2, interrupt_type = 3;
constexpr std::uint8_t string_type = 3;

std::uint8_t low(std::size_t word) {
    return static_cast<std::uint8_t>(word);
}
std::uint8_t high(std::size_t word) {
    return static_cast<std::uint8_t>(word >> 8);
}

std::vector<std::byte> bytes_of(std::span<const std::uint8_t> raw) {
    const auto all = std::as_bytes(raw);
    return {all.begin(), all.end()};
}

std::vector<std::byte> device(std::uint16_t vendor, std::uint16_t product, bool super) {
    // USB 3.1 with packets of 2^9 bytes on endpoint 0, or USB 2.1 with 64. No strings are named.
    return bytes_of(Raw{18, 1, 0x10, low(super ? 3 : 2), 0, 0, 0, low(super ? 9 : 64), low(vendor),
                        high(vendor), low(product), high(product), 0, 1, 0, 0, 0, 1});
}

/// String 0 lists languages; no other string has an index that a descriptor names.
std::vector<std::vector<std::byte>> strings() {
    std::vector<std::vector<std::byte>> all = {bytes_of(Raw{4, string_type, 0x09, 0x04})};
    for (const std::string_view text : {std::string_view("Reef"), simulated_product}) {
        Raw raw = {low(2 + 2 * text.size()), string_type};
        for (const char letter : text)
            raw.insert(raw.end(), {static_cast<std::uint8_t>(letter), 0});
        all.push_back(bytes_of(raw));
    }
    return all;
}

/// One vendor-specific interface with six endpoints. Their companions have 6 bytes each, of which
/// no capture shows the last four: bursts of 16 packets, which the rate of a real stick needs.
std::vector<std::byte> chip_configuration(Speed speed) {
    const bool super = speed >= Speed::super;
    constexpr std::uint8_t out[] = {out_endpoint, inputs_endpoint, parameters_endpoint};
    constexpr std::uint8_t in[] = {output_endpoint, event_endpoint};
    Raw raw = {9, 2, 0, 0, 1, 1,    0,    0x80, low(spec::usb_max_power),
               9, 4, 0, 0, 6, 0xff, 0xff, 0xff, 0};
    const auto endpoint = [&](std::uint8_t address, std::uint8_t type, std::size_t packet,
                              std::uint8_t interval) {
        raw.insert(raw.end(), {7, 5, address, type, low(packet), high(packet), interval});
        if (!super) return;
        constexpr std::uint8_t companion = 0x30, bursts = 15;
        const bool interrupts = type == interrupt_type;
        raw.insert(raw.end(), {6, companion, interrupts ? std::uint8_t{0} : bursts, 0,
                               interrupts ? low(packet) : std::uint8_t{0}, 0});
    };
    for (const auto address : out) endpoint(address, bulk_type, bulk_packet_bytes(speed), 0);
    for (const auto address : in) endpoint(address, bulk_type, bulk_packet_bytes(speed), 0);
    endpoint(interrupt_endpoint, interrupt_type, spec::usb_interrupt_packet_bytes, 1);
    raw[2] = low(raw.size());
    return bytes_of(raw);
}

/// The DFU interface with its functional descriptor: blocks of 256 bytes, up and down.
constexpr std::uint8_t boot_configuration[] = {9, 2,    27, 0,    1, 1,    0, 0x80, 250,  //
                                               9, 4,    0,  0,    0, 0xfe, 1, 2,    0,    //
                                               9, 0x21, 7,  0xe8, 3, 0,    1, 0x10, 1};

/// Link power management, high and super speed, no exit latencies.
constexpr std::uint8_t chip_object_store[] = {5,  0x0f, 22, 0, 2,           //
                                              7,  0x10, 2,  2, 0,    0, 0,  //
                                              10, 0x10, 3,  0, 0x0c, 0, 2, 0, 0, 0};

}  // namespace

std::size_t bulk_packet_bytes(Speed speed) {
    if (speed >= Speed::super) return 1024;
    return speed == Speed::high ? 512 : 64;
}

StickDescriptors boot_descriptors() {
    return {.device = device(boot_vendor, boot_product, false),
            .configuration = bytes_of(boot_configuration),
            .object_store = {},
            .strings = strings()};
}

StickDescriptors chip_descriptors(Speed speed) {
    return {.device = device(chip_vendor, chip_product, speed >= Speed::super),
            .configuration = chip_configuration(speed),
            .object_store = bytes_of(chip_object_store),
            .strings = strings()};
}

}  // namespace reef::edgetpu::usb

#include "abi/libusb/descriptors.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace reef::abi::libusb {
namespace {

/// One descriptor after the other; each begins with its length and type.
struct Piece {
    std::uint8_t type = 0;
    Bytes bytes;
    [[nodiscard]] std::uint8_t at(std::size_t i) const {
        return i < bytes.size() ? static_cast<std::uint8_t>(bytes[i]) : std::uint8_t{0};
    }
    [[nodiscard]] std::uint16_t word(std::size_t i) const {
        return static_cast<std::uint16_t>(at(i) | at(i + 1) << 8);
    }
};

std::vector<Piece> pieces_of(Bytes bytes) {
    std::vector<Piece> pieces;
    while (bytes.size() >= 2) {
        const auto size = static_cast<std::size_t>(bytes[0]);
        if (size < 2 || size > bytes.size()) break;
        pieces.push_back({static_cast<std::uint8_t>(bytes[1]), bytes.first(size)});
        bytes = bytes.subspan(size);
    }
    return pieces;
}

struct Interface {
    libusb_interface_descriptor descriptor{};
    std::vector<unsigned char> extra;
    struct Endpoint {
        libusb_endpoint_descriptor descriptor{};
        std::vector<unsigned char> extra;
    };
    std::vector<Endpoint> endpoints;
};

libusb_interface_descriptor interface_of(const Piece& piece) {
    return {.bLength = piece.at(0),
            .bDescriptorType = piece.at(1),
            .bInterfaceNumber = piece.at(2),
            .bAlternateSetting = piece.at(3),
            .bNumEndpoints = piece.at(4),
            .bInterfaceClass = piece.at(5),
            .bInterfaceSubClass = piece.at(6),
            .bInterfaceProtocol = piece.at(7),
            .iInterface = piece.at(8),
            .endpoint = nullptr,
            .extra = nullptr,
            .extra_length = 0};
}

libusb_endpoint_descriptor endpoint_of(const Piece& piece) {
    return {.bLength = piece.at(0),
            .bDescriptorType = piece.at(1),
            .bEndpointAddress = piece.at(2),
            .bmAttributes = piece.at(3),
            .wMaxPacketSize = piece.word(4),
            .bInterval = piece.at(6),
            .bRefresh = piece.at(7),
            .bSynchAddress = piece.at(8),
            .extra = nullptr,
            .extra_length = 0};
}

/// An array for a C struct that frees it with free(); null for none. Throws std::bad_alloc.
template <class T>
T* array_of(const std::vector<T>& values) {
    if (values.empty()) return nullptr;
    auto* array = static_cast<T*>(std::malloc(values.size() * sizeof(T)));
    if (array == nullptr) throw std::bad_alloc();
    std::memcpy(array, values.data(), values.size() * sizeof(T));
    return array;
}

libusb_interface_descriptor finished(const Interface& interface) {
    std::vector<libusb_endpoint_descriptor> endpoints;
    for (const auto& each : interface.endpoints) {
        endpoints.push_back(each.descriptor);
        endpoints.back().extra = array_of(each.extra);
        endpoints.back().extra_length = static_cast<int>(each.extra.size());
    }
    auto descriptor = interface.descriptor;
    descriptor.bNumEndpoints = static_cast<std::uint8_t>(endpoints.size());
    descriptor.endpoint = array_of(endpoints);
    descriptor.extra = array_of(interface.extra);
    descriptor.extra_length = static_cast<int>(interface.extra.size());
    return descriptor;
}

}  // namespace

int read_device_descriptor(Bytes bytes, libusb_device_descriptor& descriptor) {
    if (bytes.size() < LIBUSB_DT_DEVICE_SIZE) return LIBUSB_ERROR_IO;
    const Piece piece{LIBUSB_DT_DEVICE, bytes.first(LIBUSB_DT_DEVICE_SIZE)};
    descriptor = {.bLength = piece.at(0),
                  .bDescriptorType = piece.at(1),
                  .bcdUSB = piece.word(2),
                  .bDeviceClass = piece.at(4),
                  .bDeviceSubClass = piece.at(5),
                  .bDeviceProtocol = piece.at(6),
                  .bMaxPacketSize0 = piece.at(7),
                  .idVendor = piece.word(8),
                  .idProduct = piece.word(10),
                  .bcdDevice = piece.word(12),
                  .iManufacturer = piece.at(14),
                  .iProduct = piece.at(15),
                  .iSerialNumber = piece.at(16),
                  .bNumConfigurations = piece.at(17)};
    return LIBUSB_SUCCESS;
}

int read_configuration(Bytes bytes, libusb_config_descriptor*& configuration) {
    const auto pieces = pieces_of(bytes);
    if (pieces.empty() || pieces[0].type != LIBUSB_DT_CONFIG ||
        pieces[0].bytes.size() < LIBUSB_DT_CONFIG_SIZE) {
        return LIBUSB_ERROR_IO;
    }
    const Piece& head = pieces[0];
    std::vector<std::vector<Interface>> interfaces;  // by number, in order; their settings
    std::vector<unsigned char> extra, *last = &extra;
    for (const Piece& piece : std::span(pieces).subspan(1)) {
        if (piece.type == LIBUSB_DT_INTERFACE) {
            const auto descriptor = interface_of(piece);
            if (interfaces.empty() ||
                interfaces.back()[0].descriptor.bInterfaceNumber != descriptor.bInterfaceNumber) {
                interfaces.emplace_back();
            }
            interfaces.back().push_back({descriptor, {}, {}});
            last = &interfaces.back().back().extra;
        } else if (piece.type == LIBUSB_DT_ENDPOINT && !interfaces.empty()) {
            auto& endpoints = interfaces.back().back().endpoints;
            endpoints.push_back({endpoint_of(piece), {}});
            last = &endpoints.back().extra;
        } else {
            const auto* data = reinterpret_cast<const unsigned char*>(piece.bytes.data());
            last->insert(last->end(), data, data + piece.bytes.size());
        }
    }
    std::vector<libusb_interface> all;
    for (const auto& settings : interfaces) {
        std::vector<libusb_interface_descriptor> descriptors;
        for (const Interface& setting : settings) descriptors.push_back(finished(setting));
        all.push_back({.altsetting = array_of(descriptors),
                       .num_altsetting = static_cast<int>(descriptors.size())});
    }
    configuration = array_of(std::vector<libusb_config_descriptor>{
        {.bLength = head.at(0),
         .bDescriptorType = head.at(1),
         .wTotalLength = head.word(2),
         .bNumInterfaces = static_cast<std::uint8_t>(all.size()),
         .bConfigurationValue = head.at(5),
         .iConfiguration = head.at(6),
         .bmAttributes = head.at(7),
         .MaxPower = head.at(8),
         .interface = array_of(all),
         .extra = array_of(extra),
         .extra_length = static_cast<int>(extra.size())}});
    return LIBUSB_SUCCESS;
}

void free_configuration(libusb_config_descriptor* configuration) {
    // The structs say const of what their maker allocated.
    const auto release = [](const void* memory) { std::free(const_cast<void*>(memory)); };
    if (configuration == nullptr) return;
    for (int i = 0; i < configuration->bNumInterfaces; ++i) {
        const libusb_interface& interface = configuration->interface[i];
        for (int k = 0; k < interface.num_altsetting; ++k) {
            const libusb_interface_descriptor& setting = interface.altsetting[k];
            for (int e = 0; e < setting.bNumEndpoints; ++e) release(setting.endpoint[e].extra);
            release(setting.endpoint);
            release(setting.extra);
        }
        release(interface.altsetting);
    }
    release(configuration->interface);
    release(configuration->extra);
    release(configuration);
}

}  // namespace reef::abi::libusb

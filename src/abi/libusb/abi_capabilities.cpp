// Companions of USB 3 endpoints, and what a device's binary object store says (USB 3.1, 9.6).
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "abi/libusb/descriptors.h"
#include "abi/libusb/handle.h"

namespace reef::abi::libusb {
namespace {

constexpr std::size_t head_bytes = 3;  ///< length, type and kind of a capability

/// A C struct that its caller frees; null when there is no memory.
template <class T>
T* made(const T& value) {
    auto* one = static_cast<T*>(std::malloc(sizeof(T)));
    if (one != nullptr) *one = value;
    return one;
}

template <class T>
int give(T* value, T** to) {
    *to = value;
    return value == nullptr ? int{LIBUSB_ERROR_NO_MEM} : int{LIBUSB_SUCCESS};
}

std::uint16_t word(const std::uint8_t* bytes) {
    return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8);
}

bool is(const libusb_bos_dev_capability_descriptor* capability, std::uint8_t kind,
        std::size_t bytes) {
    return capability != nullptr && capability->bDevCapabilityType == kind &&
           capability->bLength >= bytes;
}

/// With its bytes behind it.
libusb_bos_dev_capability_descriptor* capability_of(const std::uint8_t* bytes) {
    auto* one = static_cast<libusb_bos_dev_capability_descriptor*>(
        std::malloc(sizeof(libusb_bos_dev_capability_descriptor) + bytes[0]));
    if (one == nullptr) return nullptr;
    one->bLength = bytes[0];
    one->bDescriptorType = bytes[1];
    one->bDevCapabilityType = bytes[2];
    std::memcpy(one->dev_capability_data, bytes + head_bytes, bytes[0] - head_bytes);
    return one;
}

}  // namespace
}  // namespace reef::abi::libusb

using namespace reef::abi::libusb;

extern "C" {

int libusb_get_ss_endpoint_companion_descriptor(libusb_context*,
                                                const libusb_endpoint_descriptor* endpoint,
                                                libusb_ss_endpoint_companion_descriptor** to) {
    if (endpoint == nullptr || to == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    const std::uint8_t* bytes = endpoint->extra;
    const std::uint8_t* end = bytes + std::max(endpoint->extra_length, 0);
    while (end - bytes >= 2 && bytes[0] >= 2 && bytes[0] <= end - bytes) {
        if (bytes[1] == LIBUSB_DT_SS_ENDPOINT_COMPANION &&
            bytes[0] >= LIBUSB_DT_SS_ENDPOINT_COMPANION_SIZE) {
            return give(
                made(libusb_ss_endpoint_companion_descriptor{.bLength = bytes[0],
                                                             .bDescriptorType = bytes[1],
                                                             .bMaxBurst = bytes[2],
                                                             .bmAttributes = bytes[3],
                                                             .wBytesPerInterval = word(bytes + 4)}),
                to);
        }
        bytes += bytes[0];
    }
    return LIBUSB_ERROR_NOT_FOUND;
}

void libusb_free_ss_endpoint_companion_descriptor(
    libusb_ss_endpoint_companion_descriptor* companion) {
    std::free(companion);
}

int libusb_get_bos_descriptor(libusb_device_handle* handle, libusb_bos_descriptor** to) {
    if (handle == nullptr || to == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    if (handle->is_gone()) return LIBUSB_ERROR_NO_DEVICE;
    const auto& all = handle->node().descriptors.object_store;
    if (all.size() < LIBUSB_DT_BOS_SIZE) return LIBUSB_ERROR_PIPE;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(all.data());
    const std::size_t count = bytes[4];
    auto* store = static_cast<libusb_bos_descriptor*>(std::calloc(
        1, sizeof(libusb_bos_descriptor) + count * sizeof(libusb_bos_dev_capability_descriptor*)));
    if (store == nullptr) return LIBUSB_ERROR_NO_MEM;
    store->bLength = bytes[0];
    store->bDescriptorType = bytes[1];
    store->wTotalLength = word(bytes + 2);
    std::size_t at = bytes[0];
    while (store->bNumDeviceCaps < count && at + head_bytes <= all.size() &&
           bytes[at] >= head_bytes && at + bytes[at] <= all.size()) {
        auto* capability = capability_of(bytes + at);
        if (capability == nullptr) {
            libusb_free_bos_descriptor(store);
            return LIBUSB_ERROR_NO_MEM;
        }
        store->dev_capability[store->bNumDeviceCaps++] = capability;
        at += bytes[at];
    }
    *to = store;
    return LIBUSB_SUCCESS;
}

void libusb_free_bos_descriptor(libusb_bos_descriptor* store) {
    if (store == nullptr) return;
    for (int i = 0; i < store->bNumDeviceCaps; ++i) std::free(store->dev_capability[i]);
    std::free(store);
}

int libusb_get_usb_2_0_extension_descriptor(libusb_context*,
                                            libusb_bos_dev_capability_descriptor* capability,
                                            libusb_usb_2_0_extension_descriptor** to) {
    if (to == nullptr ||
        !is(capability, LIBUSB_BT_USB_2_0_EXTENSION, LIBUSB_BT_USB_2_0_EXTENSION_SIZE)) {
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    const std::uint8_t* data = capability->dev_capability_data;
    return give(
        made(libusb_usb_2_0_extension_descriptor{
            .bLength = capability->bLength,
            .bDescriptorType = capability->bDescriptorType,
            .bDevCapabilityType = capability->bDevCapabilityType,
            .bmAttributes = std::uint32_t{word(data)} | std::uint32_t{word(data + 2)} << 16}),
        to);
}

void libusb_free_usb_2_0_extension_descriptor(libusb_usb_2_0_extension_descriptor* extension) {
    std::free(extension);
}

int libusb_get_ss_usb_device_capability_descriptor(
    libusb_context*, libusb_bos_dev_capability_descriptor* capability,
    libusb_ss_usb_device_capability_descriptor** to) {
    if (to == nullptr || !is(capability, LIBUSB_BT_SS_USB_DEVICE_CAPABILITY,
                             LIBUSB_BT_SS_USB_DEVICE_CAPABILITY_SIZE)) {
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    const std::uint8_t* data = capability->dev_capability_data;
    return give(made(libusb_ss_usb_device_capability_descriptor{
                    .bLength = capability->bLength,
                    .bDescriptorType = capability->bDescriptorType,
                    .bDevCapabilityType = capability->bDevCapabilityType,
                    .bmAttributes = data[0],
                    .wSpeedSupported = word(data + 1),
                    .bFunctionalitySupport = data[3],
                    .bU1DevExitLat = data[4],
                    .bU2DevExitLat = word(data + 5)}),
                to);
}

void libusb_free_ss_usb_device_capability_descriptor(
    libusb_ss_usb_device_capability_descriptor* capability) {
    std::free(capability);
}

// No stick says what container it is.
int libusb_get_container_id_descriptor(libusb_context*, libusb_bos_dev_capability_descriptor*,
                                       libusb_container_id_descriptor**) {
    return LIBUSB_ERROR_INVALID_PARAM;
}

void libusb_free_container_id_descriptor(libusb_container_id_descriptor* container) {
    std::free(container);
}

}  // extern "C"

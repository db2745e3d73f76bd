// Devices: lists, descriptors, opening, configurations and interfaces.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "abi/libusb/boundary.h"
#include "abi/libusb/descriptors.h"
#include "abi/libusb/handle.h"
#include "abi/libusb/log.h"

namespace reef::abi::libusb {
namespace {

using edgetpu::usb::Fault;
using edgetpu::usb::Io;

int code_of(Fault fault) {
    switch (fault) {
        case Fault::stall:
            return LIBUSB_ERROR_PIPE;
        case Fault::timed_out:
            return LIBUSB_ERROR_TIMEOUT;
        case Fault::overflow:
            return LIBUSB_ERROR_OVERFLOW;
        case Fault::disconnected:
            return LIBUSB_ERROR_NO_DEVICE;
        case Fault::denied:
            return LIBUSB_ERROR_ACCESS;
        case Fault::busy:
            return LIBUSB_ERROR_BUSY;
        case Fault::cancelled:
        case Fault::no_bus:
        case Fault::failed:
            break;
    }
    return LIBUSB_ERROR_IO;
}

int code_of(const Io<void>& done) {
    return done ? LIBUSB_SUCCESS : code_of(done.error().fault);
}

constexpr int configuration_value = 1, interfaces = 1;

/// The endpoint's descriptor; null when the device has none with that address.
std::optional<libusb_endpoint_descriptor> endpoint_of(const libusb_device& device,
                                                      unsigned char endpoint) {
    libusb_config_descriptor* configuration = nullptr;
    if (read_configuration(device.node->descriptors.configuration, configuration) != 0) return {};
    std::optional<libusb_endpoint_descriptor> found;
    for (int i = 0; i < configuration->bNumInterfaces; ++i) {
        const libusb_interface_descriptor& setting = configuration->interface[i].altsetting[0];
        for (int e = 0; e < setting.bNumEndpoints; ++e) {
            if (setting.endpoint[e].bEndpointAddress == endpoint) found = setting.endpoint[e];
        }
    }
    free_configuration(configuration);
    return found;
}

/// What refuses a call about an interface before the device is asked.
int refuse_interface(const libusb_device_handle* handle, int interface) {
    if (handle == nullptr || interface < 0 || interface > 31) return LIBUSB_ERROR_INVALID_PARAM;
    if (handle->is_gone()) return LIBUSB_ERROR_NO_DEVICE;
    if (interface >= interfaces) return LIBUSB_ERROR_NOT_FOUND;
    return LIBUSB_SUCCESS;
}

bool holds(libusb_device_handle& handle, int interface) {
    Node& node = handle.node();
    const std::lock_guard lock(node.mutex);
    const auto it = node.claims.find(interface);
    return it != node.claims.end() && it->second == &handle;
}

/// Asks the device.
int claim(libusb_device_handle& handle, int interface) try {
    return code_of(handle.claim(static_cast<unsigned>(interface)));
} catch (const std::exception& failure) {
    return error_of(failure);
}

}  // namespace
}  // namespace reef::abi::libusb

using namespace reef::abi::libusb;

extern "C" {

// -- Lists ----------------------------------------------------------------------------------------

ssize_t libusb_get_device_list(libusb_context* context, libusb_device*** list) try {
    context = context_or_default(context);
    if (context == nullptr || list == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    const auto devices = context->devices();
    auto** array =
        static_cast<libusb_device**>(std::calloc(devices.size() + 1, sizeof(libusb_device*)));
    if (array == nullptr) {
        for (libusb_device* device : devices) libusb_unref_device(device);
        return LIBUSB_ERROR_NO_MEM;
    }
    std::ranges::copy(devices, array);
    *list = array;
    return static_cast<ssize_t>(devices.size());
} catch (const std::exception& failure) {
    return error_of(failure);
}

void libusb_free_device_list(libusb_device** list, int unref_devices) {
    if (list == nullptr) return;
    for (libusb_device** device = list; unref_devices != 0 && *device != nullptr; ++device) {
        libusb_unref_device(*device);
    }
    std::free(list);
}

libusb_device* libusb_ref_device(libusb_device* device) {
    ++device->references;
    return device;
}

void libusb_unref_device(libusb_device* device) {
    if (device != nullptr && --device->references == 0) delete device;
}

std::uint8_t libusb_get_bus_number(libusb_device* device) {
    return device->node->bus;
}

std::uint8_t libusb_get_port_number(libusb_device* device) {
    return device->node->port_numbers.back();
}

int libusb_get_port_numbers(libusb_device* device, std::uint8_t* numbers, int room) {
    const auto& all = device->node->port_numbers;
    if (room <= 0) return LIBUSB_ERROR_INVALID_PARAM;
    if (all.size() > static_cast<std::size_t>(room)) return LIBUSB_ERROR_OVERFLOW;
    std::ranges::copy(all, numbers);
    return static_cast<int>(all.size());
}

int libusb_get_port_path(libusb_context*, libusb_device* device, std::uint8_t* numbers,
                         std::uint8_t room) {
    return libusb_get_port_numbers(device, numbers, room);
}

libusb_device* libusb_get_parent(libusb_device*) {
    return nullptr;
}

std::uint8_t libusb_get_device_address(libusb_device* device) {
    return device->node->address;
}

int libusb_get_device_speed(libusb_device* device) {
    using edgetpu_speed = reef::edgetpu::usb::Speed;
    switch (device->node->info.speed) {
        case edgetpu_speed::full:
            return LIBUSB_SPEED_FULL;
        case edgetpu_speed::high:
            return LIBUSB_SPEED_HIGH;
        case edgetpu_speed::super:
            return LIBUSB_SPEED_SUPER;
        case edgetpu_speed::super_plus:
            return LIBUSB_SPEED_SUPER_PLUS;
        case edgetpu_speed::unknown:
            break;
    }
    return LIBUSB_SPEED_UNKNOWN;
}

int libusb_get_max_packet_size(libusb_device* device, unsigned char endpoint) try {
    const auto found = endpoint_of(*device, endpoint);
    return found ? int{found->wMaxPacketSize} : int{LIBUSB_ERROR_NOT_FOUND};
} catch (const std::exception& failure) {
    return error_of(failure);
}

// -- Descriptors ----------------------------------------------------------------------------------

int libusb_get_device_descriptor(libusb_device* device, libusb_device_descriptor* descriptor) {
    return read_device_descriptor(device->node->descriptors.device, *descriptor);
}

int libusb_get_config_descriptor(libusb_device* device, std::uint8_t index,
                                 libusb_config_descriptor** configuration) try {
    if (index != 0) return LIBUSB_ERROR_NOT_FOUND;
    return read_configuration(device->node->descriptors.configuration, *configuration);
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_get_config_descriptor_by_value(libusb_device* device, std::uint8_t value,
                                          libusb_config_descriptor** configuration) {
    if (value != configuration_value) return LIBUSB_ERROR_NOT_FOUND;
    return libusb_get_config_descriptor(device, 0, configuration);
}

int libusb_get_active_config_descriptor(libusb_device* device,
                                        libusb_config_descriptor** configuration) try {
    {
        const std::lock_guard lock(device->node->mutex);
        if (device->node->configuration == 0) return LIBUSB_ERROR_NOT_FOUND;
    }
    return libusb_get_config_descriptor(device, 0, configuration);
} catch (const std::exception& failure) {
    return error_of(failure);
}

void libusb_free_config_descriptor(libusb_config_descriptor* configuration) {
    free_configuration(configuration);
}

int libusb_get_string_descriptor_ascii(libusb_device_handle* handle, std::uint8_t index,
                                       unsigned char* text, int room) try {
    if (handle == nullptr || index == 0 || text == nullptr || room <= 0) {
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    unsigned char bytes[255] = {};
    int size = libusb_get_string_descriptor(handle, 0, 0, bytes, sizeof bytes);
    if (size < 0) return size;
    if (size < 4) return LIBUSB_ERROR_IO;
    const auto language = static_cast<std::uint16_t>(bytes[2] | bytes[3] << 8);
    size = libusb_get_string_descriptor(handle, index, language, bytes, sizeof bytes);
    if (size < 0) return size;
    if (size < 2 || bytes[1] != LIBUSB_DT_STRING || bytes[0] > size) return LIBUSB_ERROR_IO;
    int count = 0;
    for (int at = 2; at + 1 < bytes[0] && count + 1 < room; at += 2) {
        const bool ascii = bytes[at + 1] == 0 && bytes[at] < 0x80;
        text[count++] = ascii ? bytes[at] : static_cast<unsigned char>('?');
    }
    text[count] = 0;
    return count;
} catch (const std::exception& failure) {
    return error_of(failure);
}

// -- Opening --------------------------------------------------------------------------------------

int libusb_open(libusb_device* device, libusb_device_handle** handle) try {
    const auto ports = Ports::get();
    if (!ports || device == nullptr || handle == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    if (!device->attached) return LIBUSB_ERROR_NO_DEVICE;
    Port& port = device->node->port;
    auto connection = port.bus().open(device->node->info);
    if (!connection) return code_of(connection.error().fault);
    auto opened = std::make_unique<libusb_device_handle>(**ports, *device, std::move(*connection));
    device->context->opened(*opened);
    log(device->context->log(), LIBUSB_LOG_LEVEL_INFO, "opened {:04x}:{:04x} at {}",
        device->node->info.vendor, device->node->info.product, port.name());
    *handle = opened.release();
    return LIBUSB_SUCCESS;
} catch (const std::exception& failure) {
    return error_of(failure);
}

libusb_device_handle* libusb_open_device_with_vid_pid(libusb_context* context, std::uint16_t vendor,
                                                      std::uint16_t product) try {
    libusb_device** list = nullptr;
    if (libusb_get_device_list(context, &list) < 0) return nullptr;
    libusb_device_handle* handle = nullptr;
    for (libusb_device** device = list; *device != nullptr; ++device) {
        const auto& info = (*device)->node->info;
        if (info.vendor != vendor || info.product != product) continue;
        if (libusb_open(*device, &handle) < 0) handle = nullptr;
        break;
    }
    libusb_free_device_list(list, 1);
    return handle;
} catch (const std::exception&) {
    return nullptr;
}

void libusb_close(libusb_device_handle* handle) try {
    if (handle == nullptr) return;
    libusb_context& context = handle->context();
    const bool waits = !context.handling_here();
    if (waits) context.begin_closing();
    log(context.log(), LIBUSB_LOG_LEVEL_INFO, "closing the device at {}",
        handle->node().port.name());
    delete handle;
    if (waits) context.end_closing();
} catch (const std::exception&) {
}

libusb_device* libusb_get_device(libusb_device_handle* handle) {
    return &handle->device();
}

// -- Configurations and interfaces ----------------------------------------------------------------

int libusb_get_configuration(libusb_device_handle* handle, int* configuration) try {
    if (handle == nullptr || configuration == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    if (handle->is_gone()) return LIBUSB_ERROR_NO_DEVICE;
    const std::lock_guard lock(handle->node().mutex);
    *configuration = handle->node().configuration;
    return LIBUSB_SUCCESS;
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_set_configuration(libusb_device_handle* handle, int configuration) try {
    if (handle == nullptr || configuration < -1 || configuration > 255) {
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    if (handle->is_gone()) return LIBUSB_ERROR_NO_DEVICE;
    const std::lock_guard lock(handle->node().mutex);
    if (!handle->node().claims.empty()) return LIBUSB_ERROR_BUSY;
    if (configuration > 0 && configuration != configuration_value) return LIBUSB_ERROR_NOT_FOUND;
    handle->node().configuration = std::max(configuration, 0);
    return LIBUSB_SUCCESS;
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_claim_interface(libusb_device_handle* handle, int interface) try {
    if (const int code = refuse_interface(handle, interface); code != 0) return code;
    if (holds(*handle, interface)) return LIBUSB_SUCCESS;
    Node& node = handle->node();
    {
        const std::lock_guard lock(node.mutex);
        if (node.configuration == 0) return LIBUSB_ERROR_NOT_FOUND;
        if (!node.claims.try_emplace(interface, handle).second) return LIBUSB_ERROR_BUSY;
    }
    const int code = claim(*handle, interface);
    if (code != LIBUSB_SUCCESS) {
        const std::lock_guard lock(node.mutex);
        node.claims.erase(interface);
    }
    return code;
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_release_interface(libusb_device_handle* handle, int interface) try {
    if (const int code = refuse_interface(handle, interface); code != 0) return code;
    if (!holds(*handle, interface)) return LIBUSB_ERROR_NOT_FOUND;
    const int code = code_of(handle->release(static_cast<unsigned>(interface)));
    const std::lock_guard lock(handle->node().mutex);
    handle->node().claims.erase(interface);
    return code;
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_set_interface_alt_setting(libusb_device_handle* handle, int interface, int setting) try {
    if (const int code = refuse_interface(handle, interface); code != 0) return code;
    if (setting < 0 || setting > 255) return LIBUSB_ERROR_INVALID_PARAM;
    return setting == 0 && holds(*handle, interface) ? LIBUSB_SUCCESS : LIBUSB_ERROR_NOT_FOUND;
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_clear_halt(libusb_device_handle* handle, unsigned char endpoint) try {
    if (handle == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    if (handle->is_gone()) return LIBUSB_ERROR_NO_DEVICE;
    if (!endpoint_of(handle->device(), endpoint)) return LIBUSB_ERROR_NOT_FOUND;
    return code_of(handle->clear_halt(endpoint));
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_reset_device(libusb_device_handle* handle) try {
    if (handle == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    if (handle->is_gone()) return LIBUSB_ERROR_NO_DEVICE;
    const auto done = handle->reset();
    log(handle->context().log(), LIBUSB_LOG_LEVEL_INFO, "reset of the device at {}{}",
        handle->node().port.name(), handle->is_gone() ? ": it is another one now" : "");
    if (!done) return code_of(done.error().fault);
    // It came back as another device.
    return handle->is_gone() ? LIBUSB_ERROR_NOT_FOUND : LIBUSB_SUCCESS;
} catch (const std::exception& failure) {
    return error_of(failure);
}

// -- The system's drivers: none ever has a simulated stick ----------------------------------------

int libusb_kernel_driver_active(libusb_device_handle* handle, int interface) {
    return refuse_interface(handle, interface);
}

int libusb_detach_kernel_driver(libusb_device_handle* handle, int interface) {
    const int code = refuse_interface(handle, interface);
    return code != 0 ? code : LIBUSB_ERROR_NOT_FOUND;
}

int libusb_attach_kernel_driver(libusb_device_handle* handle, int interface) {
    const int code = refuse_interface(handle, interface);
    return code != 0 ? code : LIBUSB_ERROR_NOT_FOUND;
}

int libusb_set_auto_detach_kernel_driver(libusb_device_handle*, int) {
    return LIBUSB_SUCCESS;
}

}  // extern "C"

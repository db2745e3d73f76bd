// What libusb has and the simulated stick does not: refused, or answered as a device answers that
// has none of it. docs/simulated-stick.md lists these functions.
#include <libusb-1.0/libusb.h>

#include <cstdint>

extern "C" {

int libusb_wrap_sys_device(libusb_context*, std::intptr_t, libusb_device_handle**) {
    return LIBUSB_ERROR_NOT_SUPPORTED;
}

// Isochronous endpoints.
int libusb_get_max_iso_packet_size(libusb_device*, unsigned char) {
    return LIBUSB_ERROR_NOT_SUPPORTED;
}

// Bulk streams.
int libusb_alloc_streams(libusb_device_handle*, std::uint32_t, unsigned char*, int) {
    return LIBUSB_ERROR_NOT_SUPPORTED;
}
int libusb_free_streams(libusb_device_handle*, unsigned char*, int) {
    return LIBUSB_ERROR_NOT_SUPPORTED;
}
void libusb_transfer_set_stream_id(libusb_transfer*, std::uint32_t) {}
std::uint32_t libusb_transfer_get_stream_id(libusb_transfer*) {
    return 0;
}

}  // extern "C"

// The Edge TPU's USB protocol: identities, endpoints, requests.
#pragma once

#include <cstdint>

#include "reef/edgetpu/usb/transport.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::usb {

/// Without firmware: a DFU 1.1 device. With it: the chip.
inline constexpr std::uint16_t boot_vendor = 0x1a6e, boot_product = 0x089a;
inline constexpr std::uint16_t chip_vendor = 0x18d1, chip_product = 0x9302;

[[nodiscard]] inline bool is_boot_loader(const DeviceInfo& device) {
    return device.vendor == boot_vendor && device.product == boot_product;
}
[[nodiscard]] inline bool is_chip(const DeviceInfo& device) {
    return device.vendor == chip_vendor && device.product == chip_product;
}

inline constexpr std::uint8_t out_endpoint = spec::value::usb_endpoint::out_;
/// Of the multiple-endpoint mode.
inline constexpr std::uint8_t inputs_endpoint = spec::value::usb_endpoint::out_inputs_;
inline constexpr std::uint8_t parameters_endpoint = spec::value::usb_endpoint::out_parameters_;
inline constexpr std::uint8_t output_endpoint = spec::value::usb_endpoint::output_;
inline constexpr std::uint8_t event_endpoint = spec::value::usb_endpoint::event_;
inline constexpr std::uint8_t interrupt_endpoint = spec::value::usb_endpoint::interrupt_;

inline constexpr std::size_t header_bytes =
    8;  ///< u32 length, u32 tag; usually a transfer of its own
inline constexpr std::size_t event_bytes = 16;  ///< u64 address, u32 size, u8 tag at 12
inline constexpr std::size_t interrupt_bytes = 4;
inline constexpr std::size_t credit_bytes = 8;          ///< unit of ep_status_credit
inline constexpr std::size_t most_out_bytes = 1 << 20;  ///< of one data transfer

/// Vendor requests for registers: the address is index << 16 | value.
inline constexpr std::uint8_t register_read = 0xc0, register_write = 0x40;
inline constexpr std::uint8_t register_64_bits = 0, register_32_bits = 1;

/// Standard and DFU 1.1 requests.
inline constexpr std::uint8_t standard_read = 0x80, get_status = 0, get_descriptor = 6,
                              get_configuration = 8;
inline constexpr std::uint8_t standard_write = 0x00, set_configuration = 9;
inline constexpr std::uint16_t device_descriptor = 0x0100, configuration_descriptor = 0x0200,
                               string_descriptor = 0x0300, object_store_descriptor = 0x0f00;
inline constexpr std::uint8_t dfu_functional_descriptor = 0x21;
inline constexpr std::size_t device_descriptor_bytes = 18;
inline constexpr std::uint8_t dfu_write = 0x21, dfu_read = 0xa1;
inline constexpr std::uint8_t dfu_detach = 0, dfu_download = 1, dfu_upload = 2, dfu_get_status = 3,
                              dfu_clear_status = 4, dfu_get_state = 5, dfu_abort = 6;
inline constexpr std::size_t dfu_status_bytes = 6;
/// bState of DFU_GETSTATUS.
inline constexpr std::uint8_t dfu_idle = 2, dfu_download_sync = 3, dfu_download_busy = 4,
                              dfu_download_idle = 5, dfu_manifest_sync = 6, dfu_manifest = 7,
                              dfu_error = 10;

}  // namespace reef::edgetpu::usb

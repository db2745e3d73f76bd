// Firmware download by DFU 1.1 (USB Device Firmware Upgrade Specification, 1.1).
#include <algorithm>
#include <array>
#include <cstring>

#include "edgetpu/usb/link.h"

namespace reef::edgetpu::usb {

Result<std::size_t> firmware_block_bytes(Link& link) {
    std::array<std::byte, 521> bytes{};
    const Setup setup{.request_type = standard_read,
                      .request = get_descriptor,
                      .value = configuration_descriptor,
                      .index = 0,
                      .length = bytes.size()};
    const std::size_t size = REEF_TRY(link.control(setup, bytes, true));
    for (std::size_t at = 0; at + 2 <= size;) {
        const auto length = static_cast<std::size_t>(bytes[at]);
        if (length == 0) break;
        if (bytes[at + 1] == std::byte{dfu_functional_descriptor} && length >= 7 &&
            at + 7 <= size) {
            const auto block = static_cast<std::size_t>(bytes[at + 5]) |
                               static_cast<std::size_t>(bytes[at + 6]) << 8;
            if (block != 0) return block;
        }
        at += length;
    }
    return fail(Cause::device_failed, "no DFU functional descriptor", std::string(link.phase()),
                std::string(replug_hint));
}

namespace {

/// Waits until the boot loader is ready for the next block (or done with the last).
Status await_state(Link& link, std::uint8_t wanted) {
    const TimePoint end = link.bus().now() + link.timeout();
    while (true) {
        std::array<std::byte, dfu_status_bytes> status{};
        const Setup setup{.request_type = dfu_read,
                          .request = dfu_get_status,
                          .value = 0,
                          .index = 0,
                          .length = status.size()};
        REEF_CHECK(link.control(setup, status));
        const auto state = static_cast<std::uint8_t>(status[4]);
        if (status[0] != std::byte{0}) {
            return fail(Cause::device_failed,
                        fmt::format("the boot loader reports status {} in state {}",
                                    static_cast<int>(status[0]), state),
                        std::string(link.phase()),
                        fmt::format("check the firmware file; {}", replug_hint));
        }
        if (state == wanted) return {};
        const bool busy = state == dfu_download_sync || state == dfu_download_busy ||
                          state == dfu_manifest_sync || state == dfu_manifest;
        if (!busy || link.bus().now() >= end) {
            return fail(Cause::device_failed,
                        fmt::format("the boot loader is in state {}, not {}", state, wanted),
                        std::string(link.phase()), std::string(replug_hint));
        }
        const auto wait = static_cast<unsigned>(status[1]) | static_cast<unsigned>(status[2]) << 8 |
                          static_cast<unsigned>(status[3]) << 16;
        link.bus().sleep(std::min(Milliseconds(std::max(wait, 1U)), link.timeout()));
    }
}

Status send_block(Link& link, std::size_t number, MutableBytes block) {
    const Setup setup{.request_type = dfu_write,
                      .request = dfu_download,
                      .value = static_cast<std::uint16_t>(number),
                      .index = 0,
                      .length = static_cast<std::uint16_t>(block.size())};
    REEF_CHECK(link.control(setup, block));
    return await_state(link, block.empty() ? dfu_idle : dfu_download_idle);
}

Status verify(Link& link, Bytes firmware, std::size_t block) {
    link.phase("firmware check");
    std::vector<std::byte> buffer(block);
    for (std::size_t at = 0; at < firmware.size(); at += block) {
        const Setup setup{.request_type = dfu_read,
                          .request = dfu_upload,
                          .value = static_cast<std::uint16_t>(at / block),
                          .index = 0,
                          .length = static_cast<std::uint16_t>(block)};
        const std::size_t expected = std::min(block, firmware.size() - at);
        const std::size_t size = REEF_TRY(link.control(setup, buffer, true));
        if (size != expected ||
            !std::ranges::equal(Bytes(buffer).first(size), firmware.subspan(at, expected))) {
            return fail(Cause::device_failed,
                        fmt::format("the boot loader holds other bytes in block {}", at / block),
                        std::string(link.phase()), std::string(replug_hint));
        }
    }
    return {};
}

}  // namespace

Status download_firmware(Link& link, Bytes firmware, std::size_t block) {
    link.phase("firmware download");
    std::vector<std::byte> copy(firmware.begin(), firmware.end());
    std::size_t number = 0;
    for (std::size_t at = 0; at < copy.size(); at += block) {
        const std::size_t size = std::min(block, copy.size() - at);
        REEF_CHECK(send_block(link, number++, MutableBytes(copy).subspan(at, size)));
    }
    REEF_CHECK(send_block(link, number, {}));
    return verify(link, firmware, block);
}

}  // namespace reef::edgetpu::usb

#include "edgetpu/usb/opening.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "reef/base/log.h"

namespace reef::edgetpu::usb {
namespace {

Error missing(std::string_view port, std::string_view waited) {
    return {.cause = Cause::device_missing,
            .what = port.empty() ? fmt::format("no Edge TPU on USB{}", waited)
                                 : fmt::format("no Edge TPU at USB port {}{}", port, waited),
            .place = {},
            .hint = "plug one in; `reef doctor` says what is wrong"};
}

}  // namespace

Result<std::unique_ptr<Connection>> Opening::run(Milliseconds patience) {
    REEF_CHECK(find(patience));
    REEF_CHECK(open());
    REEF_CHECK(check_descriptor());
    REEF_CHECK(reset());
    REEF_CHECK(open());
    if (is_boot_loader(device_)) {
        REEF_CHECK(load_firmware());
        if (!is_chip(device_)) {
            return fail(Cause::device_failed, "the firmware does not start", "firmware start",
                        std::string(replug_hint));
        }
        REEF_CHECK(open());
    }
    REEF_CHECK(checked(connection_->claim(0), "claim"));
    return std::move(connection_);
}

Status Opening::find(Milliseconds patience) {
    const TimePoint end = bus_.now() + patience;
    while (true) {
        changes_ = bus_.changes();
        const auto devices = REEF_TRY(checked(bus_.list(), "list"));
        const auto it = std::ranges::find_if(devices, [&](const DeviceInfo& device) {
            return port_.empty() || device.port == port_;
        });
        if (it != devices.end()) {
            device_ = *it;
            seen_ = true;
            port_ = device_.port;
            return {};
        }
        if (bus_.now() >= end) {
            return std::unexpected(missing(
                port_,
                patience.count() == 0 ? "" : fmt::format(" within {} ms", patience.count())));
        }
        wait_for_change(end);
    }
}

void Opening::wait_for_change(TimePoint end) {
    bus_.wait_for_change(changes_, std::chrono::ceil<Milliseconds>(end - bus_.now()));
}

Status Opening::open() {
    const TimePoint end = bus_.now() + options_.start_deadline;
    while (true) {
        auto opened = bus_.open(device_);
        if (opened) {
            connection_ = std::move(*opened);
            return {};
        }
        const bool may_pass =
            opened.error().fault == Fault::disconnected || opened.error().fault == Fault::denied;
        if (!may_pass || bus_.now() >= end) {
            return std::unexpected(error_of(opened.error(), "open"));
        }
        bus_.sleep(Milliseconds(50));
        REEF_CHECK(find(options_.start_deadline));
    }
}

Status Opening::check_descriptor() {
    std::array<std::byte, device_descriptor_bytes> bytes{};
    const Setup setup{.request_type = standard_read,
                      .request = get_descriptor,
                      .value = device_descriptor,
                      .index = 0,
                      .length = bytes.size()};
    Link l = link();
    REEF_CHECK(l.control(setup, bytes));
    const auto word = [&](std::size_t at) {
        return static_cast<unsigned>(bytes[at]) | static_cast<unsigned>(bytes[at + 1]) << 8;
    };
    constexpr std::size_t vendor_at = 8, product_at = 10;
    if (word(vendor_at) == device_.vendor && word(product_at) == device_.product) return {};
    return fail(Cause::device_failed,
                fmt::format("the device calls itself {:04x}:{:04x}, the bus lists {:04x}:{:04x}",
                            word(vendor_at), word(product_at), device_.vendor, device_.product),
                "open", std::string(replug_hint));
}

Status Opening::reset() {
    const auto done = connection_->reset();
    connection_.reset();
    // A device that comes back as another one reports that it is gone.
    if (!done && done.error().fault != Fault::disconnected) {
        return std::unexpected(error_of(done.error(), "bus reset"));
    }
    return find(options_.start_deadline);
}

Status Opening::load_firmware() {
    auto loaded = load_any_firmware();
    if (!loaded && device_.simulated) loaded.error().hint += simulated_firmware_hint;
    return loaded;
}

Status Opening::load_any_firmware() {
    const Firmware firmware = REEF_TRY(find_firmware(options_.firmware));
    if (!firmware.known) {
        log(LogLevel::warning,
            fmt::format("{}: not a firmware that Reef knows (SHA-256 {}); the stick gets it all "
                        "the same. If it does not start: {}; `reef doctor` says which one is "
                        "found",
                        firmware.origin, to_hex(sha256(firmware.bytes)), known_firmware_hint));
    }
    Link l = link();
    l.phase("firmware download");
    // The descriptor tells the block size before the interface is claimed.
    const std::size_t block = REEF_TRY(firmware_block_bytes(l));
    REEF_CHECK(checked(connection_->claim(0), "claim"));
    REEF_CHECK(in_place(download_firmware(l, firmware.bytes, block), firmware.origin));
    REEF_CHECK(checked(connection_->release(0), "release"));
    REEF_CHECK(reset());
    const TimePoint end = bus_.now() + options_.start_deadline;
    while (!is_chip(device_) && bus_.now() < end) {
        wait_for_change(end);
        REEF_CHECK(find(options_.start_deadline));
    }
    return {};
}

}  // namespace reef::edgetpu::usb

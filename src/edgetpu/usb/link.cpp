#include "edgetpu/usb/link.h"

#include <array>
#include <cstring>

namespace reef::edgetpu::usb {

Error error_of(const Failure& failure, std::string_view place) {
    Error error{.cause = Cause::device_failed,
                .what = failure.what,
                .place = std::string(place),
                .hint = {}};
    switch (failure.fault) {
        case Fault::disconnected:
            error.cause = Cause::device_missing;
            error.hint = "the stick left the bus: plug it in again, without a hub if there is one";
            break;
        case Fault::denied:
            error.cause = Cause::device_denied;
            error.hint = udev_hint;
            break;
        case Fault::busy:
            error.cause = Cause::device_denied;
            error.hint = "another program uses the stick: reef doctor names it";
            break;
        default:
            break;
    }
    return error;
}

Result<std::size_t> Link::control(const Setup& setup, MutableBytes data, bool at_most) {
    const auto done = connection_.control(setup, data, timeout_);
    if (!done) return std::unexpected(error_of(done.error(), phase_));
    if (*done > data.size() || (!at_most && *done != data.size())) {
        return fail(Cause::device_failed,
                    fmt::format("a control transfer moved {} of {} bytes", *done, data.size()),
                    std::string(phase_));
    }
    return *done;
}

namespace {

Setup setup_of(const RegisterInfo* info, std::uint8_t type) {
    return {.request_type = type,
            .request = info->bits == 64 ? register_64_bits : register_32_bits,
            .value = static_cast<std::uint16_t>(info->offset & 0xffff),
            .index = static_cast<std::uint16_t>(info->offset >> 16),
            .length = static_cast<std::uint16_t>(info->bits / 8)};
}

}  // namespace

Result<std::uint64_t> Link::read(const RegisterInfo* info) {
    std::uint64_t value = 0;
    const auto bytes = std::as_writable_bytes(std::span(&value, 1)).first(info->bits / 8);
    REEF_CHECK(in_place(control(setup_of(info, register_read), bytes), info->name));
    return value;
}

Status Link::write(const RegisterInfo* info, std::uint64_t value) {
    const auto bytes = std::as_writable_bytes(std::span(&value, 1)).first(info->bits / 8);
    REEF_CHECK(in_place(control(setup_of(info, register_write), bytes), info->name));
    return {};
}

Result<std::uint64_t> Link::poll(const RegisterInfo* info, std::uint64_t mask,
                                 std::uint64_t expected) {
    const TimePoint end = bus_.now() + timeout_;
    while (true) {
        const std::uint64_t value = REEF_TRY(read(info));
        if ((value & mask) == expected) return value;
        if (bus_.now() >= end) {
            return fail(Cause::device_failed,
                        fmt::format("{} stays {:#x}, bits {:#x} should become {:#x} within {} ms",
                                    info->name, value, mask, expected, timeout_.count()),
                        std::string(phase_), "unplug the stick and plug it in again");
        }
        bus_.sleep(Milliseconds(1));
    }
}

}  // namespace reef::edgetpu::usb

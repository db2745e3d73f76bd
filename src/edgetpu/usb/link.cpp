#include "edgetpu/usb/link.h"

#include <array>
#include <cstring>

namespace reef::edgetpu::usb {

std::string words_of(const Failure& failure) {
    switch (failure.fault) {
        case Fault::stall:
            return "the device refused it (stall)";
        case Fault::timed_out:
            return "no answer within the deadline (time-out)";
        case Fault::overflow:
            return "the device sent more than was asked for (overflow)";
        case Fault::disconnected:
            return "the device is gone (disconnected)";
        case Fault::cancelled:
        case Fault::denied:
        case Fault::busy:
        case Fault::no_bus:
        case Fault::failed:
            break;
    }
    return failure.what;
}

Error error_of(const Failure& failure, std::string_view place) {
    Error error{.cause = Cause::device_failed,
                .what = words_of(failure),
                .place = std::string(place),
                .hint = std::string(replug_hint)};
    switch (failure.fault) {
        case Fault::disconnected:
            error.cause = Cause::device_missing;
            error.hint =
                "the stick left the bus: plug it in again, without a hub if there is one; `reef "
                "doctor` says whether it is back";
            break;
        case Fault::denied:
            error.cause = Cause::device_denied;
            error.hint = udev_hint;
            break;
        case Fault::busy:
            error.cause = Cause::device_denied;
            error.hint = "another program uses the stick: reef doctor names it";
            break;
        case Fault::no_bus:
            error.cause = Cause::device_denied;
            error.hint = bus_hint;
            break;
        default:
            break;
    }
    return error;
}

namespace {

/// "read of scu_ctrl_3", "download of firmware block 3"
std::string name_of(const Setup& setup) {
    if (setup.request_type == register_read || setup.request_type == register_write) {
        const std::uint32_t offset = std::uint32_t{setup.index} << 16 | setup.value;
        const RegisterInfo* info = find_register(offset);
        return fmt::format("{} of {}", setup.to_host() ? "read" : "write",
                           info == nullptr ? fmt::format("register {:#x}", offset) : info->name);
    }
    if (setup.request_type == standard_read) {
        return setup.value == device_descriptor ? "device descriptor" : "configuration descriptor";
    }
    if (setup.request == dfu_get_status) return "status of the boot loader";
    return fmt::format("{} of firmware block {}", setup.to_host() ? "upload" : "download",
                       setup.value);
}

}  // namespace

Result<std::size_t> Link::control(const Setup& setup, MutableBytes data, bool at_most) {
    const auto done = connection_.control(setup, data, timeout_);
    if (!done) {
        return std::unexpected(error_of(done.error(), name_of(setup)).in(phase_));
    }
    if (*done > data.size() || (!at_most && *done != data.size())) {
        return fail(Cause::device_failed,
                    fmt::format("it moved {} of {} bytes", *done, data.size()),
                    fmt::format("{}: {}", phase_, name_of(setup)), std::string(replug_hint));
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
    REEF_CHECK(control(setup_of(info, register_read), bytes));
    return value;
}

Status Link::write(const RegisterInfo* info, std::uint64_t value) {
    const auto bytes = std::as_writable_bytes(std::span(&value, 1)).first(info->bits / 8);
    REEF_CHECK(control(setup_of(info, register_write), bytes));
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
                        std::string(phase_), std::string(replug_hint));
        }
        bus_.sleep(Milliseconds(1));
    }
}

}  // namespace reef::edgetpu::usb

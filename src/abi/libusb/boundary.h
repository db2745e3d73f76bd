// What an exception becomes where C called: libusb's functions return numbers and throw nothing.
#pragma once

#include <libusb-1.0/libusb.h>

#include <exception>
#include <new>

namespace reef::abi::libusb {

/// Functions catch std::exception alone: a thread that its program cancels in a call is unwound by
/// something else, which must go on.
[[nodiscard]] inline int error_of(const std::exception& failure) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&failure) != nullptr;
    return memory ? LIBUSB_ERROR_NO_MEM : LIBUSB_ERROR_OTHER;
}

}  // namespace reef::abi::libusb

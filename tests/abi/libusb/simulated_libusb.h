// Environments in which a program finds simulated sticks in libusb's place.
#pragma once

#include <string>
#include <vector>

namespace reef::abi::libusb {

/// A sanitizer's run-time library must come before everything else.
inline const std::string sanitizer_runtime = SANITIZER_RUNTIME;

[[nodiscard]] inline std::vector<std::string> preloaded() {
    const std::string before = sanitizer_runtime.empty() ? "" : sanitizer_runtime + ":";
    return {"LD_PRELOAD=" + before + LIBREEF_USB};
}

[[nodiscard]] inline std::vector<std::string> on_library_path() {
    return {"LD_LIBRARY_PATH=" LIBREEF_USB_FOLDER};
}

}  // namespace reef::abi::libusb

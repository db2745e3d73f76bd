#include "abi/libusb/log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace reef::abi::libusb {
namespace {

std::atomic<libusb_log_cb> global_callback;
std::atomic<int> level_of_new_contexts = LIBUSB_LOG_LEVEL_NONE;

const char* name_of(libusb_log_level level) {
    switch (level) {
        case LIBUSB_LOG_LEVEL_ERROR:
            return "error";
        case LIBUSB_LOG_LEVEL_WARNING:
            return "warning";
        case LIBUSB_LOG_LEVEL_INFO:
            return "info";
        default:
            return "debug";
    }
}

}  // namespace

void complain(const std::string& text) {
    const std::string line = fmt::format("reef usb: {}\n", text);
    std::fputs(line.c_str(), stderr);
}

void Log::line(libusb_log_level level, const std::string& text) {
    const std::string line = fmt::format("libusb: {} [reef] {}\n", name_of(level), text);
    const libusb_log_cb all = global_callback.load(), own = callback_.load();
    if (all != nullptr) all(nullptr, level, line.c_str());
    if (own != nullptr) own(context_, level, line.c_str());
    if (all == nullptr && own == nullptr) std::fputs(line.c_str(), stderr);
}

libusb_log_level initial_log_level() {
    static const int from_environment = [] {
        const char* value = std::getenv("LIBUSB_DEBUG");
        return value == nullptr ? 0 : std::clamp(std::atoi(value), 0, 4);
    }();
    return static_cast<libusb_log_level>(std::max(from_environment, level_of_new_contexts.load()));
}

void set_initial_log_level(libusb_log_level level) {
    level_of_new_contexts = level;
}

void set_global_log_callback(libusb_log_cb callback) {
    global_callback = callback;
}

}  // namespace reef::abi::libusb

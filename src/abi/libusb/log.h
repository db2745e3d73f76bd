// Messages for the user, by libusb's rules: a level, a context's callback, or standard error.
#pragma once

#include <fmt/format.h>
#include <libusb-1.0/libusb.h>

#include <string>

namespace reef::abi::libusb {

/// What a user must know whatever the level is: settings that cannot be, a chip that stopped.
void complain(const std::string& text);

/// `context` may be null. libusb's levels; LIBUSB_DEBUG sets the one that contexts start with.
[[nodiscard]] bool logs(const libusb_context* context, libusb_log_level level);
void log_line(libusb_context* context, libusb_log_level level, const std::string& text);

template <class... Arguments>
void log(libusb_context* context, libusb_log_level level, fmt::format_string<Arguments...> text,
         Arguments&&... arguments) {
    if (!logs(context, level)) return;
    log_line(context, level, fmt::format(text, std::forward<Arguments>(arguments)...));
}

[[nodiscard]] libusb_log_level initial_log_level();
void set_initial_log_level(libusb_log_level level);
/// For all contexts and what belongs to none.
void set_global_log_callback(libusb_log_cb callback);

}  // namespace reef::abi::libusb

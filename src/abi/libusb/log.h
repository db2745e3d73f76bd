// Messages for the user, by libusb's rules: a level, a context's callback, or standard error.
#pragma once

#include <fmt/format.h>
#include <libusb-1.0/libusb.h>

#include <atomic>
#include <new>
#include <string>

namespace reef::abi::libusb {

/// What a user must know whatever the level is: settings that cannot be, a chip that stopped.
void complain(const std::string& text);

[[nodiscard]] libusb_log_level initial_log_level();

/// A context's messages. libusb's levels; LIBUSB_DEBUG sets the one that contexts start with.
class Log {
  public:
    explicit Log(libusb_context* context) : context_(context), level_(initial_log_level()) {}

    [[nodiscard]] libusb_log_level level() const { return level_.load(); }
    void set_level(libusb_log_level level) { level_ = level; }
    void set_callback(libusb_log_cb callback) { callback_ = callback; }
    void line(libusb_log_level level, const std::string& text);

  private:
    libusb_context* const context_;
    std::atomic<libusb_log_level> level_;
    std::atomic<libusb_log_cb> callback_ = nullptr;
};

/// A message that there is no memory for is lost: it makes no call fail.
template <class... Arguments>
void log(Log& to, libusb_log_level level, fmt::format_string<Arguments...> text,
         Arguments&&... arguments) {
    if (level > to.level()) return;
    try {
        to.line(level, fmt::format(text, std::forward<Arguments>(arguments)...));
    } catch (const std::bad_alloc&) {
        return;
    }
}

void set_initial_log_level(libusb_log_level level);
/// For all contexts and what belongs to none.
void set_global_log_callback(libusb_log_cb callback);

}  // namespace reef::abi::libusb

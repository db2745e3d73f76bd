// The library never prints: it hands what it has to say to a sink that the program installs.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace reef {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// Replaces the process-wide sink; an empty function silences the library (the default).
/// Thread-safe with log(): messages reach the sink one at a time, and no other thread is inside the
/// old sink when this returns. A sink may log; it must not throw.
void set_log_sink(LogSink sink);

void log(LogLevel level, std::string_view message);

}  // namespace reef

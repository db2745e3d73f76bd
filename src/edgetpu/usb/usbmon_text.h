// Words and numbers of captures as text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"

namespace reef::edgetpu::usb {

/// All of `text` is the number.
template <class T>
[[nodiscard]] bool read_number(std::string_view text, int base, T& value) {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value, base);
    return error == std::errc() && at == end && !text.empty();
}

/// What stands in front of the first `separator`, which goes with it; all without one.
[[nodiscard]] inline std::string_view take_until(std::string_view& text, char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view first = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return first;
}

/// Bytes as pairs of digits; false for anything else.
[[nodiscard]] inline bool read_hex(std::string_view text, std::vector<std::byte>& bytes) {
    if (text.size() % 2 != 0) return false;
    for (; !text.empty(); text.remove_prefix(2)) {
        std::uint8_t value = 0;
        if (!read_number(text.substr(0, 2), 16, value)) return false;
        bytes.push_back(static_cast<std::byte>(value));
    }
    return true;
}

}  // namespace reef::edgetpu::usb

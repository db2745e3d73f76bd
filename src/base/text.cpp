#include "reef/base/text.h"

#include <fmt/format.h>

namespace reef {
namespace {

/// Three significant digits before the unit.
std::string scaled_text(double value, std::string_view unit) {
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, unit);
}

}  // namespace

std::string bytes_text(std::int64_t bytes) {
    const auto value = static_cast<double>(bytes);
    if (bytes < 1000) return fmt::format("{} B", bytes);
    if (value < 999.5e3) return scaled_text(value / 1e3, "kB");
    if (value < 999.5e6) return scaled_text(value / 1e6, "MB");
    return scaled_text(value / 1e9, "GB");
}

std::string count_text(std::int64_t count) {
    const auto value = static_cast<double>(count);
    if (count < 10000) return fmt::format("{}", count);
    if (value < 999.5e3) return scaled_text(value / 1e3, "k");
    if (value < 999.5e6) return scaled_text(value / 1e6, "M");
    return scaled_text(value / 1e9, "G");
}

std::string duration_text(double seconds) {
    if (seconds < 999.5e-6) return scaled_text(seconds * 1e6, "us");
    if (seconds < 999.5e-3) return scaled_text(seconds * 1e3, "ms");
    return scaled_text(seconds, "s");
}

std::string plural(std::size_t count, std::string_view singular) {
    return fmt::format("{} {}{}", count, singular, count == 1 ? "" : "s");
}

std::string shortened(std::string_view name, std::size_t length) {
    if (name.size() <= length) return std::string(name);
    const std::size_t kept = (length - 3) / 2;
    return fmt::format("{}...{}", name.substr(0, kept), name.substr(name.size() - kept));
}

std::string short_name(ElementType type) {
    switch (type) {
        case ElementType::uint8:
            return "u8";
        case ElementType::int8:
            return "i8";
        case ElementType::int16:
            return "i16";
        case ElementType::int32:
            return "i32";
        case ElementType::int64:
            return "i64";
        case ElementType::float16:
            return "f16";
        case ElementType::float32:
            return "f32";
        case ElementType::float64:
            return "f64";
        default:
            return std::string(name_of(type));
    }
}

}  // namespace reef

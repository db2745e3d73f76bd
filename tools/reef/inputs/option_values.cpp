#include "inputs/option_values.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>

namespace reef::tool {
namespace {

bool is_whole(const std::string& text, std::uint64_t least, std::uint64_t most) {
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return false;
    // CLI11 would take a leading 0 for base 8.
    if (text.size() > 1 && text[0] == '0' && text[1] != 'x' && text[1] != 'X') return false;
    char* end = nullptr;
    errno = 0;
    // Base 0, as CLI11 converts it afterwards.
    const std::uint64_t value = std::strtoull(text.c_str(), &end, 0);
    return errno == 0 && end == text.c_str() + text.size() && value >= least && value <= most;
}

std::string quoted(const std::string& text) {
    return text.empty() ? "''" : text;
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
    const bool bounded = most < std::numeric_limits<std::uint64_t>::max();
    return {[least, most](const std::string& text) {
                return is_whole(text, least, most)
                           ? std::string()
                           : fmt::format("{} is no whole number from {} to {}", quoted(text), least,
                                         most);
            },
            bounded ? fmt::format("{} to {}", least, most) : std::string()};
}

CLI::Validator real_number(double least, double most) {
    return {[least, most](const std::string& text) {
                double value = 0;
                const bool good = CLI::detail::lexical_cast(text, value) && std::isfinite(value) &&
                                  value >= least && value <= most;
                if (good) return std::string();
                if (most == std::numeric_limits<double>::max())
                    return fmt::format("{} is not {} or more, and finite", quoted(text), least);
                return fmt::format("{} is not {} to {}", quoted(text), least, most);
            },
            ""};
}

CLI::Validator executable_name() {
    return {[](const std::string& text) {
                return text.empty()
                           ? std::string("'' is neither an executable's number, from 0, nor a type")
                           : std::string();
            },
            ""};
}

}  // namespace reef::tool

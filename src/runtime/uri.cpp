#include "reef/runtime/uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace reef::runtime {
namespace {

constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyz0123456789-";

std::optional<unsigned> digit_of(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
    return std::nullopt;
}

/// The byte that the escape at `text`'s begin stands for.
std::optional<char> escaped(std::string_view text) {
    if (text.size() < 3 || text[0] != '%') return std::nullopt;
    const auto high = digit_of(text[1]), low = digit_of(text[2]);
    if (!high || !low) return std::nullopt;
    return static_cast<char>(*high * 16 + *low);
}

std::string decoded(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto byte = escaped(text);
        out += byte.value_or(text.front());
        text.remove_prefix(byte ? 3 : 1);
    }
    return out;
}

/// The reverse, with `special` characters escaped, and percent signs that would begin an escape.
std::string encoded(std::string_view text, std::string_view special) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (special.contains(text[i]) || escaped(text.substr(i))) {
            out += fmt::format("%{:02X}", static_cast<unsigned char>(text[i]));
        } else {
            out += text[i];
        }
    }
    return out;
}

/// `text` up to the first `end`, which goes from `text` with it; nothing behind means no `end`.
std::pair<std::string_view, bool> take(std::string_view& text, char end) {
    const std::size_t place = text.find(end);
    const std::string_view part = text.substr(0, place);
    const bool more = place != std::string_view::npos;
    text = more ? text.substr(place + 1) : std::string_view{};
    return {part, more};
}

bool is_name(std::string_view text) {
    return !text.empty() && text.find_first_not_of(name_characters) == std::string_view::npos;
}

Result<OptionTexts> parse_options(std::string_view text) {
    OptionTexts options;
    for (bool more = true; more;) {
        auto [pair, another] = take(text, '&');
        more = another;
        const auto [key, has_value] = take(pair, '=');
        if (key.empty()) return fail(Cause::bad_argument, "an option without a name");
        if (!has_value)
            return fail(Cause::bad_argument, fmt::format("option {} has no value", key), {},
                        "options are KEY=VALUE, with & between them");
        const std::string name = decoded(key);
        if (std::ranges::find(options, name, &OptionTexts::value_type::first) != options.end())
            return fail(Cause::bad_argument, fmt::format("option {} is given twice", name));
        options.emplace_back(name, decoded(pair));
    }
    return options;
}

}  // namespace

Result<DeviceUri> DeviceUri::parse(std::string_view text) {
    const auto refuse = [&] {
        return fail(Cause::bad_argument, fmt::format("'{}' is not a device", text), {},
                    "a device is FAMILY:BACKEND or FAMILY:BACKEND:NAME");
    };
    std::string_view options = text;
    auto [left, has_options] = take(options, '?');
    const auto [family, has_backend] = take(left, ':');
    const auto [backend, has_name] = take(left, ':');
    if (!is_name(family)) return refuse();
    if (has_backend && !is_name(backend)) return refuse();
    if (has_name && left.empty()) return refuse();
    DeviceUri uri{std::string(family), std::string(backend), decoded(left)};
    if (has_options)
        uri.options = REEF_TRY(in_place(parse_options(options), fmt::format("device {}", text)));
    return uri;
}

std::string DeviceUri::device() const {
    std::string result = family;
    if (!backend.empty()) result += ":" + backend;
    if (!name.empty()) result += ":" + encoded(name, "?");
    return result;
}

std::string DeviceUri::text() const {
    std::string result = device();
    for (std::size_t i = 0; i < options.size(); ++i)
        result += fmt::format("{}{}={}", i == 0 ? '?' : '&', encoded(options[i].first, "=&"),
                              encoded(options[i].second, "&"));
    return result;
}

}  // namespace reef::runtime

#include "reef/runtime/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <numeric>

#include "reef/runtime/registry.h"

namespace reef::runtime {
namespace {

bool has_option(const OptionInfo& info, const DeviceUri& device) {
    return info.backends.empty() ||
           std::ranges::find(info.backends, device.backend) != info.backends.end();
}

std::string values_of(const OptionInfo& info) {
    switch (info.type) {
        case OptionType::flag:
            return "true or false";
        case OptionType::integer:
            return fmt::format("a number from {} to {}", info.least, info.most);
        case OptionType::choice:
            return in_a_row(info.choices, "or");
        case OptionType::text:
            return "a text";
        case OptionType::file:
            return "a path";
    }
    return {};
}

std::unexpected<Error> refused(const OptionInfo& info, const DeviceUri& device,
                               std::string_view value) {
    return fail(Cause::bad_argument,
                fmt::format("option {} is {}, not '{}'", info.name, values_of(info), value),
                fmt::format("device {}", device.device()));
}

Result<OptionValue> parsed(const OptionInfo& info, const DeviceUri& device,
                           const std::string& text) {
    switch (info.type) {
        case OptionType::flag:
            for (const std::string_view yes : {"true", "1", "on"})
                if (text == yes) return true;
            for (const std::string_view no : {"false", "0", "off"})
                if (text == no) return false;
            return refused(info, device, text);
        case OptionType::integer: {
            std::int64_t value = 0;
            const char* const end = text.data() + text.size();
            const auto [last, error] = std::from_chars(text.data(), end, value);
            if (error != std::errc{} || last != end) return refused(info, device, text);
            return value;
        }
        case OptionType::text:
        case OptionType::choice:
        case OptionType::file:
            break;
    }
    return text;
}

Status check_value(const OptionInfo& info, const DeviceUri& device, const OptionValue& value) {
    bool right = false;
    switch (info.type) {
        case OptionType::flag:
            right = std::holds_alternative<bool>(value);
            break;
        case OptionType::integer: {
            const auto* number = std::get_if<std::int64_t>(&value);
            right = number != nullptr && *number >= info.least && *number <= info.most;
            break;
        }
        case OptionType::choice: {
            const auto* text = std::get_if<std::string>(&value);
            right = text != nullptr && std::ranges::find(info.choices, *text) != info.choices.end();
            break;
        }
        case OptionType::text:
        case OptionType::file:
            right = std::holds_alternative<std::string>(value);
            break;
    }
    if (!right) return refused(info, device, to_string(value));
    return {};
}

Result<const OptionInfo*> find_option(std::span<const OptionInfo> known, const DeviceUri& device,
                                      std::string_view name) {
    std::vector<std::string> names;
    for (const OptionInfo& info : known) {
        if (!has_option(info, device)) continue;
        if (info.name == name) return &info;
        names.push_back(info.name);
    }
    std::string hint = names.empty() ? "it has none" : fmt::format("it has {}", in_a_row(names));
    if (const auto near = nearest(name, names)) hint += fmt::format("; did you mean {}?", *near);
    return fail(Cause::bad_argument, fmt::format("there is no option '{}'", name),
                fmt::format("device {}", device.device()), std::move(hint));
}

}  // namespace

std::string_view to_string(OptionType type) {
    switch (type) {
        case OptionType::flag:
            return "flag";
        case OptionType::integer:
            return "integer";
        case OptionType::text:
            return "text";
        case OptionType::choice:
            return "choice";
        case OptionType::file:
            return "file";
    }
    return "unknown";
}

std::string to_string(const OptionValue& value) {
    if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    return std::get<std::string>(value);
}

Result<OptionValues> OptionValues::check(std::span<const OptionInfo> known, const DeviceUri& device,
                                         std::span<const Option> given) {
    OptionValues values;
    for (const OptionInfo& info : known)
        if (has_option(info, device)) {
            OptionValue standard = info.type == OptionType::flag      ? OptionValue(false)
                                   : info.type == OptionType::integer ? OptionValue(std::int64_t{0})
                                                                      : OptionValue(std::string());
            values.entries_.push_back({info.name, info.standard.value_or(standard)});
        }
    const auto set = [&](const OptionInfo& info, OptionValue value) -> Status {
        REEF_CHECK(check_value(info, device, value));
        auto& entry = *std::ranges::find(values.entries_, info.name, &Entry::name);
        entry.value = std::move(value);
        entry.given = true;
        return {};
    };
    for (const auto& [name, text] : device.options) {
        const OptionInfo* info = REEF_TRY(find_option(known, device, name));
        REEF_CHECK(set(*info, REEF_TRY(parsed(*info, device, text))));
    }
    for (const Option& option : given) {
        const OptionInfo* info = REEF_TRY(find_option(known, device, option.name));
        REEF_CHECK(set(*info, option.value));
    }
    return values;
}

const OptionValues::Entry& OptionValues::entry(std::string_view name) const {
    const auto found = std::ranges::find(entries_, name, &Entry::name);
    assert(found != entries_.end());
    return *found;
}

bool OptionValues::given(std::string_view name) const {
    return entry(name).given;
}
bool OptionValues::flag(std::string_view name) const {
    return std::get<bool>(entry(name).value);
}
std::int64_t OptionValues::integer(std::string_view name) const {
    return std::get<std::int64_t>(entry(name).value);
}
const std::string& OptionValues::text(std::string_view name) const {
    return std::get<std::string>(entry(name).value);
}

namespace {

/// Letters to put in, take out, exchange or swap with the next one.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
    std::iota(above.begin(), above.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            row[j + 1] =
                std::min({above[j] + (a[i] == b[j] ? 0 : 1), above[j + 1] + 1, row[j] + 1});
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
                row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
        }
        before = std::exchange(above, row);
    }
    return above.back();
}

}  // namespace

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> known) {
    // Beyond, the cost of the comparison is what a caller could make large.
    constexpr std::size_t longest = 64;
    if (name.size() > longest) return std::nullopt;
    std::optional<std::string> best;
    std::size_t least = 1 + std::max<std::size_t>(name.size() / 3, 1);
    for (const std::string& each : known) {
        if (each.size() > longest) continue;
        const std::size_t letters = distance(name, each);
        if (letters >= least) continue;
        least = letters;
        best = each;
    }
    return best;
}

}  // namespace reef::runtime

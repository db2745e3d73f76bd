#include "inputs/input_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>

namespace reef::tool {
namespace {

/// The number at the start of `text` when an 'x' follows it; removes both.
std::optional<std::int64_t> take_dimension(std::string_view& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end == text.data() + text.size() || *end != 'x') return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return value;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Paths may hold '=' and start with a digit; "=@" after a digit or a type's name is a raw layout.
bool looks_raw(std::string_view text) {
    const auto mark = text.find("=@");
    if (mark == std::string_view::npos) return false;
    return is_digit(text[0]) || element_type_from(text.substr(0, mark)).has_value();
}

Result<InputSpec> parse_source(std::string_view text) {
    if (!looks_raw(text)) return InputSpec{{}, std::string(text), {}};
    const auto mark = text.find("=@");
    InputSpec spec;
    spec.raw = REEF_TRY(parse_raw_layout(text.substr(0, mark)));
    spec.path = text.substr(mark + 2);
    return spec;
}

std::optional<std::string> name_before_equals(std::string_view text,
                                              std::span<const std::string> names) {
    std::optional<std::string> best;
    for (const std::string& name : names) {
        const bool matches = text.size() > name.size() && text.starts_with(name) &&
                             text[name.size()] == '=' && !name.empty();
        if (matches && (!best || name.size() > best->size())) best = name;
    }
    if (best) return best;
    const std::string_view left = text.substr(0, text.find('='));
    if (left.size() < text.size() && input_position(left, names.size())) return std::string(left);
    return {};
}

}  // namespace

std::optional<std::size_t> input_position(std::string_view name, std::size_t count) {
    if (!name.starts_with("in")) return {};
    name.remove_prefix(2);
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
    if (error != std::errc{} || end != name.data() + name.size() || value >= count) return {};
    return value;
}

Result<RawLayout> parse_raw_layout(std::string_view text) {
    RawLayout layout;
    std::string_view rest = text;
    while (const auto dimension = take_dimension(rest)) {
        if (*dimension < 0 || layout.shape.size() == 8) {
            return fail(Cause::bad_argument, fmt::format("'{}' is not a shape", text), {},
                        "write 1x224x224x3xu8");
        }
        layout.shape.push_back(*dimension);
    }
    const auto type = element_type_from(rest);
    if (!type || !size_of(*type)) {
        return fail(Cause::bad_argument,
                    fmt::format("'{}' of '{}' is not an element type", rest, text), {},
                    "write 1x224x224x3xu8; types are u8, i8, i16, i32, i64, f16, f32, f64, bool");
    }
    layout.type = *type;
    return layout;
}

Result<InputSpec> parse_input_spec(std::string_view text, std::span<const std::string> names) {
    if (text.empty()) return fail(Cause::bad_argument, "an empty --input");
    InputSpec spec;
    if (const auto name = name_before_equals(text, names)) {
        spec = REEF_TRY(parse_source(text.substr(name->size() + 1)));
        spec.name = *name;
    } else {
        spec = REEF_TRY(parse_source(text));
        std::error_code ignored;
        const auto equals = text.find('=');
        if (!spec.raw && equals != std::string_view::npos &&
            !std::filesystem::exists(spec.path, ignored)) {
            return fail(Cause::bad_argument,
                        fmt::format("no graph input is named '{}'", text.substr(0, equals)), {},
                        fmt::format("inputs: {}", fmt::join(names, ", ")));
        }
    }
    if (spec.path.empty()) {
        return fail(Cause::bad_argument, fmt::format("--input {} has no file", text));
    }
    return spec;
}

}  // namespace reef::tool

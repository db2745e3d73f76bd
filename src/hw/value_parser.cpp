#include "hw/value_parser.h"

#include <fmt/format.h>

#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>

namespace reef::hw {
namespace {

Result<std::int64_t> parse_tiles(const FieldInfo& field, std::string_view text) {
    const std::uint64_t tile_count = field.width;
    ValueScanner scan(text);
    if (scan.take("all")) {
        REEF_CHECK(scan.finish());
        return (std::int64_t{1} << tile_count) - 1;
    }
    std::int64_t tiles = 0;
    do {
        REEF_CHECK(scan.expect("t"));
        const auto first = REEF_TRY(scan.number());
        auto last = first;
        if (scan.take("-t")) last = REEF_TRY(scan.number());
        if (first > last || last >= tile_count)
            return fail(Cause::bad_input,
                        fmt::format("tiles are t0 to t{}, ranges rise", tile_count - 1));
        for (auto t = first; t <= last; ++t) tiles |= std::int64_t{1} << t;
    } while (scan.take("+"));
    REEF_CHECK(scan.finish());
    return tiles;
}

Result<std::int64_t> parse_set(const FieldInfo& field, std::string_view text) {
    ValueScanner scan(text);
    if (scan.take("all")) {
        auto bits = static_cast<std::int64_t>(~std::uint64_t{0} >> (64 - field.width));
        while (scan.take("-"))
            bits &= ~(std::int64_t{1} << REEF_TRY(scan.name(*field.enumeration)));
        REEF_CHECK(scan.finish());
        return bits;
    }
    std::int64_t bits = 0;
    do {
        bits |= std::int64_t{1} << REEF_TRY(scan.name(*field.enumeration));
    } while (scan.take("+"));
    REEF_CHECK(scan.finish());
    return bits;
}

Result<std::int64_t> parse_float(std::string_view text) {
    float value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || stop != text.data() + text.size() || std::isnan(value))
        return fail(Cause::bad_input, "not a number that a float holds",
                    fmt::format("'{}'", text.substr(0, 60)), "0x... gives the bits");
    return std::bit_cast<std::uint32_t>(value);
}

Result<std::int64_t> parse_number(std::string_view text) {
    ValueScanner scan(text);
    const auto value = REEF_TRY(scan.signed_number());
    REEF_CHECK(scan.finish());
    return value;
}

Result<std::int64_t> with_sign(bool negative, std::uint64_t size) {
    constexpr auto most = std::uint64_t{1} << 63;
    if (size > most || (size == most && !negative))
        return fail(Cause::bad_input, "the number needs more than 64 bits with its sign");
    return static_cast<std::int64_t>(negative ? 0 - size : size);
}

}  // namespace

std::string_view ValueScanner::take_until(std::string_view ends) {
    const auto part = text_.substr(0, text_.find_first_of(ends));
    text_.remove_prefix(part.size());
    return part;
}

bool ValueScanner::take(std::string_view token) {
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
}

std::unexpected<Error> ValueScanner::expected(std::string_view what) const {
    return fail(Cause::bad_input,
                text_.empty() ? fmt::format("{} is missing at the end", what)
                              : fmt::format("{} is expected at '{}'", what, text_.substr(0, 40)));
}

Status ValueScanner::expect(std::string_view token) {
    if (!take(token)) return expected(fmt::format("'{}'", token));
    return {};
}

Status ValueScanner::finish() const {
    if (!text_.empty()) return expected("the end");
    return {};
}

Result<std::uint64_t> ValueScanner::digits(int base) {
    std::uint64_t value = 0;
    const auto [stop, code] =
        std::from_chars(text_.data(), text_.data() + text_.size(), value, base);
    if (code == std::errc::result_out_of_range) return expected("a number below 2^64");
    if (code != std::errc{}) return expected("a number");
    text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
    return value;
}

Result<std::uint64_t> ValueScanner::number() {
    return digits(take("0x") ? 16 : 10);
}

Result<std::int64_t> ValueScanner::signed_number() {
    const bool negative = take("-");
    return with_sign(negative, REEF_TRY(number()));
}

Result<std::int64_t> ValueScanner::signed_decimal() {
    const bool negative = take("-");
    return with_sign(negative, REEF_TRY(digits(10)));
}

Result<std::uint64_t> ValueScanner::count() {
    const auto value = REEF_TRY(digits(10));
    if (value == 0) return fail(Cause::bad_input, "a count is at least 1");
    return value - 1;
}

Result<std::int64_t> ValueScanner::name(const Enumeration& enumeration) {
    std::size_t end = 0;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_'))
        ++end;
    for (const auto& value : enumeration.values) {
        if (value.name == text_.substr(0, end)) {
            text_.remove_prefix(end);
            return value.value;
        }
    }
    return expected(fmt::format("a name of {}", enumeration.name));
}

Status ValueScanner::only_number() {
    REEF_TRY(number());
    return finish();
}

Result<std::int64_t> parse_value(const FieldInfo& field, std::string_view text) {
    const bool digit = ValueScanner(text).at_digit();
    switch (field.kind) {
        case FieldKind::float32:
            if (!text.starts_with("0x")) return parse_float(text);
            break;
        case FieldKind::tiles:
            if (!digit) return parse_tiles(field, text);
            break;
        case FieldKind::set:
            if (!digit) return parse_set(field, text);
            break;
        case FieldKind::enumeration:
            if (!digit) {
                ValueScanner scan(text);
                const auto value = REEF_TRY(scan.name(*field.enumeration));
                REEF_CHECK(scan.finish());
                return value;
            }
            break;
        case FieldKind::register_number:
            if (text.starts_with('s')) text.remove_prefix(1);
            break;
        default:
            break;
    }
    return parse_number(text);
}

}  // namespace reef::hw

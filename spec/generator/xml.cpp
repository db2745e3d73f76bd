#include "xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace reef::specgen {

std::unexpected<Error> fail_at(const Element& element, const std::string& what) {
    return fail(Cause::bad_input, what,
                fmt::format("line {}: <{}>", element.GetLineNum(), element.Name()));
}

Status only_attributes(const Element& element, std::initializer_list<std::string_view> known) {
    for (const auto* a = element.FirstAttribute(); a; a = a->Next()) {
        if (std::ranges::find(known, std::string_view(a->Name())) == known.end())
            return fail_at(element, fmt::format("unknown attribute {}", a->Name()));
    }
    return {};
}

Result<std::string> attribute(const Element& element, const char* name) {
    const char* text = element.Attribute(name);
    if (!text || !*text) return fail_at(element, fmt::format("attribute {} is missing", name));
    return std::string(text);
}

std::string attribute_or(const Element& element, const char* name, const std::string& otherwise) {
    const char* text = element.Attribute(name);
    return text ? std::string(text) : otherwise;
}

namespace {

Result<std::uint64_t> number_up_to(const Element& element, const std::string& text,
                                   std::uint64_t most) {
    const bool hex = text.starts_with("0x");
    const char* begin = text.data() + (hex ? 2 : 0);
    const char* end = text.data() + text.size();
    std::uint64_t value = 0;
    const auto [stop, code] = std::from_chars(begin, end, value, hex ? 16 : 10);
    if (code != std::errc{} || stop != end || value > most)
        return fail_at(element, fmt::format("'{}' is not a number", text));
    return value;
}

}  // namespace

Result<unsigned> parse_number(const Element& element, const std::string& text) {
    return static_cast<unsigned>(REEF_TRY(number_up_to(element, text, 0x7fff'ffff)));
}

Result<std::uint64_t> address(const Element& element, const char* name) {
    return number_up_to(element, REEF_TRY(attribute(element, name)), ~std::uint64_t{0} >> 1);
}

Result<unsigned> number(const Element& element, const char* name) {
    return parse_number(element, REEF_TRY(attribute(element, name)));
}

Result<std::string> grade_of(const Element& element) {
    auto grade = REEF_TRY(attribute(element, "grade"));
    if (grade != "exact" && grade != "fitted" && grade != "inferred" && grade != "guess")
        return fail_at(element, fmt::format("unknown grade {}", grade));
    return grade;
}

Result<std::string> chip_name(const Element& root) {
    auto name = REEF_TRY(attribute(root, "name"));
    const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
    const bool fits = letter(name.front()) && std::ranges::all_of(name, [&](char c) {
                          return letter(c) || (c >= '0' && c <= '9') || c == '_';
                      });
    if (!fits) return fail_at(root, fmt::format("'{}' cannot name a chip", name));
    return name;
}

std::string doc_of(const Element& element) {
    const auto* doc = element.FirstChildElement("doc");
    return doc ? text_of(*doc) : "";
}

std::string text_of(const Element& element) {
    const char* raw = element.GetText();
    std::string text;
    for (const char* c = raw ? raw : ""; *c; ++c) {
        const bool blank = *c == ' ' || *c == '\n' || *c == '\t' || *c == '\r';
        if (!blank) text += *c;
        if (blank && !text.empty() && text.back() != ' ') text += ' ';
    }
    if (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

}  // namespace reef::specgen

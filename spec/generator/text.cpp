#include "text.h"

#include <fmt/format.h>

namespace reef::specgen {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

std::string cell(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

std::string page_head(const std::string& chip, std::string_view source, const std::string& title) {
    return fmt::format("<!-- Generated from spec/{}/{}.xml. Do not edit. -->\n# {}\n\n", chip,
                       source, title);
}

std::string header_head(const std::string& chip, std::string_view source,
                        std::string_view includes) {
    return fmt::format(
        "// Generated from spec/{0}/{1}.xml. Do not edit.\n#pragma once\n\n{2}\n"
        "namespace reef::{0}::spec {{\n\n",
        chip, source, includes);
}

std::string header_end(const std::string& chip) {
    return fmt::format("\n}}  // namespace reef::{}::spec\n", chip);
}

std::string type_name_of(const std::string& name) {
    std::string out;
    bool begins = true;
    for (const char c : name) {
        if (c != '_') out += begins && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        begins = c == '_';
    }
    return out;
}

std::string wrapped(const std::string& text) {
    std::string out;
    std::size_t line = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find(' ', at), text.size());
        if (line != 0) {
            const bool fits = line + 1 + (end - at) <= 100;
            out += fits ? ' ' : '\n';
            line = fits ? line + 1 : 0;
        }
        out.append(text, at, end - at);
        line += end - at;
        at = end + 1;
    }
    return out;
}

std::string_view grades_text() {
    return "Grades: **exact**: whole programs computed with this reading reproduce the source "
           "model's\narithmetic, and stop doing so when the field is changed. **fitted**: agrees "
           "with every known\nprogram, nothing fails without it. **inferred**: follows from the "
           "regular structure or from few\nprograms. **guess**: a plausible name for bits of "
           "unknown purpose.\n";
}

}  // namespace reef::specgen

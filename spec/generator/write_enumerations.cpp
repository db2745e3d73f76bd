#include <fmt/format.h>

#include "spec.h"
#include "text.h"

namespace reef::specgen {

std::string enumeration_tables(const std::vector<Enumeration>& enumerations) {
    std::string out;
    for (const auto& e : enumerations) {
        out += fmt::format("inline constexpr hw::EnumValue {}_values[] = {{\n", e.name);
        for (const auto& v : e.values)
            out += fmt::format("    {{{}, {}, {}}},\n", v.value, quoted(v.name), quoted(v.meaning));
        out += "};\n";
        out += fmt::format(
            "inline constexpr hw::Enumeration {0}_enumeration{{{1}, {2}, {0}_values}};\n\n", e.name,
            quoted(e.name), quoted(e.meaning));
    }
    return out;
}

// Numbers for tables, and a type for what must not be mixed up. The names end in "_", for some are
// C++'s own.
std::string enumeration_values(const std::vector<Enumeration>& enumerations) {
    std::string out;
    for (const auto& e : enumerations) {
        out += fmt::format("namespace value::{} {{\n", e.name);
        for (const auto& v : e.values)
            out += fmt::format("inline constexpr unsigned {}_ = {};\n", v.name, v.value);
        out += fmt::format("}}  // namespace value::{}\n", e.name);
        out += fmt::format("/// {}\nenum class {} : std::uint32_t {{\n", e.meaning,
                           type_name_of(e.name));
        for (const auto& v : e.values) out += fmt::format("    {}_ = {},\n", v.name, v.value);
        out += "};\n\n";
    }
    return out;
}

std::string enumeration_sections(const std::vector<Enumeration>& enumerations) {
    std::string out;
    for (const auto& e : enumerations) {
        out += fmt::format("\n## {}\n\n{} ({})\n\n| value | name | |\n|---|---|---|\n", e.name,
                           e.meaning, e.grade);
        for (const auto& v : e.values)
            out += fmt::format("| {:#x} | {} | {} |\n", v.value, v.name, cell(v.meaning));
    }
    return out;
}

}  // namespace reef::specgen

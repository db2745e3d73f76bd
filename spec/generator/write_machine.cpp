#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "spec.h"
#include "text.h"

namespace reef::specgen {
namespace {

std::string literal(float value) {
    if (std::isinf(value)) return "std::numeric_limits<float>::infinity()";
    const auto text = fmt::format("{}", value);
    return text + (text.find_first_of(".e") == std::string::npos ? ".0F" : "F");
}

std::string function_tables(const Function& f) {
    auto out = fmt::format("inline constexpr Polynomials {}{{\n    {{{{", f.name);
    for (const Polynomial& polynomial : f.segments) {
        out += "\n        {";
        for (const float c : polynomial) out += literal(c) + ", ";
        out += "},";
    }
    out += "\n    }},\n    {";
    for (const float border : f.breaks) out += literal(border) + ", ";
    return out + fmt::format("}}, {}, {}}};\n", literal(f.least), literal(f.most));
}

std::string assumed_values(const MachineFacts& facts) {
    std::string out = "\nnamespace assumed {\n";
    for (const Assumption& a : facts.assumptions)
        out += fmt::format("inline constexpr double {} = {};\n", a.name, a.value);
    return out + "}  // namespace assumed\n";
}

std::string function_sections(const MachineFacts& facts) {
    std::string out =
        "\n## Functions\n\nPolynomials, from the constant coefficient up; a segment holds below "
        "its "
        "break.\n";
    for (const Function& f : facts.functions) {
        out += fmt::format("\n### {}\n\n{}, x from {} to {} ({})\n\n| below |", f.name, f.meaning,
                           f.least, f.most, f.grade);
        std::string line = "|---|";
        for (std::size_t power = 0; power < f.segments.front().size(); ++power) {
            out += power == 0 ? " 1 |" : power == 1 ? " x |" : fmt::format(" x^{} |", power);
            line += "---|";
        }
        out += "\n" + line + "\n";
        for (std::size_t s = 0; s < f.segments.size(); ++s)
            out += fmt::format("| {} | {} |\n",
                               s < f.breaks.size() ? fmt::format("{}", f.breaks[s]) : "",
                               fmt::join(f.segments[s], " | "));
    }
    return out;
}

}  // namespace

std::string machine_header(const MachineFacts& facts) {
    auto out = header_head(facts.name, "machine",
                           "#include <cstddef>\n#include <limits>\n\n#include \"reef/hw/field.h\"\n"
                           "#include \"reef/hw/machine.h\"\n");
    out += enumeration_tables(facts.enumerations) + enumeration_values(facts.enumerations);
    for (const Size& size : facts.sizes)
        out += fmt::format("/// {}\ninline constexpr std::size_t {} = {:#x};\n", size.meaning,
                           size.name, size.value);
    if (!facts.assumptions.empty()) out += assumed_values(facts);
    if (facts.functions.empty()) return out + header_end(facts.name);
    const auto& segments = facts.functions.front().segments;
    out += fmt::format("\nusing Polynomials = hw::Piecewise<{}, {}>;\n", segments.size(),
                       segments.front().size());
    for (const Function& f : facts.functions) out += function_tables(f);
    return out + header_end(facts.name);
}

std::string machine_page(const MachineFacts& facts) {
    auto out = page_head(facts.name, "machine", facts.title) + wrapped(facts.about) + "\n\n";
    out += fmt::format("{}\n| size | value | unit | grade | |\n|---|---|---|---|---|\n",
                       grades_text());
    for (const Size& size : facts.sizes) {
        const auto value =
            size.unit == "address" ? fmt::format("{:#x}", size.value) : std::to_string(size.value);
        out += fmt::format("| `{}` | {} | {} | {} | {} |\n", size.name, value, size.unit,
                           size.grade, cell(size.meaning));
    }
    out += enumeration_sections(facts.enumerations);
    if (!facts.assumptions.empty())
        out +=
            "\n## What the estimate of time assumes\n\n| | value | unit | source "
            "|\n|---|---|---|---|\n";
    for (const Assumption& a : facts.assumptions)
        out += fmt::format("| {} | {} | {} | {} |\n", a.title, a.value, a.unit, cell(a.source));
    return out + (facts.functions.empty() ? "" : function_sections(facts));
}

}  // namespace reef::specgen

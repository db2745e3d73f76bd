#include <fmt/format.h>

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

}  // namespace

std::string machine_header(const MachineFacts& facts) {
    std::string out =
        "// Generated from spec/edgetpu/machine.xml. Do not edit.\n#pragma once\n\n"
        "#include <array>\n#include <cstddef>\n#include <limits>\n#include <string_view>\n\n"
        "namespace reef::edgetpu::spec {\n\n";
    for (const Size& size : facts.sizes)
        out += fmt::format("/// {}\ninline constexpr std::size_t {} = {:#x};\n", size.meaning,
                           size.name, size.value);
    out +=
        "\nstruct Assumption {\n    std::string_view name;\n    double value;\n"
        "    std::string_view unit;\n    std::string_view source;\n};\n"
        "inline constexpr Assumption assumptions[] = {\n";
    for (const Assumption& a : facts.assumptions)
        out += fmt::format("    {{{}, {}, {}, {}}},\n", quoted(a.title), a.value, quoted(a.unit),
                           quoted(a.source));
    out += "};\nnamespace assumed {\n";
    for (const Assumption& a : facts.assumptions)
        out += fmt::format("inline constexpr double {} = {};\n", a.name, a.value);
    out += fmt::format(
        "}}  // namespace assumed\n\n/// Segment s holds from breaks[s - 1] on; coefficients from "
        "the constant one up.\nstruct Polynomials {{\n"
        "    std::array<std::array<float, {}>, {}> coefficients;\n"
        "    std::array<float, {}> breaks;\n    float least;  ///< argument\n    float "
        "most;\n}};\n",
        std::tuple_size_v<Polynomial>, segments_of_function, segments_of_function - 1);
    for (const Function& f : facts.functions) out += function_tables(f);
    return out + "\n}  // namespace reef::edgetpu::spec\n";
}

std::string machine_page(const MachineFacts& facts) {
    auto out = fmt::format(
        "<!-- Generated from spec/edgetpu/machine.xml. Do not edit. -->\n# {}\n\n"
        "Sizes of memories and buses. No data sheet exists: they are what the known programs "
        "use.\n\n{}\n| size | value | unit | grade | |\n|---|---|---|---|---|\n",
        facts.title, grades_text());
    for (const Size& size : facts.sizes)
        out += fmt::format("| `{}` | {} | {} | {} | {} |\n", size.name, size.value, size.unit,
                           size.grade, cell(size.meaning));
    out +=
        "\n## What the estimate of time assumes\n\n| | value | unit | source "
        "|\n|---|---|---|---|\n";
    for (const Assumption& a : facts.assumptions)
        out += fmt::format("| {} | {} | {} | {} |\n", a.title, a.value, a.unit, cell(a.source));
    out +=
        "\n## Functions\n\nPolynomials of the fourth degree; a segment holds below its break. The "
        "vendor's compiler loads\na table before an operator that needs the function.\n";
    for (const Function& f : facts.functions) {
        out += fmt::format(
            "\n### {}\n\n{}, x from {} to {} ({})\n\n| below | 1 | x | x^2 | x^3 | x^4 "
            "|\n|---|---|---|---|---|---|\n",
            f.name, f.meaning, f.least, f.most, f.grade);
        for (std::size_t s = 0; s < f.segments.size(); ++s)
            out += fmt::format("| {} | {} |\n",
                               s < f.breaks.size() ? fmt::format("{}", f.breaks[s]) : "",
                               fmt::join(f.segments[s], " | "));
    }
    return out;
}

}  // namespace reef::specgen

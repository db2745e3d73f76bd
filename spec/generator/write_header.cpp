#include <fmt/format.h>

#include <algorithm>

#include "spec.h"
#include "text.h"

namespace reef::specgen {
namespace {

std::string identifier(std::string name) {
    std::ranges::replace_if(
        name, [](char c) { return c == '.' || c == '[' || c == ']' || c == '+'; }, '_');
    return name;
}

std::string enumeration_tables(const Isa& isa) {
    std::string out;
    for (const auto& e : isa.enumerations) {
        out += fmt::format("inline constexpr EnumValue {}_values[] = {{\n", e.name);
        for (const auto& v : e.values)
            out += fmt::format("    {{{}, {}, {}}},\n", v.value, quoted(v.name), quoted(v.meaning));
        out += "};\n";
        out +=
            fmt::format("inline constexpr Enumeration {0}_enumeration{{{1}, {2}, {0}_values}};\n\n",
                        e.name, quoted(e.name), quoted(e.meaning));
    }
    return out;
}

// The 64-bit load that holds the field: at its own byte, or at the last one that stays inside.
std::string field_row(const Field& f, unsigned words) {
    const unsigned byte = std::min(f.position / 8, words * 16 - 8);
    return fmt::format(
        "    {{{}, {}, {}, {}, {}, FieldKind::{}, Grade::{}, {}, {}, {}, {}, {}}},\n",
        quoted(f.name), f.position, byte, f.position - 8 * byte, f.width, f.kind, f.grade,
        f.enumeration.empty() ? "nullptr" : "&" + f.enumeration + "_enumeration", quoted(f.unit),
        quoted(f.meaning), quoted(f.note), f.only);
}

std::string instruction_tables(const Instruction& i) {
    static constexpr std::string_view known[] = {"loop_nest", "loops", "wait", "signal", "slot"};
    auto out = fmt::format("inline constexpr FieldInfo {}_fields[] = {{\n", i.name);
    for (const auto& f : i.fields) out += field_row(f, i.words);
    out += "};\n";
    if (i.groups.empty()) return out + "\n";
    out += fmt::format("inline constexpr FieldGroup {}_groups[] = {{\n", i.name);
    for (const auto& g : i.groups) {
        std::string kind = g.record;
        for (const std::string family : {"wait", "slot"}) {
            if (kind.ends_with(family)) kind = family;
        }
        if (std::ranges::find(known, kind) == std::end(known)) kind = "plain";
        out += fmt::format("    {{{}, GroupKind::{}, {}, {}, {}}},\n", quoted(g.name), kind,
                           g.first, g.count, g.dimensions);
    }
    return out + "};\n\n";
}

std::string instruction_row(const Instruction& i) {
    return fmt::format("    {{{}, Space::{}, {:#04x}, {}, Grade::{}, {}_fields, {}, {}}},\n",
                       quoted(i.name), i.scalar ? "scalar" : "tile", i.opcode, i.words, i.grade,
                       i.name, i.groups.empty() ? "{}" : i.name + "_groups", quoted(i.meaning));
}

// Indices into instructions[] and into each instruction's fields, and the values of enumerations.
std::string index_names(const Isa& isa) {
    std::string out = "namespace value {\n";
    for (const auto& e : isa.enumerations) {
        out += fmt::format("namespace {} {{\n", e.name);
        for (const auto& v : e.values)
            out += fmt::format("inline constexpr unsigned {}_ = {};\n", v.name, v.value);
        out += fmt::format("}}  // namespace {}\n", e.name);
    }
    out += "}  // namespace value\n\nnamespace op {\n";
    for (std::size_t n = 0; n < isa.instructions.size(); ++n)
        out += fmt::format("inline constexpr unsigned {} = {};\n", isa.instructions[n].name, n);
    out += "}  // namespace op\n\nnamespace field {\n";
    for (const auto& i : isa.instructions) {
        out += fmt::format("namespace {} {{\n", i.name);
        for (std::size_t n = 0; n < i.fields.size(); ++n) {
            if (i.fields[n].kind == "raw") continue;
            out += fmt::format("inline constexpr unsigned {} = {};\n", identifier(i.fields[n].name),
                               n);
        }
        out += fmt::format("}}  // namespace {}\n", i.name);
    }
    return out + "}  // namespace field\n";
}

}  // namespace

std::string isa_header(const Isa& isa) {
    std::string out =
        "// Generated from spec/edgetpu/isa.xml. Do not edit.\n#pragma once\n\n"
        "#include \"reef/edgetpu/isa.h\"\n\nnamespace reef::edgetpu::spec {\n\n";
    out += enumeration_tables(isa);
    for (const auto& i : isa.instructions) out += instruction_tables(i);
    out += "inline constexpr InstructionInfo instructions[] = {\n";
    for (const auto& i : isa.instructions) out += instruction_row(i);
    out += "};\n\n";
    return out + index_names(isa) + "\n}  // namespace reef::edgetpu::spec\n";
}

std::string registers_header(const RegisterFile& file) {
    std::string out =
        "// Generated from spec/edgetpu/registers.xml. Do not edit.\n#pragma once\n\n"
        "#include \"reef/edgetpu/registers.h\"\n\nnamespace reef::edgetpu::spec {\n\n";
    std::string rows;
    for (std::size_t n = 0; n < file.registers.size(); ++n) {
        const auto& r = file.registers[n];
        std::string fields = "{}";
        if (!r.fields.empty()) {
            fields = fmt::format("register_{}_fields", n);
            out += fmt::format("inline constexpr RegisterField {}[] = {{\n", fields);
            for (const auto& f : r.fields)
                out += fmt::format("    {{{}, {}, {}, Grade::{}, {}}},\n", quoted(f.name),
                                   f.position, f.width, f.grade, quoted(f.meaning));
            out += "};\n";
        }
        rows += fmt::format("    {{{}, {}, {:#x}, {}, {}, {}, {}}},\n", quoted(r.name),
                            quoted(r.group), r.offset, r.bits, r.count,
                            r.reset ? fmt::format("{:#x}", *r.reset) : "std::nullopt", fields);
    }
    out += "inline constexpr RegisterInfo registers[] = {\n" + rows + "};\n\n";
    return out + "}  // namespace reef::edgetpu::spec\n";
}

std::string operators_header(const OperatorList& list) {
    std::string out =
        "// Generated from spec/edgetpu/operators.xml. Do not edit.\n#pragma once\n\n"
        "#include \"reef/edgetpu/operators.h\"\n\nnamespace reef::edgetpu::spec {\n\n"
        "inline constexpr OperatorInfo operators[] = {\n";
    for (const auto& row : list.operators) {
        out += fmt::format("    {{{}, OperatorGrade::{}, {}}},\n", quoted(row.name), row.grade,
                           quoted(row.limit));
    }
    return out + "};\n\n}  // namespace reef::edgetpu::spec\n";
}

}  // namespace reef::specgen

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "spec.h"
#include "text.h"

namespace reef::specgen {
namespace {

std::string identifier(std::string name) {
    std::ranges::replace_if(
        name, [](char c) { return c == '.' || c == '[' || c == ']' || c == '+'; }, '_');
    return name;
}

// One table for all fields with the same values.
std::string seen_name(const Field& f) {
    return f.seen.empty() ? "{}" : fmt::format("seen_{}", fmt::join(f.seen, "_"));
}

std::string seen_tables(const Isa& isa) {
    std::set<std::vector<unsigned>> lists;
    for (const auto& i : isa.instructions)
        for (const auto& f : i.fields)
            if (!f.seen.empty()) lists.insert(f.seen);
    std::string out;
    for (const auto& list : lists)
        out += fmt::format("inline constexpr std::uint64_t seen_{}[] = {{{}}};\n",
                           fmt::join(list, "_"), fmt::join(list, ", "));
    return out + "\n";
}

// The 64-bit load that holds the field: at its own byte, or at the last one that stays inside.
std::string field_row(const Field& f, unsigned instruction_bytes) {
    const unsigned byte = std::min(f.position / 8, instruction_bytes - 8);
    return fmt::format(
        "    {{{}, {}, {}, {}, {}, hw::FieldKind::{}, hw::Grade::{}, {}, {}, {}, {}, {}, {}}},\n",
        quoted(f.name), f.position, byte, f.position - 8 * byte, f.width, f.kind, f.grade,
        f.enumeration.empty() ? "nullptr" : "&" + f.enumeration + "_enumeration", quoted(f.unit),
        quoted(f.meaning), quoted(f.note), seen_name(f),
        f.seen.size() == 1 ? static_cast<int>(f.seen.front()) : -1);
}

std::string instruction_tables(const Instruction& i, unsigned word_bytes) {
    auto out = fmt::format("inline constexpr hw::FieldInfo {}_fields[] = {{\n", i.name);
    for (const auto& f : i.fields) out += field_row(f, i.words * word_bytes);
    out += "};\n";
    if (i.groups.empty()) return out + "\n";
    out += fmt::format("inline constexpr hw::FieldGroup {}_groups[] = {{\n", i.name);
    for (const auto& g : i.groups) {
        out += fmt::format("    {{{}, hw::GroupKind::{}, {}, {}, {}}},\n", quoted(g.name), g.kind,
                           g.first, g.count, g.dimensions);
    }
    return out + "};\n\n";
}

std::uint64_t first_bits(const Isa& isa, const Instruction& i) {
    return std::uint64_t{i.opcode} << isa.opcode.position | std::uint64_t{i.space}
                                                                << isa.space.position;
}

std::string instruction_row(const Isa& isa, const Instruction& i) {
    return fmt::format(
        "    {{{}, hw::Space{{{}}}, {:#04x}, {}, {}, {:#x}, hw::Grade::{}, {}_fields, {}, {}}},\n",
        quoted(i.name), i.space, i.opcode, i.words, i.words * isa.word_bits / 8, first_bits(isa, i),
        i.grade, i.name, i.groups.empty() ? "{}" : i.name + "_groups", quoted(i.meaning));
}

// The instruction set as a whole, with the way from an opcode to its instruction.
std::string set_table(const Isa& isa) {
    std::string out = "inline constexpr hw::InstructionInfo instructions[] = {\n";
    for (const auto& i : isa.instructions) out += instruction_row(isa, i);
    std::map<std::size_t, std::size_t> by_opcode;
    for (std::size_t n = 0; n < isa.instructions.size(); ++n) {
        const auto& i = isa.instructions[n];
        by_opcode[std::size_t{i.space} << isa.opcode.width | i.opcode] = n;
    }
    out += "};\ninline constexpr hw::OpcodeEntry by_opcode[] = {\n";
    for (const auto& [key, n] : by_opcode) out += fmt::format("    {{{:#x}, {}}},\n", key, n);
    out += "};\n";
    std::string spaces = "{}";
    if (!isa.spaces.empty()) {
        spaces = "space_names";
        out += "inline constexpr std::string_view space_names[] = {";
        for (const auto& name : isa.spaces) out += quoted(name) + ", ";
        out += "};\nnamespace space {\n";
        for (std::size_t n = 0; n < isa.spaces.size(); ++n)
            out += fmt::format("inline constexpr hw::Space {}{{{}}};\n", isa.spaces[n], n);
        out += "}  // namespace space\n";
    }
    return out +
           fmt::format(
               "inline constexpr hw::InstructionSet instruction_set{{\n    {}, {}, {}, {}, {}, "
               "{}, {}, instructions, by_opcode}};\n\n",
               quoted(isa.name), isa.word_bits / 8, isa.opcode.position, isa.opcode.width,
               isa.space.position, isa.space.width, spaces);
}

// Indices into instructions[] and into each instruction's fields.
std::string index_names(const Isa& isa) {
    std::string out = "namespace op {\n";
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
    auto out = header_head(isa.name, "isa", "#include \"reef/hw/instruction_set.h\"\n");
    out += enumeration_tables(isa.enumerations) + seen_tables(isa);
    for (const auto& i : isa.instructions) out += instruction_tables(i, isa.word_bits / 8);
    return out + set_table(isa) + enumeration_values(isa.enumerations) + index_names(isa) +
           header_end(isa.name);
}

std::string registers_header(const RegisterFile& file) {
    auto out = header_head(file.name, "registers", "#include \"reef/hw/registers.h\"\n");
    std::string rows;
    for (std::size_t n = 0; n < file.registers.size(); ++n) {
        const auto& r = file.registers[n];
        std::string fields = "{}";
        if (!r.fields.empty()) {
            fields = fmt::format("register_{}_fields", n);
            out += fmt::format("inline constexpr hw::RegisterField {}[] = {{\n", fields);
            for (const auto& f : r.fields)
                out += fmt::format("    {{{}, {}, {}, hw::Grade::{}, {}}},\n", quoted(f.name),
                                   f.position, f.width, f.grade, quoted(f.meaning));
            out += "};\n";
        }
        rows += fmt::format("    {{{}, {}, {:#x}, {}, {}, {}, {}}},\n", quoted(r.name),
                            quoted(r.group), r.offset, r.bits, r.count,
                            r.reset ? fmt::format("{:#x}", *r.reset) : "std::nullopt", fields);
    }
    out += "inline constexpr hw::RegisterInfo registers[] = {\n" + rows + "};\n";
    return out + header_end(file.name);
}

std::string operators_header(const OperatorList& list) {
    auto out = header_head(list.name, "operators", "#include \"reef/hw/operators.h\"\n") +
               "inline constexpr hw::OperatorInfo operators[] = {\n";
    for (const auto& row : list.operators) {
        out += fmt::format("    {{{}, hw::OperatorGrade::{}, {}}},\n", quoted(row.name), row.grade,
                           quoted(row.limit));
    }
    return out + "};\n" + header_end(list.name);
}

/// Sorted. One text of all of them would be longer than compilers promise to take.
std::string forms_header(const FormList& list) {
    std::vector<std::string> texts;
    for (const auto& row : list.forms) texts.push_back(row.text);
    std::ranges::sort(texts);
    auto out = header_head(list.name, "forms", "#include <array>\n#include <string_view>\n") +
               fmt::format("inline constexpr std::array<std::string_view, {}> known_forms = {{\n",
                           texts.size());
    for (const auto& text : texts) out += fmt::format("    {},\n", quoted(text));
    return out + "};\n" + header_end(list.name);
}

}  // namespace reef::specgen

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "spec.h"
#include "text.h"

namespace reef::specgen {
namespace {

std::string type_name(const Field& f) {
    static const std::map<std::string, std::string> names = {{"unsigned_number", "unsigned"},
                                                             {"signed_number", "signed"},
                                                             {"float32", "f32"},
                                                             {"register_number", "register"},
                                                             {"limit", "count - 1"}};
    if (!f.enumeration.empty())
        return fmt::format("{} [{}](#{})", f.kind == "set" ? "set of" : "one of", f.enumeration,
                           f.enumeration);
    const auto name = names.find(f.kind);
    return name == names.end() ? f.kind : name->second;
}

// "0 to 3", "0, 1 and 13"; numbers of an enumeration as its table has them.
std::string ranges_of(const std::vector<unsigned>& values, bool hex) {
    std::vector<std::string> texts;
    for (const unsigned value : values)
        texts.push_back(hex ? fmt::format("{:#x}", value) : std::to_string(value));
    const bool in_a_row = values.back() - values.front() + 1 == values.size();
    if (in_a_row && values.size() > 2) return fmt::format("{} to {}", texts.front(), texts.back());
    if (values.size() == 1) return texts.front();
    return fmt::format("{} and {}", fmt::join(texts.begin(), texts.end() - 1, ", "), texts.back());
}

std::string field_row(const Field& f) {
    auto meaning = f.meaning;
    if (!f.unit.empty()) meaning += fmt::format(" Unit: {}.", f.unit);
    if (!f.note.empty()) meaning += fmt::format(" ({})", f.note);
    if (f.kind != "raw" && !f.seen.empty())
        meaning += fmt::format(" Only {} {} simulated.", ranges_of(f.seen, f.kind == "enumeration"),
                               f.seen.size() == 1 ? "is" : "are");
    return fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", f.name, f.position, f.width,
                       type_name(f), f.grade, cell(meaning));
}

bool same_fields(const Instruction& a, const Instruction& b) {
    return std::ranges::equal(a.fields, b.fields, [](const Field& x, const Field& y) {
        return x.name == y.name && x.position == y.position && x.width == y.width;
    });
}

std::string opcode_of(const Isa& isa, const Instruction& i) {
    if (isa.spaces.empty()) return "Opcode";
    auto name = isa.spaces[i.space] + " opcode";
    name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
    return name;
}

std::string bits_text(const Place& place) {
    if (place.width == 1) return fmt::format("bit {}", place.position);
    return fmt::format("bits {} to {}", place.position, place.position + place.width - 1);
}

// How a stream is made up, with the places of opcode and space.
std::string stream_text(const Isa& isa) {
    const auto longest = std::ranges::max(isa.instructions, {}, &Instruction::words).words;
    auto out = fmt::format(
        "A program is a stream of instructions of {} words of {} bytes. Bits count from bit 0 of "
        "the first word, little endian, and run on over words. The opcode is {}",
        longest == 1 ? "1" : fmt::format("1 to {}", longest), isa.word_bits / 8,
        bits_text(isa.opcode));
    if (isa.spaces.empty()) return out + ".";
    return out + fmt::format("; {} tells the spaces apart, whose opcodes are separate: {}.",
                             bits_text(isa.space), fmt::join(isa.spaces, ", "));
}

std::string instruction_section(const Isa& isa, std::size_t index) {
    const auto& i = isa.instructions[index];
    auto out =
        fmt::format("\n## {}\n\n{} {:#04x}, {} word{}, {}. {}\n\n", i.name, opcode_of(isa, i),
                    i.opcode, i.words, i.words == 1 ? "" : "s", i.grade, i.meaning);
    for (std::size_t n = 0; n < index; ++n) {
        if (same_fields(isa.instructions[n], i))
            return out + fmt::format("Fields as in [{0}](#{0}).\n", isa.instructions[n].name);
    }
    out += "| field | bit | width | type | grade | meaning |\n|---|---|---|---|---|---|\n";
    std::string gaps;
    for (const auto& f : i.fields) {
        if (f.kind == "raw") {
            gaps += fmt::format("{}{} to {}", gaps.empty() ? "" : ", ", f.position,
                                f.position + f.width - 1);
        } else {
            out += field_row(f);
        }
    }
    if (!gaps.empty()) out += fmt::format("\nIn no field: bits {}.\n", gaps);
    return out;
}

/// Every field of grade guess, and instructions that are guesses as a whole.
std::string guesses_section(const Isa& isa) {
    std::string out =
        "\n## Guesses\n\nEvery field whose meaning is a guess. `reef disasm --guesses` lists "
        "those that a program sets.\n\n| instruction | field | bit | width | meaning |\n"
        "|---|---|---|---|---|\n";
    for (std::size_t n = 0; n < isa.instructions.size(); ++n) {
        const auto& i = isa.instructions[n];
        if (i.grade == "guess")
            out += fmt::format("| [{0}](#{0}) | all | | | {1} |\n", i.name, cell(i.meaning));
        for (const auto& f : i.fields) {
            if (f.grade != "guess" || f.kind == "raw") continue;
            out += fmt::format("| [{0}](#{0}) | `{1}` | {2} | {3} | {4}{5} |\n", i.name, f.name,
                               f.position, f.width, cell(f.meaning),
                               f.note.empty() ? "" : fmt::format(" ({})", cell(f.note)));
        }
    }
    return out;
}

}  // namespace

std::string isa_page(const Isa& isa) {
    auto out = page_head(isa.name, "isa", isa.title) + wrapped(stream_text(isa)) + "\n\n";
    if (!isa.about.empty()) out += wrapped(isa.about) + "\n\n";
    out += fmt::format("{}\n", grades_text());
    out += "| instruction | space | opcode | words | grade | |\n|---|---|---|---|---|---|\n";
    for (const auto& i : isa.instructions)
        out += fmt::format("| [{0}](#{0}) | {1} | {2:#04x} | {3} | {4} | {5} |\n", i.name,
                           isa.spaces.empty() ? "" : isa.spaces[i.space], i.opcode, i.words,
                           i.grade, cell(i.meaning));
    if (!isa.records.empty())
        out += "\n## Records\n\nFields that always come together.\n\n| record | |\n|---|---|\n";
    for (const auto& r : isa.records) out += fmt::format("| {} | {} |\n", r.name, cell(r.meaning));
    out += enumeration_sections(isa.enumerations);
    for (std::size_t n = 0; n < isa.instructions.size(); ++n) out += instruction_section(isa, n);
    return out + guesses_section(isa);
}

std::string registers_page(const RegisterFile& file) {
    auto out = page_head(file.name, "registers", file.title) + wrapped(file.about) + "\n";
    std::string group;
    for (const auto& r : file.registers) {
        if (r.group != group) {
            group = r.group;
            out +=
                fmt::format("\n## {}\n\n{}| register | offset | fields |\n|---|---|---|\n", group,
                            r.bits == 64 ? "" : fmt::format("Registers of {} bits.\n\n", r.bits));
        }
        std::string fields;
        if (r.count > 1)
            fields = fmt::format("a file of {} registers, {} bytes apart", r.count, r.bits / 8);
        if (r.reset) fields = fmt::format("reset value {:#x}", *r.reset);
        for (const auto& f : r.fields)
            fields +=
                fmt::format("{}[{}:{}] `{}` ({}): {}", fields.empty() ? "" : "; ",
                            f.position + f.width - 1, f.position, f.name, f.grade, cell(f.meaning));
        out += fmt::format("| {} | {:#07x} | {} |\n", r.name, r.offset,
                           fields.empty() ? "unknown" : fields);
    }
    return out;
}

std::string operators_page(const OperatorList& list) {
    auto out = page_head(list.name, "operators", list.title) + wrapped(list.about) +
               "\n\n| operator | grade | documented limit |\n|---|---|---|\n";
    for (const auto& row : list.operators)
        out += fmt::format("| {} | {} | {} |\n", row.name, row.grade, cell(row.limit));
    return out;
}

std::string forms_page(const FormList& list) {
    auto out = page_head(list.name, "forms", list.title) + wrapped(list.about) +
               "\n\n| form | instructions | files |\n|---|---|---|\n";
    for (const auto& row : list.forms)
        out += fmt::format("| {} | {} | {} |\n", cell(row.text), row.seen, row.files);
    return out;
}

}  // namespace reef::specgen

#include <fmt/format.h>

#include <iterator>

#include "reef/rk3588/command_words.h"
#include "reef_spec/rk3588_isa.h"

namespace reef::rk3588 {
namespace {

// The target of a register's words is a fact of the register: it is shown where it is another one.
bool is_shown(const hw::FieldInfo& field, std::uint64_t bits) {
    const auto usual = field.name == "target" && field.only >= 0 ? field.only : 0;
    return bits != static_cast<std::uint64_t>(usual);
}

void append_data(const hw::Instruction& data, std::string& out) {
    const bool whole = data.bytes.size() == word_bytes;
    out += whole ? ".word 0x" : ".bytes ";
    for (std::size_t i = 0; i < data.bytes.size(); ++i) {
        const auto byte = data.bytes[whole ? data.bytes.size() - 1 - i : i];
        fmt::format_to(std::back_inserter(out), "{:02x}", std::to_integer<unsigned>(byte));
    }
}

}  // namespace

const hw::InstructionSet& command_words() {
    return spec::instruction_set;
}

std::string field_text(const hw::Instruction& instruction, const hw::FieldInfo& field,
                       const TextOptions& options) {
    const auto bits = instruction.bits(field);
    switch (field.kind) {
        case hw::FieldKind::signed_number:
            return std::to_string(instruction.value(field));
        case hw::FieldKind::unsigned_number:
        case hw::FieldKind::flag:
            return std::to_string(bits);
        case hw::FieldKind::enumeration:
            if (const auto* value = field.enumeration->find(bits); options.symbolic && value)
                return std::string(value->name);
            return std::to_string(bits);
        default:
            return fmt::format("{:#x}", bits);
    }
}

void append_text(const hw::Instruction& instruction, const TextOptions& options, std::string& out) {
    if (options.addresses) out += fmt::format("{:#06x}: ", instruction.word);
    if (!instruction.info) return append_data(instruction, out);
    out += instruction.info->name;
    for (const auto& field : instruction.info->fields) {
        if (!is_shown(field, instruction.bits(field))) continue;
        out += fmt::format(" {}={}", field.name, field_text(instruction, field, options));
    }
}

std::string disassemble(Bytes stream, const TextOptions& options) {
    std::string out;
    hw::InstructionCursor cursor(command_words(), stream);
    while (const auto one = cursor.next()) {
        append_text(*one, options, out);
        out += one->info == &spec::instructions[spec::op::OP_EN] ? "\n\n" : "\n";
    }
    return out;
}

}  // namespace reef::rk3588

#include "reef/hw/instruction_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::hw {
namespace {

std::uint64_t first_bits_of(Bytes word) {
    std::uint64_t bits;
    std::memcpy(&bits, word.data(), sizeof bits);
    return bits;
}

std::unexpected<Error> refused(const InstructionSet& set, const Instruction& data) {
    const auto place = fmt::format("word {:#x}", data.word);
    if (data.bytes.size() < set.word_bytes)
        return fail(Cause::bad_input,
                    fmt::format("{} bytes after the last whole word", data.bytes.size()), place,
                    fmt::format("a program consists of words of {} bytes", set.word_bytes));
    if (const auto* info = set.instruction_of(data.bytes))
        return fail(Cause::bad_input,
                    fmt::format("{} needs {} words and the program ends", info->name, info->words),
                    place);
    return fail(Cause::bad_input, "unknown " + set.opcode_text(data.bytes), place,
                "reef disasm shows such words as data");
}

}  // namespace

const FieldInfo* InstructionInfo::find(std::string_view field) const {
    const auto it = std::ranges::find(fields, field, &FieldInfo::name);
    return it == fields.end() ? nullptr : &*it;
}

const InstructionInfo* InstructionSet::find(std::string_view instruction) const {
    const auto it = std::ranges::find(instructions, instruction, &InstructionInfo::name);
    return it == instructions.end() ? nullptr : &*it;
}

const InstructionInfo* InstructionSet::find(Space space, unsigned opcode) const {
    if (opcode >> opcode_width != 0) return nullptr;
    const auto key = static_cast<std::uint32_t>(space) << opcode_width | opcode;
    const auto entry = std::ranges::lower_bound(by_opcode, key, {}, &OpcodeEntry::key);
    if (entry == by_opcode.end() || entry->key != key) return nullptr;
    return &instructions[entry->instruction];
}

const InstructionInfo* InstructionSet::instruction_of(Bytes word) const {
    const auto bits = first_bits_of(word);
    return find(space_in(bits), opcode_in(bits));
}

std::string InstructionSet::opcode_text(Bytes word) const {
    const auto bits = first_bits_of(word);
    const auto space = static_cast<std::size_t>(space_in(bits));
    const auto of = space < spaces.size() ? spaces[space] : std::string_view();
    return fmt::format("{}{}opcode {:#04x}", of, of.empty() ? "" : " ", opcode_in(bits));
}

std::optional<std::int64_t> Instruction::value(std::string_view field) const {
    const auto* known = info ? info->find(field) : nullptr;
    if (!known) return std::nullopt;
    return value(*known);
}

std::optional<Instruction> InstructionCursor::next() {
    const auto rest = stream_.subspan(offset_);
    if (rest.empty()) return std::nullopt;
    const std::size_t word_bytes = set_->word_bytes;
    Instruction out{nullptr, offset_ / word_bytes, rest.first(std::min(rest.size(), word_bytes))};
    if (rest.size() >= word_bytes) {
        const auto* info = set_->instruction_of(rest);
        if (info && rest.size() >= info->size_bytes()) {
            out.info = info;
            out.bytes = rest.first(info->size_bytes());
        }
    }
    offset_ += out.bytes.size();
    return out;
}

Result<std::vector<Instruction>> decode(const InstructionSet& set, Bytes stream) {
    std::vector<Instruction> out;
    InstructionCursor cursor(set, stream);
    while (const auto instruction = cursor.next()) {
        if (!instruction->info) return refused(set, *instruction);
        out.push_back(*instruction);
    }
    return out;
}

InstructionBuilder::InstructionBuilder(const InstructionInfo& info) : info_(&info) {
    std::ranges::fill(bytes(), std::byte{0});
    std::memcpy(bytes_.data(), &info.first_bits, sizeof info.first_bits);
}

Status InstructionBuilder::set(std::string_view field, std::int64_t value) {
    const auto* known = info_->find(field);
    if (!known)
        return fail(Cause::not_found, fmt::format("no field {}", field), std::string(info_->name));
    return in_place(set_field(bytes(), *known, value), info_->name);
}

Status InstructionBuilder::set_float(std::string_view field, float value) {
    const auto* known = info_->find(field);
    if (!known || known->kind != FieldKind::float32)
        return fail(Cause::not_found, fmt::format("no float field {}", field),
                    std::string(info_->name));
    return set(field, std::bit_cast<std::uint32_t>(value));
}

}  // namespace reef::hw

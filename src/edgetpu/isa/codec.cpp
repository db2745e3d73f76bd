#include <fmt/format.h>

#include <algorithm>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {

void set_field_bits(MutableBytes instruction, const FieldInfo& field, std::uint64_t bits) {
    std::uint64_t word;
    std::memcpy(&word, instruction.data() + field.byte, sizeof word);
    const auto mask = (~std::uint64_t{0} >> (64 - field.width)) << field.shift;
    word = (word & ~mask) | ((bits << field.shift) & mask);
    std::memcpy(instruction.data() + field.byte, &word, sizeof word);
}

Status set_field(MutableBytes instruction, const FieldInfo& field, std::int64_t value) {
    const bool is_signed = field.kind == FieldKind::signed_number;
    const auto low = is_signed ? -(std::int64_t{1} << (field.width - 1)) : 0;
    const auto high = (std::int64_t{1} << (is_signed ? field.width - 1 : field.width)) - 1;
    if (value < low || value > high)
        return fail(Cause::bad_argument,
                    fmt::format("{} does not fit {} {}bits", value, field.width,
                                is_signed ? "signed " : ""),
                    std::string(field.name), fmt::format("use {} to {}", low, high));
    set_field_bits(instruction, field, static_cast<std::uint64_t>(value));
    return {};
}

std::optional<std::int64_t> Instruction::value(std::string_view field) const {
    const auto* known = info ? info->find(field) : nullptr;
    if (!known) return std::nullopt;
    return value(*known);
}

std::optional<Instruction> InstructionCursor::next() {
    const auto rest = stream_.subspan(offset_);
    if (rest.empty()) return std::nullopt;
    Instruction out{nullptr, offset_ / word_bytes, rest.first(std::min(rest.size(), word_bytes))};
    if (rest.size() >= word_bytes) {
        const auto* info = instruction_of(rest);
        if (info && rest.size() >= info->size_bytes()) {
            out.info = info;
            out.bytes = rest.first(info->size_bytes());
        }
    }
    offset_ += out.bytes.size();
    return out;
}

Result<std::vector<Instruction>> decode(Bytes stream) {
    std::vector<Instruction> out;
    InstructionCursor cursor(stream);
    while (const auto instruction = cursor.next()) {
        if (!instruction->info) {
            const auto place = fmt::format("word {:#x}", instruction->word);
            const auto& bytes = instruction->bytes;
            if (bytes.size() < word_bytes)
                return fail(Cause::bad_input,
                            fmt::format("{} bytes after the last whole word", bytes.size()), place,
                            "a program consists of words of 16 bytes");
            const auto low =
                std::to_integer<unsigned>(bytes[0]) | std::to_integer<unsigned>(bytes[1]) << 8;
            const auto space = (low >> 11) & 1 ? "scalar" : "tile";
            const auto opcode = (low >> 6) & 31;
            if (const auto* info = instruction_of(bytes))
                return fail(
                    Cause::bad_input,
                    fmt::format("{} needs {} words and the program ends", info->name, info->words),
                    place);
            return fail(Cause::bad_input, fmt::format("unknown {} opcode {:#04x}", space, opcode),
                        place, "reef disasm shows such words as data");
        }
        out.push_back(*instruction);
    }
    return out;
}

InstructionBuilder::InstructionBuilder(const InstructionInfo& info) : info_(&info) {
    const unsigned low = info.opcode << 6 | static_cast<unsigned>(info.space) << 11;
    bytes_[0] = static_cast<std::byte>(low & 0xff);
    bytes_[1] = static_cast<std::byte>(low >> 8);
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

}  // namespace reef::edgetpu

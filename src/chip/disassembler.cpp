#include "reef/chip/disassembler.h"

#include <fmt/format.h>

#include <bit>

namespace reef::chip {

Result<std::vector<Program>> Disassembler::programs_in(const SharedBytes&) const {
    return std::vector<Program>{};
}

std::string Disassembler::field_text(const hw::Instruction& instruction, const hw::FieldInfo& field,
                                     const TextOptions&) const {
    using enum hw::FieldKind;
    const std::uint64_t bits = instruction.bits(field);
    const auto* named = field.kind == enumeration && field.enumeration != nullptr
                            ? field.enumeration->find(bits)
                            : nullptr;
    if (named != nullptr) return std::string(named->name);
    switch (field.kind) {
        case float32:
            return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
        case address:
        case mask:
        case tiles:
        case set:
        case raw:
            return fmt::format("{:#x}", bits);
        default:
            return fmt::format("{}", instruction.value(field));
    }
}

}  // namespace reef::chip

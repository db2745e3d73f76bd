// The Edge TPU's instruction set: tables made from spec/edgetpu/isa.xml, decoding, encoding.
//
// A program is a stream of instructions of 1 to 17 words of 16 bytes, little endian.
#pragma once

#include "reef/hw/instruction_set.h"

namespace reef::edgetpu {

using hw::Enumeration;
using hw::EnumValue;
using hw::field_bits;
using hw::field_value;
using hw::FieldGroup;
using hw::FieldInfo;
using hw::FieldKind;
using hw::Grade;
using hw::GroupKind;
using hw::Instruction;
using hw::InstructionBuilder;
using hw::InstructionInfo;
using hw::set_field;
using hw::set_field_bits;
using hw::to_string;

inline constexpr std::size_t word_bytes = 16;

/// Whose opcodes: those of the scalar core, or of the tiles.
struct Space {
    static constexpr hw::Space tile{0};
    static constexpr hw::Space scalar{1};
};

[[nodiscard]] const hw::InstructionSet& isa();
[[nodiscard]] inline std::span<const InstructionInfo> instruction_set() {
    return isa().instructions;
}
/// Null when no instruction has that name.
[[nodiscard]] inline const InstructionInfo* find_instruction(std::string_view name) {
    return isa().find(name);
}
/// Null when no instruction has that opcode (0 to 31).
[[nodiscard]] inline const InstructionInfo* find_instruction(hw::Space space, unsigned opcode) {
    return isa().find(space, opcode);
}
/// The instruction that a word begins, by its opcode. Precondition: at least word_bytes bytes.
[[nodiscard]] inline const InstructionInfo* instruction_of(Bytes word) {
    return isa().instruction_of(word);
}

/// Numbers the instructions of a tile, in fields of that name.
inline constexpr std::string_view numbering_field = "seq";

class InstructionCursor : public hw::InstructionCursor {
  public:
    explicit InstructionCursor(Bytes stream) : hw::InstructionCursor(isa(), stream) {}
};

/// As hw::decode().
[[nodiscard]] inline Result<std::vector<Instruction>> decode(Bytes stream) {
    return hw::decode(isa(), stream);
}

}  // namespace reef::edgetpu

// What differs between two programs of one instruction set, instruction by instruction and field by
// field.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "reef/hw/instruction_set.h"

namespace reef::hw {

/// An instruction that differs, or that only one program has.
struct InstructionChange {
    std::optional<Instruction> before;  ///< absent: added
    std::optional<Instruction> after;   ///< absent: removed
    /// Fields with different values; empty unless both sides are there. Without the field that
    /// numbers instructions.
    std::vector<const FieldInfo*> fields;
};

struct ProgramDiff {
    std::vector<InstructionChange> changes;  ///< in program order
    std::size_t aligned = 0;                 ///< instructions that both programs have
    std::size_t renumbered = 0;              ///< of those: with another number
    bool identical = true;                   ///< the streams are equal byte for byte
};

/// Aligns the programs on instructions that are equal and occur once in each, and between those so
/// that as many instructions as possible meet their like. `numbering` names the field that numbers
/// instructions, if they are numbered: one more or less renumbers all that follow. Takes any bytes.
/// The result refers to both streams.
[[nodiscard]] ProgramDiff diff_programs(const InstructionSet& set, Bytes before, Bytes after,
                                        std::string_view numbering = {});

}  // namespace reef::hw

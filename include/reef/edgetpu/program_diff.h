// What differs between two Edge TPU programs, instruction by instruction and field by field.
#pragma once

#include <optional>
#include <vector>

#include "reef/edgetpu/isa.h"

namespace reef::edgetpu {

/// An instruction that differs, or that only one program has.
struct InstructionChange {
    std::optional<Instruction> before;  ///< absent: added
    std::optional<Instruction> after;   ///< absent: removed
    /// Fields with different values; empty unless both sides are there. Sequence numbers are left
    /// out: an instruction more or less renumbers all that follow.
    std::vector<const FieldInfo*> fields;
};

struct ProgramDiff {
    std::vector<InstructionChange> changes;  ///< in program order
    std::size_t aligned = 0;                 ///< instructions that both programs have
    std::size_t renumbered = 0;              ///< of those: with another sequence number
    bool identical = true;                   ///< the streams are equal byte for byte
};

/// Aligns the programs on instructions that are equal and occur once in each, and between those so
/// that as many instructions as possible meet their like. Takes any bytes. The result refers to
/// both streams.
[[nodiscard]] ProgramDiff diff_programs(Bytes before, Bytes after);

}  // namespace reef::edgetpu

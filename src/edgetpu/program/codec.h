// Typed instructions from bits, and bits from typed instructions: encode(decode(x)) is x.
#pragma once

#include <vector>

#include "edgetpu/program/instruction.h"
#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/isa.h"

namespace reef::edgetpu::program {

/// The instruction that the operation is one of.
[[nodiscard]] const InstructionInfo& info_of(const Operation& operation);

/// The tiles of a tile instruction; none of scalar ones.
[[nodiscard]] TileSet tiles_of(const Operation& operation);

/// Precondition: it is an instruction, not data.
[[nodiscard]] TypedInstruction decode(const Instruction& instruction);
/// Errors: as edgetpu::decode().
[[nodiscard]] Result<std::vector<TypedInstruction>> decode_stream(Bytes stream);

/// Errors: bad_argument, naming instruction and field, for what the bits cannot hold: numbers that
/// are too wide, nests of another number of dimensions, a base or a step of what has counts alone,
/// a side of a wait that has none.
[[nodiscard]] Result<InstructionBuilder> encode(const TypedInstruction& instruction);

/// By field of the instruction: whether a member holds it.
[[nodiscard]] std::vector<bool> members_of(const Operation& operation);

}  // namespace reef::edgetpu::program

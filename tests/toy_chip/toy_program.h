// Programs of the toy chip: they take bytes, add to them, and give them back. Their instructions
// are described in toy_chip/isa.xml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/hw/instruction_set.h"
#include "reef/model/graph.h"
#include "reef/runtime/registry.h"

namespace reef::toy {

inline constexpr std::string_view operator_name = "toy-op";

enum class Opcode : std::uint8_t { take = 1, add = 2, give = 3 };

struct Instruction {
    Opcode opcode{};
    std::uint32_t operand = 0;  ///< 24 bits
};

[[nodiscard]] const hw::InstructionSet& instruction_set();
[[nodiscard]] bool is_compiled(const model::Operator& op);
/// Errors: bad_input for bytes that are no instructions.
[[nodiscard]] Result<std::vector<Instruction>> decode(Bytes program);
[[nodiscard]] std::vector<std::byte> encode(const std::vector<Instruction>& program);
[[nodiscard]] std::string text_of(const Instruction& instruction);
/// What an instruction does with the chip's memory.
void execute(const Instruction& instruction, std::uint32_t bias, Bytes input,
             std::vector<std::byte>& memory, MutableBytes output);

/// A model of one operator: out = in + `addend`, for `bytes` uint8 values.
[[nodiscard]] Result<model::Model> adding_model(std::int32_t bytes, std::uint32_t addend);

/// The inspector, the disassembler and the debugger.
void add_parts(runtime::Registry& registry);

}  // namespace reef::toy

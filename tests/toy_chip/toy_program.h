// Programs of the toy chip: they take bytes, add to them, and give them back.
//
// A program is a row of instructions of 4 bytes: the opcode, and an operand of 24 bits, little
// endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::toy {

inline constexpr std::string_view operator_name = "toy-op";
inline constexpr std::size_t instruction_bytes = 4;

enum class Opcode : std::uint8_t {
    take = 1,  ///< operand: bytes of the input, to the chip's memory
    add = 2,   ///< operand: what is added to every byte there
    give = 3,  ///< operand: bytes of the memory, to the output
};

struct Instruction {
    Opcode opcode{};
    std::uint32_t operand = 0;
};

/// Errors: bad_input for bytes that are no instructions.
[[nodiscard]] Result<std::vector<Instruction>> decode(Bytes program);
[[nodiscard]] std::vector<std::byte> encode(const std::vector<Instruction>& program);
[[nodiscard]] std::string text_of(const Instruction& instruction);

/// A model of one operator: out = in + `addend`, for `bytes` uint8 values.
[[nodiscard]] Result<model::Model> adding_model(std::int32_t bytes, std::uint32_t addend);

}  // namespace reef::toy

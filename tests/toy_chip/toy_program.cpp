#include "toy_chip/toy_program.h"

#include <fmt/format.h>

#include "reef/model/builder.h"

namespace reef::toy {
namespace {

std::string_view name_of(Opcode opcode) {
    switch (opcode) {
        case Opcode::take:
            return "take";
        case Opcode::add:
            return "add";
        case Opcode::give:
            return "give";
    }
    return {};
}

}  // namespace

Result<std::vector<Instruction>> decode(Bytes program) {
    if (program.size() % instruction_bytes != 0)
        return fail(Cause::bad_input, fmt::format("a toy program of {} bytes", program.size()));
    std::vector<Instruction> instructions;
    for (std::size_t at = 0; at < program.size(); at += instruction_bytes) {
        const auto byte = [&](std::size_t i) {
            return static_cast<std::uint32_t>(program[at + i]);
        };
        const Instruction one{static_cast<Opcode>(byte(0)), byte(1) | byte(2) << 8 | byte(3) << 16};
        if (name_of(one.opcode).empty())
            return fail(Cause::bad_input, fmt::format("opcode {} is none of the toy's", byte(0)),
                        fmt::format("word {}", at / instruction_bytes));
        instructions.push_back(one);
    }
    return instructions;
}

std::vector<std::byte> encode(const std::vector<Instruction>& program) {
    std::vector<std::byte> bytes;
    for (const Instruction& one : program) {
        bytes.push_back(static_cast<std::byte>(one.opcode));
        for (unsigned shift : {0U, 8U, 16U})
            bytes.push_back(static_cast<std::byte>(one.operand >> shift));
    }
    return bytes;
}

std::string text_of(const Instruction& instruction) {
    return fmt::format("{} {}", name_of(instruction.opcode), instruction.operand);
}

Result<model::Model> adding_model(std::int32_t bytes, std::uint32_t addend) {
    const auto size = static_cast<std::uint32_t>(bytes);
    const auto program =
        encode({{Opcode::take, size}, {Opcode::add, addend}, {Opcode::give, size}});
    model::Builder builder("bytes and a number");
    const auto in = builder.input("in", ElementType::uint8, {1, bytes});
    const auto out = builder.tensor("out", ElementType::uint8, {1, bytes});
    builder.add_custom(std::string(operator_name), {in}, {out}, program);
    builder.output(out);
    return builder.finish();
}

}  // namespace reef::toy

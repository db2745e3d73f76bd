#include "toy_chip/toy_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef/model/builder.h"
#include "reef_spec/toy_chip_isa.h"

namespace reef::toy {

namespace spec = toy_chip::spec;

const hw::InstructionSet& instruction_set() {
    return spec::instruction_set;
}

bool is_compiled(const model::Operator& op) {
    return op.code.builtin == model::Op::custom && op.code.custom == operator_name;
}

Result<std::vector<Instruction>> decode(Bytes program) {
    std::vector<Instruction> instructions;
    for (const auto& one : REEF_TRY(hw::decode(instruction_set(), program)))
        instructions.push_back({static_cast<Opcode>(one.info->opcode),
                                static_cast<std::uint32_t>(one.value("operand").value_or(0))});
    return instructions;
}

std::vector<std::byte> encode(const std::vector<Instruction>& program) {
    std::vector<std::byte> bytes;
    for (const Instruction& one : program) {
        hw::InstructionBuilder word(
            *instruction_set().find(hw::Space{}, static_cast<unsigned>(one.opcode)));
        if (!word.set("operand", one.operand)) return {};
        bytes.insert(bytes.end(), word.bytes().begin(), word.bytes().end());
    }
    return bytes;
}

std::string text_of(const Instruction& instruction) {
    const auto* info =
        instruction_set().find(hw::Space{}, static_cast<unsigned>(instruction.opcode));
    return fmt::format("{} {}", info->name, instruction.operand);
}

void execute(const Instruction& instruction, std::uint32_t bias, Bytes input,
             std::vector<std::byte>& memory, MutableBytes output) {
    switch (instruction.opcode) {
        case Opcode::take:
            memory.assign(input.begin(), input.end());
            break;
        case Opcode::add:
            for (auto& byte : memory)
                byte = static_cast<std::byte>(static_cast<std::uint32_t>(byte) +
                                              instruction.operand + bias);
            break;
        case Opcode::give:
            std::ranges::copy(memory, output.begin());
            break;
    }
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

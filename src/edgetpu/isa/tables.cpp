#include <algorithm>
#include <array>

#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/operators.h"
#include "reef/edgetpu/registers.h"
#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_operators.h"
#include "reef_spec/edgetpu_registers.h"

namespace reef::edgetpu {
namespace {

constexpr std::size_t opcodes = 32;

// By space * 32 + opcode.
constexpr auto by_opcode = [] {
    std::array<const InstructionInfo*, 2 * opcodes> table{};
    for (const auto& info : spec::instructions)
        table[static_cast<std::size_t>(info.space) * opcodes + info.opcode] = &info;
    return table;
}();

}  // namespace

std::string_view to_string(Grade grade) {
    static constexpr std::string_view names[] = {"exact", "fitted", "inferred", "guess"};
    return names[static_cast<unsigned>(grade)];
}

std::string_view to_string(FieldKind kind) {
    static constexpr std::string_view names[] = {"unsigned",    "signed", "flag",  "address",
                                                 "mask",        "float",  "tiles", "register",
                                                 "enumeration", "set",    "limit", "raw"};
    return names[static_cast<unsigned>(kind)];
}

std::span<const InstructionInfo> instruction_set() {
    return spec::instructions;
}

const FieldInfo* InstructionInfo::find(std::string_view field) const {
    const auto it = std::ranges::find(fields, field, &FieldInfo::name);
    return it == fields.end() ? nullptr : &*it;
}

const InstructionInfo* find_instruction(std::string_view name) {
    const auto it = std::ranges::find(spec::instructions, name, &InstructionInfo::name);
    return it == std::end(spec::instructions) ? nullptr : it;
}

const InstructionInfo* find_instruction(Space space, unsigned opcode) {
    return opcode < opcodes ? by_opcode[static_cast<unsigned>(space) * opcodes + opcode] : nullptr;
}

const InstructionInfo* instruction_of(Bytes word) {
    // Bits 6 to 10 are the opcode, bit 11 the space: together an index into the table.
    const auto low = std::to_integer<unsigned>(word[0]) | std::to_integer<unsigned>(word[1]) << 8;
    return by_opcode[(low >> 6) & 63];
}

std::span<const RegisterInfo> registers() {
    return spec::registers;
}

const RegisterInfo* find_register(std::string_view name, std::string_view group) {
    for (const auto& info : spec::registers) {
        if (info.name == name && (group.empty() || info.group == group)) return &info;
    }
    return nullptr;
}

namespace {
constexpr std::uint32_t register_distance = 8;  // bytes
}

const RegisterInfo* find_register(std::uint32_t offset) {
    for (const auto& info : spec::registers) {
        const std::uint32_t from_first = offset - info.offset;
        if (offset >= info.offset && from_first % register_distance == 0 &&
            from_first / register_distance < info.count)
            return &info;
    }
    return nullptr;
}

RegisterInfo element_of(const RegisterInfo& file, unsigned index) {
    RegisterInfo element = file;
    element.offset += index * register_distance;
    element.count = 1;
    return element;
}

std::string_view to_string(OperatorGrade grade) {
    return grade == OperatorGrade::seen ? "seen" : "documented";
}

std::span<const OperatorInfo> operators() {
    return spec::operators;
}

const OperatorInfo* find_operator(std::string_view name) {
    const auto* found = std::ranges::find(spec::operators, name, &OperatorInfo::name);
    return found == std::end(spec::operators) ? nullptr : found;
}

}  // namespace reef::edgetpu

#include "outputs/instruction_json.h"

#include <fmt/format.h>

#include <bit>

namespace reef::tool {

Json field_json(const hw::Instruction& instruction, const hw::FieldInfo& field) {
    const auto bits = instruction.bits(field);
    switch (field.kind) {
        case hw::FieldKind::float32:
            return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        case hw::FieldKind::raw:
            return fmt::format("{:#x}", bits);
        default:
            return instruction.value(field);
    }
}

Json instruction_json(const hw::Instruction& instruction) {
    Json out{{"word", instruction.word}};
    if (!instruction.info) {
        std::string data;
        for (const auto b : instruction.bytes)
            data += fmt::format("{:02x}", std::to_integer<unsigned>(b));
        out["data"] = data;
        return out;
    }
    out["name"] = instruction.info->name;
    out["fields"] = Json::object();
    for (const auto& field : instruction.info->fields) {
        if (instruction.bits(field))
            out["fields"][std::string(field.name)] = field_json(instruction, field);
    }
    return out;
}

}  // namespace reef::tool

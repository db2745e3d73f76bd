// Instructions as JSON.
#pragma once

#include "outputs/json_output.h"
#include "reef/hw/instruction_set.h"

namespace reef::tool {

/// A number; a float for float fields; bits of unknown meaning as a string "0x...".
[[nodiscard]] Json field_json(const hw::Instruction& instruction, const hw::FieldInfo& field);

/// {"word", "name", "fields": those that are not zero}; data as {"word", "data": hexadecimal}.
[[nodiscard]] Json instruction_json(const hw::Instruction& instruction);

}  // namespace reef::tool

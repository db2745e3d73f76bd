// Edge TPU instructions as JSON.
#pragma once

#include "outputs/json_output.h"
#include "reef/edgetpu/isa.h"

namespace reef::tool {

/// A number; a float for float fields; bits of unknown meaning as a string "0x...".
[[nodiscard]] Json field_json(const edgetpu::Instruction& instruction,
                              const edgetpu::FieldInfo& field);

/// {"word", "name", "fields": those that are not zero}; data as {"word", "data": hexadecimal}.
[[nodiscard]] Json instruction_json(const edgetpu::Instruction& instruction);

}  // namespace reef::tool

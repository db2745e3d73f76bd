// The RK3588 NPU's command words: tables made from spec/rk3588/isa.xml, text, and back.
//
// A word has 64 bits, little endian: bits 63 to 48 the block that takes it, bits 47 to 16 the
// value, bits 15 to 0 the register. Every word of a known register is an instruction of
// command_words().
#pragma once

#include <string>

#include "reef/hw/assembly.h"
#include "reef/hw/instruction_set.h"

namespace reef::rk3588 {

inline constexpr std::size_t word_bytes = 8;

[[nodiscard]] const hw::InstructionSet& command_words();

struct TextOptions {
    bool symbolic = false;  ///< values of enumerations by name
    bool addresses = true;  ///< number of the word in front of each line
};

/// "0x0012: CNA_CONV_CON1 CONV_MODE=3": fields that are not 0, and the target where it is not the
/// register's own. No line end.
void append_text(const hw::Instruction& instruction, const TextOptions& options, std::string& out);
/// The value of one field, as append_text() writes it.
[[nodiscard]] std::string field_text(const hw::Instruction& instruction, const hw::FieldInfo& field,
                                     const TextOptions& options);
/// Any bytes: words of no known register are ".word", bytes after the last word ".bytes". An empty
/// line follows every op_en.
[[nodiscard]] std::string disassemble(Bytes stream, const TextOptions& options = {});

using hw::AssembledStream;

/// The bytes that disassemble() was given, from its text; ".stream NAME" begins another stream, ";"
/// a comment. Fields that a line does not name are 0, the target is the register's own.
/// Errors: bad_input with line and token.
[[nodiscard]] Result<std::vector<AssembledStream>> assemble(std::string_view text);

}  // namespace reef::rk3588

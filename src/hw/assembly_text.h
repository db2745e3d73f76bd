// Assembly text as every chip has it; what an instruction's line says is the chip's own.
//
//     0x0003: MNEMONIC FIELD=VALUE ...   ; comment
//
// The number in front is ignored. ".stream NAME" begins another stream, ".word 0x..." is a word
// that is no instruction, as one number, ".bytes HEX" fewer bytes than a word at the end of a
// stream.
#pragma once

#include <bitset>
#include <optional>
#include <string_view>
#include <vector>

#include "reef/hw/assembly.h"
#include "reef/hw/instruction_set.h"

namespace reef::hw {

/// The tokens of a line, between blanks.
class LineTokens {
  public:
    explicit LineTokens(std::string_view line) : line_(line) {}

    /// Empty at the line's end.
    std::string_view next();
    /// Errors: bad_input with `refusal` when the line goes on.
    [[nodiscard]] Status end(std::string_view refusal);

  private:
    std::string_view line_;
};

/// bad_input, with the token as its place.
[[nodiscard]] std::unexpected<Error> wrong_token(std::string what, std::string_view token);

struct FieldText {
    std::string_view name;  ///< without the "?" of a guess
    std::string_view value;
};
/// "NAME=VALUE". Errors: bad_input.
[[nodiscard]] Result<FieldText> field_text_of(std::string_view token);

/// Sets fields of an instruction, each once. An index is that of InstructionInfo::fields. Errors:
/// bad_input with the field.
class FieldWriter {
  public:
    explicit FieldWriter(InstructionBuilder& builder) : builder_(builder) {}

    [[nodiscard]] const InstructionInfo& info() const { return builder_.info(); }
    [[nodiscard]] std::optional<std::size_t> find(std::string_view name);
    [[nodiscard]] Status set(std::size_t index, std::int64_t value);
    /// `text`: as parse_value() takes it.
    [[nodiscard]] Status set(std::size_t index, std::string_view text);

  private:
    [[nodiscard]] Status claim(std::size_t index);

    InstructionBuilder& builder_;
    std::bitset<512> seen_;
    std::size_t hint_ = 0;
};

/// A chip's reader of instructions.
class InstructionReader {
  public:
    InstructionReader() = default;
    InstructionReader(const InstructionReader&) = delete;
    InstructionReader& operator=(const InstructionReader&) = delete;
    virtual ~InstructionReader() = default;
    /// Appends the bytes of the instruction whose fields are the line's other tokens. Errors:
    /// bad_input.
    [[nodiscard]] virtual Status read(std::string_view mnemonic, LineTokens& fields,
                                      std::vector<std::byte>& out) = 0;
};

/// Streams in the order of the text. Errors: bad_input with the line.
[[nodiscard]] Result<std::vector<AssembledStream>> assemble_streams(std::string_view text,
                                                                    std::size_t word_bytes,
                                                                    InstructionReader& reader);

}  // namespace reef::hw

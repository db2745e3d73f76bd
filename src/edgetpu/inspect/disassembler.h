// The Edge TPU's disassembler, as a part of the chip.
#pragma once

#include "reef/chip/disassembler.h"

namespace reef::edgetpu {

class Disassembler final : public chip::Disassembler {
  public:
    [[nodiscard]] std::string_view family() const override { return "edgetpu"; }
    [[nodiscard]] std::string_view name() const override { return "Edge TPU"; }
    [[nodiscard]] const hw::InstructionSet& instruction_set() const override;
    [[nodiscard]] Result<std::vector<chip::Program>> programs_of(
        const model::Model& model) const override;
    void append_text(const hw::Instruction& instruction, const chip::TextOptions& options,
                     std::string& out) const override;
    [[nodiscard]] std::string field_text(const hw::Instruction& instruction,
                                         const hw::FieldInfo& field,
                                         const chip::TextOptions& options) const override;
    [[nodiscard]] std::string_view numbering() const override;
    [[nodiscard]] std::string text_of(Bytes stream,
                                      const chip::TextOptions& options) const override;
    [[nodiscard]] Result<std::vector<hw::AssembledStream>> assemble(
        std::string_view text) const override;
    [[nodiscard]] chip::ProgramCheck check(std::span<const Bytes> streams) const override;
};

}  // namespace reef::edgetpu

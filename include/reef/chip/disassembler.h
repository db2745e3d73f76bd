// A chip's programs: which a model holds, their instructions as text, and their check.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/hw/assembly.h"
#include "reef/hw/instruction_set.h"
#include "reef/model/graph.h"

namespace reef::chip {

struct Program {
    std::string type;                  ///< the chip's word for what it is for
    std::vector<SharedBytes> streams;  ///< of instructions; they run one after the other
    /// What the host sends beside inputs; empty for a chip whose programs hold all of it.
    SharedBytes parameters = {};
};

struct TextOptions {
    bool symbolic = false;  ///< groups and values by name, comments
    bool addresses = true;  ///< word address in front of each line
};

/// A rule that a program breaks, and where.
struct ProgramFault {
    std::size_t stream = 0;
    std::size_t word = 0;  ///< in that stream
    std::string what;
};

struct ProgramCheck {
    bool followed = true;  ///< in the order in which it would run, to the end
    std::vector<ProgramFault> faults;
    std::vector<ProgramFault> unmodelled;  ///< no broken rules: what the simulated chip refuses
};

/// Of a family of chips, enrolled as a part of it. Streams may be any bytes; words that are no
/// instructions are shown as data.
class Disassembler : public Part {
  public:
    /// The chip's, for people.
    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual const hw::InstructionSet& instruction_set() const = 0;
    /// Of all operators compiled for the chip, in their order. Errors: those of reading them.
    [[nodiscard]] virtual Result<std::vector<Program>> programs_of(
        const model::Model& model) const = 0;
    /// Of a file that is no model of Reef's but the vendor's own container. Empty for any other
    /// file. Errors: the container holds no programs that can be read.
    [[nodiscard]] virtual Result<std::vector<Program>> programs_in(const SharedBytes& file) const;
    /// Appends one line, without its line end and without comments.
    virtual void append_text(const hw::Instruction& instruction, const TextOptions& options,
                             std::string& out) const = 0;
    /// The value of one field, as append_text() writes it; unless the chip says otherwise, numbers
    /// in decimal, bits in hexadecimal, values of an enumeration by name where they have one.
    [[nodiscard]] virtual std::string field_text(const hw::Instruction& instruction,
                                                 const hw::FieldInfo& field,
                                                 const TextOptions& options) const;
    /// The field that numbers instructions; empty where they are not numbered.
    [[nodiscard]] virtual std::string_view numbering() const { return {}; }
    /// The text of a whole stream; assemble() makes the same bytes of it.
    [[nodiscard]] virtual std::string text_of(Bytes stream, const TextOptions& options) const = 0;
    /// Streams in the order of the text. Errors: bad_input with line and token.
    [[nodiscard]] virtual Result<std::vector<hw::AssembledStream>> assemble(
        std::string_view text) const = 0;
    /// Rules of one program's streams that show without running it.
    [[nodiscard]] virtual ProgramCheck check(std::span<const Bytes> streams) const = 0;
};

}  // namespace reef::chip

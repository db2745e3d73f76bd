// Instruction sets as tables, decoding, encoding.
//
// A program is a stream of instructions of whole words, little endian. The fields of an instruction
// claim all its bits: those of unknown purpose are fields of kind raw. Decoding therefore loses
// nothing, and nothing here allocates per field.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/hw/field.h"

namespace reef::hw {

/// Consecutive fields that belong together and that symbolic text shows as one.
enum class GroupKind : std::uint8_t {
    loop_nest,  ///< base, (stride, limit) per dimension, mask, rotate.*, crop.*
    loops,      ///< limit per dimension, crop.*
    wait,       ///< counter, level, start, step, enable, and side where there are two nests
    signal,     ///< enable, level
    slot,       ///< op and its operands, of a bundle
    plain,
};

struct FieldGroup {
    std::string_view name;
    GroupKind kind;
    std::uint16_t first;  ///< index of its first field
    std::uint16_t count;
    std::uint16_t dimensions;
};

/// Opcodes of different spaces are separate; numbered as in InstructionSet::spaces.
enum class Space : std::uint8_t {};

/// A limit of these tables, which the generator keeps; chips stay far below.
inline constexpr std::size_t most_instruction_bytes = 512;

struct InstructionInfo {
    std::string_view name;
    Space space;
    std::uint16_t opcode;  ///< of its space
    std::uint8_t words;
    std::uint16_t bytes;
    std::uint64_t first_bits;  ///< opcode and space, in their place in the first 64 bits
    Grade grade;
    std::span<const FieldInfo> fields;  ///< by position
    std::span<const FieldGroup> groups;
    std::string_view meaning;

    [[nodiscard]] std::size_t size_bytes() const { return bytes; }
    /// Null when there is no such field.
    [[nodiscard]] const FieldInfo* find(std::string_view field) const;
};

/// Where to find the instruction of an opcode.
struct OpcodeEntry {
    std::uint32_t key;          ///< space << opcode_width | opcode
    std::uint16_t instruction;  ///< index
};

struct InstructionSet {
    std::string_view name;  ///< of the chip
    std::uint16_t word_bytes;
    std::uint8_t opcode_position;  ///< bit
    std::uint8_t opcode_width;
    std::uint8_t space_position;  ///< bit
    std::uint8_t space_width;     ///< 0: there is one space without a name
    std::span<const std::string_view> spaces;
    std::span<const InstructionInfo> instructions;
    std::span<const OpcodeEntry> by_opcode;  ///< by key

    /// Null when no instruction has that name.
    [[nodiscard]] const InstructionInfo* find(std::string_view instruction) const;
    /// Null when no instruction has that opcode, or there is no such space.
    [[nodiscard]] const InstructionInfo* find(Space space, unsigned opcode) const;
    /// Of the word that begins with these 64 bits.
    [[nodiscard]] unsigned opcode_in(std::uint64_t first_bits) const {
        return static_cast<unsigned>(first_bits >> opcode_position & ((1U << opcode_width) - 1));
    }
    [[nodiscard]] Space space_in(std::uint64_t first_bits) const {
        return static_cast<Space>(first_bits >> space_position & ((1U << space_width) - 1));
    }
    /// The instruction that a word begins, by its opcode; null when there is none. Precondition: at
    /// least word_bytes bytes.
    [[nodiscard]] const InstructionInfo* instruction_of(Bytes word) const;
    /// "tile opcode 0x05". Precondition as in instruction_of().
    [[nodiscard]] std::string opcode_text(Bytes word) const;
};

/// One instruction of a stream, or one word that is none. Refers to the stream's bytes.
struct Instruction {
    const InstructionInfo* info = nullptr;  ///< null: data
    std::size_t word = 0;                   ///< its place in the stream, in words
    Bytes bytes;                            ///< data: one word, or fewer bytes at the end

    [[nodiscard]] std::uint64_t bits(const FieldInfo& field) const {
        return field_bits(bytes, field);
    }
    [[nodiscard]] std::int64_t value(const FieldInfo& field) const {
        return field_value(bytes, field);
    }
    /// The field's value, or nothing when the instruction has no such field.
    [[nodiscard]] std::optional<std::int64_t> value(std::string_view field) const;
};

/// Walks any bytes from front to back: words of unknown opcode, cut-off instructions and trailing
/// bytes come as data, so that the parts always make up the whole.
class InstructionCursor {
  public:
    InstructionCursor(const InstructionSet& set, Bytes stream) : set_(&set), stream_(stream) {}

    [[nodiscard]] std::optional<Instruction> next();

  private:
    const InstructionSet* set_;
    Bytes stream_;
    std::size_t offset_ = 0;
};

/// All instructions of a program; refuses unknown opcodes, instructions cut off at the end and
/// trailing bytes, with the word offset.
[[nodiscard]] Result<std::vector<Instruction>> decode(const InstructionSet& set, Bytes stream);

/// The bytes of one instruction being made: opcode set, all fields zero.
class InstructionBuilder {
  public:
    explicit InstructionBuilder(const InstructionInfo& info);

    /// Errors: no such field, value too wide.
    [[nodiscard]] Status set(std::string_view field, std::int64_t value);
    [[nodiscard]] Status set_float(std::string_view field, float value);

    [[nodiscard]] const InstructionInfo& info() const { return *info_; }
    [[nodiscard]] MutableBytes bytes() { return {bytes_.data(), info_->size_bytes()}; }
    [[nodiscard]] Bytes bytes() const { return {bytes_.data(), info_->size_bytes()}; }

  private:
    const InstructionInfo* info_;
    std::array<std::byte, most_instruction_bytes> bytes_;  ///< beyond the size: undefined
};

}  // namespace reef::hw

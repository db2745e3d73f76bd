// The Edge TPU's instruction set: tables made from spec/edgetpu/isa.xml, decoding, encoding.
//
// A program is a stream of instructions of 1 to 17 words of 16 bytes, little endian. The fields of
// an instruction claim all its bits: those of unknown purpose are fields of kind raw. Decoding
// therefore loses nothing, and nothing here allocates per field.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::edgetpu {

inline constexpr std::size_t word_bytes = 16;
inline constexpr std::size_t longest_instruction_words = 17;

/// How well a fact about the hardware is supported.
enum class Grade : std::uint8_t {
    exact,     ///< whole programs computed with it are right, and wrong when it is changed
    fitted,    ///< agrees with every known program; nothing fails without it
    inferred,  ///< follows from the regular structure of the encoding or from few programs
    guess,     ///< a plausible name for bits of unknown purpose
};
[[nodiscard]] std::string_view to_string(Grade grade);

/// What the bits of a field mean; decides how text shows them.
enum class FieldKind : std::uint8_t {
    unsigned_number,
    signed_number,    ///< two's complement
    flag,             ///< one bit
    address,          ///< unsigned
    mask,             ///< bits
    float32,          ///< IEEE 754 binary32
    tiles,            ///< bit t: tile t = 4 * row + column
    register_number,  ///< scalar register
    enumeration,
    set,    ///< one bit per value of an enumeration
    limit,  ///< a count, stored as count - 1
    raw,    ///< bits of no known field
};
[[nodiscard]] std::string_view to_string(FieldKind kind);

struct EnumValue {
    std::uint32_t value;
    std::string_view name;
    std::string_view meaning;
};

struct Enumeration {
    std::string_view name;
    std::string_view meaning;
    std::span<const EnumValue> values;
};

struct FieldInfo {
    std::string_view name;   ///< "in.stride0", "scale", "raw[28+18]"
    std::uint16_t position;  ///< first bit
    std::uint16_t byte;      ///< the little-endian 64-bit word at this byte holds the field ...
    std::uint8_t shift;      ///< ... from this bit on
    std::uint8_t width;      ///< bits, 1 to 56
    FieldKind kind;
    Grade grade;
    const Enumeration* enumeration;  ///< of kinds enumeration and set, else null
    std::string_view unit;
    std::string_view meaning;
    std::string_view note;
    /// The bits in every known program, 0 for raw fields; -1: there are several.
    std::int16_t only;
};

/// Consecutive fields that belong together and that symbolic text shows as one.
enum class GroupKind : std::uint8_t {
    loop_nest,  ///< base, (stride, limit) per dimension, mask, rotate.*, crop.*
    loops,      ///< limit per dimension, crop.*
    wait,       ///< counter, level, start, step, enable, and side where there are two nests
    signal,     ///< enable, level
    slot,       ///< op and its operands, of a scalar bundle
    plain,
};

struct FieldGroup {
    std::string_view name;
    GroupKind kind;
    std::uint16_t first;  ///< index of its first field
    std::uint16_t count;
    std::uint16_t dimensions;
};

enum class Space : std::uint8_t { tile, scalar };

struct InstructionInfo {
    std::string_view name;
    Space space;
    std::uint8_t opcode;  ///< 0 to 31, of its space
    std::uint8_t words;
    Grade grade;
    std::span<const FieldInfo> fields;  ///< by position
    std::span<const FieldGroup> groups;
    std::string_view meaning;

    [[nodiscard]] std::size_t size_bytes() const { return words * word_bytes; }
    /// Null when there is no such field.
    [[nodiscard]] const FieldInfo* find(std::string_view field) const;
};

[[nodiscard]] std::span<const InstructionInfo> instruction_set();
/// Null when no instruction has that name.
[[nodiscard]] const InstructionInfo* find_instruction(std::string_view name);
/// Null when no instruction has that opcode (0 to 31).
[[nodiscard]] const InstructionInfo* find_instruction(Space space, unsigned opcode);
/// The instruction that a word begins, by its opcode. Precondition: at least word_bytes bytes.
[[nodiscard]] const InstructionInfo* instruction_of(Bytes word);

/// The field's bits, zero-extended. Precondition: `instruction` has the size of the field's
/// instruction.
[[nodiscard]] inline std::uint64_t field_bits(Bytes instruction, const FieldInfo& field) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word;
    std::memcpy(&word, instruction.data() + field.byte, sizeof word);
    return (word >> field.shift) & (~std::uint64_t{0} >> (64 - field.width));
}
/// The same, sign-extended for signed fields.
[[nodiscard]] inline std::int64_t field_value(Bytes instruction, const FieldInfo& field) {
    const auto bits = field_bits(instruction, field);
    if (field.kind != FieldKind::signed_number) return static_cast<std::int64_t>(bits);
    const int unused = 64 - field.width;
    return static_cast<std::int64_t>(bits << unused) >> unused;
}

/// Writes the low bits of `bits`. Precondition as in field_bits().
void set_field_bits(MutableBytes instruction, const FieldInfo& field, std::uint64_t bits);
/// Refuses a value that the field cannot hold: outside [0, 2^width), or [-2^(width-1),
/// 2^(width-1)) for signed fields. Float fields take their bits.
[[nodiscard]] Status set_field(MutableBytes instruction, const FieldInfo& field,
                               std::int64_t value);

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
    explicit InstructionCursor(Bytes stream) : stream_(stream) {}

    [[nodiscard]] std::optional<Instruction> next();

  private:
    Bytes stream_;
    std::size_t offset_ = 0;
};

/// All instructions of a program; refuses unknown opcodes, instructions cut off at the end and
/// trailing bytes, with the word offset.
[[nodiscard]] Result<std::vector<Instruction>> decode(Bytes stream);

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
    std::array<std::byte, longest_instruction_words * word_bytes> bytes_{};
};

}  // namespace reef::edgetpu

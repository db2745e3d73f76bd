// Fields of instructions, the enumerations of their values, and how well each fact is supported.
//
// Nothing here knows a chip: the tables are made from a chip's description (spec/language).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::hw {

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
    tiles,            ///< bit t: tile t of the chip
    register_number,  ///< of the chip's scalar registers
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

    /// Null when no value has that number.
    [[nodiscard]] constexpr const EnumValue* find(std::uint64_t number) const {
        for (const auto& value : values)
            if (value.value == number) return &value;
        return nullptr;
    }
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
    /// The bits in known programs, ascending, 0 for raw fields; empty: too many to list.
    std::span<const std::uint64_t> seen;
    /// The one of `seen`; -1: there are several, or too many to list.
    std::int32_t only;
};

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

}  // namespace reef::hw

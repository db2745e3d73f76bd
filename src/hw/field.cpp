#include "reef/hw/field.h"

#include <fmt/format.h>

namespace reef::hw {

std::string_view to_string(Grade grade) {
    static constexpr std::string_view names[] = {"exact", "fitted", "inferred", "guess"};
    return names[static_cast<unsigned>(grade)];
}

std::string_view to_string(FieldKind kind) {
    static constexpr std::string_view names[] = {"unsigned",    "signed", "flag",  "address",
                                                 "mask",        "float",  "tiles", "register",
                                                 "enumeration", "set",    "limit", "raw"};
    return names[static_cast<unsigned>(kind)];
}

void set_field_bits(MutableBytes instruction, const FieldInfo& field, std::uint64_t bits) {
    std::uint64_t word;
    std::memcpy(&word, instruction.data() + field.byte, sizeof word);
    const auto mask = (~std::uint64_t{0} >> (64 - field.width)) << field.shift;
    word = (word & ~mask) | ((bits << field.shift) & mask);
    std::memcpy(instruction.data() + field.byte, &word, sizeof word);
}

Status set_field(MutableBytes instruction, const FieldInfo& field, std::int64_t value) {
    const bool is_signed = field.kind == FieldKind::signed_number;
    const auto low = is_signed ? -(std::int64_t{1} << (field.width - 1)) : 0;
    const auto high = (std::int64_t{1} << (is_signed ? field.width - 1 : field.width)) - 1;
    if (value < low || value > high)
        return fail(Cause::bad_argument,
                    fmt::format("{} does not fit {} {}bits", value, field.width,
                                is_signed ? "signed " : ""),
                    std::string(field.name), fmt::format("use {} to {}", low, high));
    set_field_bits(instruction, field, static_cast<std::uint64_t>(value));
    return {};
}

}  // namespace reef::hw

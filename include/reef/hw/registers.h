// Registers of a chip, as tables made from its description.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reef/hw/field.h"

namespace reef::hw {

struct RegisterField {
    std::string_view name;
    std::uint8_t position;
    std::uint8_t width;
    Grade grade;
    std::string_view meaning;
};

struct RegisterInfo {
    std::string_view name;               ///< the vendor's
    std::string_view group;              ///< the vendor's; a register may occur in several groups
    std::uint32_t offset;                ///< bytes
    std::uint8_t bits;                   ///< of one transfer: 32 or 64
    std::uint8_t count;                  ///< of a register file, each behind the other; else 1
    std::optional<std::uint64_t> reset;  ///< the value after a reset, where it is known
    std::span<const RegisterField> fields;

    /// Of two registers of a file, in bytes.
    [[nodiscard]] constexpr std::uint32_t distance() const { return bits / 8U; }
};

/// The first register of that name (of that group, if given); null when there is none.
[[nodiscard]] const RegisterInfo* find_register(std::span<const RegisterInfo> registers,
                                                std::string_view name, std::string_view group = {});
/// The first register, or register file with an element, at that offset; null when there is none.
[[nodiscard]] const RegisterInfo* find_register(std::span<const RegisterInfo> registers,
                                                std::uint32_t offset);
/// Element `index` of a register file, as a register of its own. Precondition: index < file.count.
[[nodiscard]] RegisterInfo element_of(const RegisterInfo& file, unsigned index);

}  // namespace reef::hw

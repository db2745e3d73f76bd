// Control and status registers of the Edge TPU, from spec/edgetpu/registers.xml.
#pragma once

#include "reef/hw/registers.h"

namespace reef::edgetpu {

using hw::element_of;
using hw::RegisterField;
using hw::RegisterInfo;

[[nodiscard]] std::span<const RegisterInfo> registers();
/// The first register of that name (of that group, if given); null when there is none.
[[nodiscard]] inline const RegisterInfo* find_register(std::string_view name,
                                                       std::string_view group = {}) {
    return hw::find_register(registers(), name, group);
}
/// The first register, or register file with an element, at that offset; null when there is none.
[[nodiscard]] inline const RegisterInfo* find_register(std::uint32_t offset) {
    return hw::find_register(registers(), offset);
}

}  // namespace reef::edgetpu

#include "reef/hw/registers.h"

namespace reef::hw {

const RegisterInfo* find_register(std::span<const RegisterInfo> registers, std::string_view name,
                                  std::string_view group) {
    for (const auto& info : registers) {
        if (info.name == name && (group.empty() || info.group == group)) return &info;
    }
    return nullptr;
}

const RegisterInfo* find_register(std::span<const RegisterInfo> registers, std::uint32_t offset) {
    for (const auto& info : registers) {
        const std::uint32_t from_first = offset - info.offset;
        if (offset >= info.offset && from_first % info.distance() == 0 &&
            from_first / info.distance() < info.count)
            return &info;
    }
    return nullptr;
}

RegisterInfo element_of(const RegisterInfo& file, unsigned index) {
    RegisterInfo element = file;
    element.offset += index * file.distance();
    element.count = 1;
    return element;
}

}  // namespace reef::hw

#include "reef/hw/operators.h"

#include <algorithm>

namespace reef::hw {

std::string_view to_string(OperatorGrade grade) {
    return grade == OperatorGrade::seen ? "seen" : "documented";
}

const OperatorInfo* find_operator(std::span<const OperatorInfo> operators, std::string_view name) {
    const auto found = std::ranges::find(operators, name, &OperatorInfo::name);
    return found == operators.end() ? nullptr : &*found;
}

}  // namespace reef::hw

// Operators that the vendor's compiler can put on the Edge TPU: a table made from
// spec/edgetpu/operators.xml.
#pragma once

#include "reef/hw/operators.h"

namespace reef::edgetpu {

using hw::OperatorGrade;
using hw::OperatorInfo;
using hw::to_string;

[[nodiscard]] std::span<const OperatorInfo> operators();
/// Null when the documentation does not list the operator.
[[nodiscard]] inline const OperatorInfo* find_operator(std::string_view name) {
    return hw::find_operator(operators(), name);
}

}  // namespace reef::edgetpu

// Operators that the vendor's compiler can put on the Edge TPU: a table made from
// spec/edgetpu/operators.xml.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace reef::edgetpu {

enum class OperatorGrade : std::uint8_t {
    seen,        ///< a known program computes one
    documented,  ///< only the documentation of the vendor's compiler says so
};
[[nodiscard]] std::string_view to_string(OperatorGrade grade);

struct OperatorInfo {
    std::string_view name;  ///< in TFLite
    OperatorGrade grade;
    std::string_view limit;  ///< in the compiler's documentation; empty: none
};

[[nodiscard]] std::span<const OperatorInfo> operators();
/// Null when the documentation does not list the operator.
[[nodiscard]] const OperatorInfo* find_operator(std::string_view name);

}  // namespace reef::edgetpu

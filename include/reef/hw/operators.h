// Operators that a vendor's compiler can put on a chip, as a table made from its description.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace reef::hw {

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

/// Null when the table does not list the operator.
[[nodiscard]] const OperatorInfo* find_operator(std::span<const OperatorInfo> operators,
                                                std::string_view name);

}  // namespace reef::hw

// Quantities and names in words, as reports and the command show them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reef/base/element_type.h"

namespace reef {

/// "1.39 MB", "925 B": powers of 1000, three digits.
[[nodiscard]] std::string bytes_text(std::int64_t bytes);
/// "13.6 M", "950", "1.2 G".
[[nodiscard]] std::string count_text(std::int64_t count);
/// "1.42 ms", "310 us", "2.00 s".
[[nodiscard]] std::string duration_text(double seconds);
/// "1 operator", "3 operators".
[[nodiscard]] std::string plural(std::size_t count, std::string_view singular);
/// Converters join the names of merged operators into very long ones: the middle is cut out.
[[nodiscard]] std::string shortened(std::string_view name, std::size_t length = 56);

/// "u8", "f32", "bool": as raw inputs are described; name_of() where there is no shorter one.
[[nodiscard]] std::string short_name(ElementType type);

}  // namespace reef

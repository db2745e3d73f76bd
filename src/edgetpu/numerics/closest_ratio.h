// A factor as a quotient of two small integers.
#pragma once

#include <cstdint>

namespace reef::edgetpu::numerics {

struct Ratio {
    std::int32_t numerator = 0;
    std::int32_t denominator = 1;
    friend bool operator==(const Ratio&, const Ratio&) = default;
};

/// The quotient closest to `value` of which neither part is above `largest`, in lowest terms.
/// Precondition: value is in [1 / largest, largest], largest at least 1.
[[nodiscard]] Ratio closest_ratio(double value, std::int32_t largest);

}  // namespace reef::edgetpu::numerics

#include "cpu/prepare/fixed_point.h"

#include <cassert>
#include <cmath>

namespace reef::cpu {

Multiplier quantize_multiplier(double real) {
    assert(std::isfinite(real) && real >= 0);
    if (real == 0) return {};
    int shift = 0;
    const double fraction = std::frexp(real, &shift);
    auto fixed = static_cast<std::int64_t>(std::round(fraction * 0x1p31));
    if (fixed == std::int64_t{1} << 31) {
        fixed /= 2;
        ++shift;
    }
    if (shift < -31) return {};
    return {.multiplier = static_cast<std::int32_t>(fixed), .shift = shift};
}

}  // namespace reef::cpu

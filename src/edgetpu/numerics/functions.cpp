#include "edgetpu/numerics/functions.h"

#include <algorithm>
#include <cmath>

#include "cpu/prepare/float_requantisation.h"

namespace reef::edgetpu::numerics {

float PolynomialTable::operator()(float x) const {
    // A break point belongs to the segment above it.
    const auto segment = std::ranges::upper_bound(breaks, x) - breaks.begin();
    const std::array<float, 5>& c = coefficients[static_cast<std::size_t>(segment)];
    float y = c[4];
    for (std::size_t i = 4; i-- > 0;) y = y * x + c[i];
    return y;
}

float PolynomialTable::with_range(float x) const {
    const int half_exponent = std::ilogb(x) >> 1;
    return std::ldexp((*this)(std::ldexp(x, -2 * half_exponent)), -half_exponent);
}

std::uint16_t to_16_bits(float value) {
    return static_cast<std::uint16_t>(
        cpu::round_half_even(std::min(std::max(value, 0.0F), 65535.0F)));
}

const PolynomialTable sigmoid_256{spec::sigmoid_256};
const PolynomialTable sigmoid_255{spec::sigmoid_255};
const PolynomialTable tanh_127{spec::tanh_127_5};
const PolynomialTable tanh_16383{spec::tanh_16383_5};
const PolynomialTable exponential_65536{spec::exponential_65536};
const PolynomialTable inverse_root_65536{spec::inverse_root_65536};

}  // namespace reef::edgetpu::numerics

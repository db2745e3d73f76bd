// What a chip has besides instructions and registers, as tables made from its description.
#pragma once

#include <array>
#include <cstddef>

namespace reef::hw {

/// Polynomials in a row: segment s holds from breaks[s - 1] on; coefficients from the constant one
/// up.
template <std::size_t segments, std::size_t terms>
struct Piecewise {
    std::array<std::array<float, terms>, segments> coefficients;
    std::array<float, segments - 1> breaks;
    float least;  ///< argument
    float most;
};

}  // namespace reef::hw

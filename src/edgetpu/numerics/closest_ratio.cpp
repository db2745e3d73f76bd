#include "edgetpu/numerics/closest_ratio.h"

#include <cmath>

namespace reef::edgetpu::numerics {
namespace {

double distance(Ratio ratio, double value) {
    if (ratio.denominator == 0) return HUGE_VAL;
    return std::abs(static_cast<double>(ratio.numerator) - value * ratio.denominator) /
           ratio.denominator;
}

}  // namespace

// The Stern-Brocot tree: `below` < value < `above` are neighbours, and every quotient between them
// has parts at least as large as their mediant's.
Ratio closest_ratio(double value, std::int32_t largest) {
    Ratio below{0, 1};
    Ratio above{1, 0};
    while (true) {
        const Ratio middle{below.numerator + above.numerator,
                           below.denominator + above.denominator};
        if (middle.numerator > largest || middle.denominator > largest) break;
        const double side = middle.numerator - value * middle.denominator;
        if (side == 0) return middle;
        (side < 0 ? below : above) = middle;
    }
    return distance(below, value) <= distance(above, value) ? below : above;
}

}  // namespace reef::edgetpu::numerics

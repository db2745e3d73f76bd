#include "cpu/edgetpu_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/float_requantisation.h"

namespace reef::cpu {

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
    return static_cast<std::uint16_t>(round_half_even(std::min(std::max(value, 0.0F), 65535.0F)));
}

const PolynomialTable sigmoid_256{
    .coefficients = {{
        {32.082626F, 13.857367F, 2.2672386F, 0.16598408F, 0.0045760125F},
        {132.63097F, 85.70315F, 21.859444F, 2.58F, 0.117780134F},
        {135.45853F, 82.20974F, 16.430658F, 0.5211197F, -0.12966941F},
        {128.00162F, 63.97225F, -0.32965082F, -6.311217F, -1.1621366F},
        {128.0028F, 63.92499F, 0.47345105F, -6.475306F, 1.2242033F},
        {110.89018F, 98.711784F, -26.890657F, 3.4358993F, -0.17184F},
        {195.84106F, 29.966818F, -5.7082276F, 0.49032992F, -0.015962048F},
        {244.7982F, 4.166754F, -0.58794147F, 0.037229694F, -8.9129084e-04F},
    }},
    .breaks = {-5.639855F, -2.965404F, -1.34088F, 0.08613962F, 1.805656F, 4.8011794F, 8.472422F},
};

const PolynomialTable exponential_65536{
    .coefficients = {{
        {1839.6675F, 630.2154F, 81.34308F, 4.680994F, 0.10120727F},
        {13928.352F, 6826.62F, 1282.0364F, 108.85453F, 3.513191F},
        {33057.742F, 20768.045F, 5117.174F, 580.746F, 25.420813F},
        {50335.938F, 38372.758F, 11888.197F, 1745.7169F, 101.05772F},
        {60827.97F, 53701.17F, 20356.889F, 3842.9094F, 297.454F},
        {64842.34F, 62677.58F, 27987.324F, 6766.296F, 723.3006F},
        {65526.38F, 65428.203F, 32277.033F, 9857.563F, 1593.3411F},
        {65535.0F, 65534.95F, 32765.309F, 10888.121F, 2503.7742F},
    }},
    .breaks = {-7.986872F, -5.480507F, -3.9326499F, -2.6985426F, -1.757619F, -0.9169553F,
               -0.1742215F},
};

const PolynomialTable inverse_root_65536{
    .coefficients = {{
        {109663.41F, -135128.84F, 112302.266F, -49342.207F, 8845.37F},
        {99786.16F, -101767.54F, 69965.35F, -25417.17F, 3765.479F},
        {89722.984F, -73979.2F, 41119.766F, -12077.087F, 1446.5148F},
        {80423.64F, -53271.863F, 23783.623F, -5609.964F, 539.5391F},
        {71984.555F, -38202.617F, 13666.3F, -2583.1428F, 199.0968F},
        {64750.547F, -27807.225F, 8050.912F, -1231.8031F, 76.864265F},
        {59222.95F, -21285.252F, 5160.387F, -661.5083F, 34.603092F},
        {59222.95F, -21285.252F, 5160.387F, -661.5083F, 34.603092F},
    }},
    .breaks = {1.1744492F, 1.4527012F, 1.7968035F, 2.2504222F, 2.7994583F, 3.4374754F,
               std::numeric_limits<float>::infinity()},
};

}  // namespace reef::cpu

#include "requantise.h"

#include <algorithm>

namespace reef::edgetpu::sim {
namespace {

float polynomial(const Table& table, float x) {
    const auto segment = static_cast<std::size_t>(
        std::ranges::count_if(table.breaks, [x](float b) { return b <= x; }));
    const auto& c = table.coefficients[segment];
    float y = c[4];
    for (int j = 3; j >= 0; --j) y = y * x + c[static_cast<std::size_t>(j)];
    return y;
}

float normalised(const Table& table, float x) {
    constexpr float smallest = 1e-30F;
    int exponent = 0;
    std::frexp(std::fmax(x, smallest), &exponent);
    const int k = static_cast<int>(std::floor((exponent - 1) / 2.0));
    return std::ldexp(polynomial(table, std::ldexp(x, -2 * k)), -k);
}

}  // namespace

float apply_table(const Table& table, float x, const TensorOp& op) {
    if (op.table_normalised) return normalised(table, x);
    if (op.table_odd && x < 0) return -polynomial(table, -x);
    return polynomial(table, x);
}

}  // namespace reef::edgetpu::sim

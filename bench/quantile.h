// Medians and quartiles of what rounds measured.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace reef::bench {

/// `part` is 0.5 for the median. Precondition: there are values.
[[nodiscard]] inline double quantile(std::vector<double> values, double part) {
    const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, values.begin() + at);
    return values[static_cast<std::size_t>(at)];
}

[[nodiscard]] inline double median(std::vector<double> values) {
    return quantile(std::move(values), 0.5);
}

}  // namespace reef::bench

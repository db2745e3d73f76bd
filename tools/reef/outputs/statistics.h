// Latencies in a few numbers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "outputs/json_output.h"

namespace reef::tool {

/// Seconds. Percentiles are interpolated linearly between the two nearest runs.
struct LatencySummary {
    std::size_t runs = 0;
    double min = 0, mean = 0, median = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
    double deviation = 0;  ///< standard deviation of the sample; 0 for one run
};

/// Precondition: at least one run.
[[nodiscard]] LatencySummary summarize(std::vector<double> seconds);

/// `part` is 0 to 1. Precondition: sorted, not empty.
[[nodiscard]] double percentile(std::span<const double> sorted, double part);

[[nodiscard]] Json latency_json(const LatencySummary& summary);

}  // namespace reef::tool

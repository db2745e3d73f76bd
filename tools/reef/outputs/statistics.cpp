#include "outputs/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reef::tool {

double percentile(std::span<const double> sorted, double part) {
    const double position = part * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double fraction = position - static_cast<double>(below);
    return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

LatencySummary summarize(std::vector<double> seconds) {
    std::ranges::sort(seconds);
    const auto count = static_cast<double>(seconds.size());
    LatencySummary summary{.runs = seconds.size(),
                           .min = seconds.front(),
                           .mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / count,
                           .median = percentile(seconds, 0.5),
                           .p90 = percentile(seconds, 0.90),
                           .p95 = percentile(seconds, 0.95),
                           .p99 = percentile(seconds, 0.99),
                           .max = seconds.back()};
    double squares = 0;
    for (const double value : seconds) squares += (value - summary.mean) * (value - summary.mean);
    if (seconds.size() > 1) summary.deviation = std::sqrt(squares / (count - 1));
    return summary;
}

Json latency_json(const LatencySummary& summary) {
    return {
        {"runs", summary.runs},       {"min_s", summary.min}, {"mean_s", summary.mean},
        {"median_s", summary.median}, {"p90_s", summary.p90}, {"p95_s", summary.p95},
        {"p99_s", summary.p99},       {"max_s", summary.max}, {"deviation_s", summary.deviation}};
}

}  // namespace reef::tool

// What `reef bench` measured, and its two forms of output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "outputs/console.h"
#include "outputs/json_output.h"
#include "outputs/profile.h"
#include "outputs/statistics.h"
#include "reef/chip/estimate.h"
#include "reef/runtime/session.h"

namespace reef::tool {

struct BenchReport {
    std::string model;
    std::string device;
    std::string kernels;
    std::string arithmetic;
    int threads = 1;
    int threads_taken = 1;  ///< by operators of the CPU when the last measured run had ended
    bool random_inputs = true;
    std::uint64_t seed = 0;
    double open_seconds = 0;
    std::size_t warmup_runs = 0;
    LatencySummary latency{};
    std::int64_t macs = 0;
    graph::MemoryReport memory{};
    std::int64_t peak_bytes = 0;  ///< the most memory that the process had
    Profile profile{};
    /// Of the compiled operators together, on a device of their chip.
    std::optional<chip::Estimate> chip{};
    std::string chip_summary{};  ///< see model_session.h
    Json chip_counts{};
};

/// `all`: every operator in the table, in execution order, not only the slowest.
void print_bench_text(Console& console, const BenchReport& report, bool all);
/// A line of titles and one of numbers, so that the lines of several models make a table.
void print_bench_csv(Console& console, const BenchReport& report);
void print_bench_json(Console& console, const BenchReport& report);

}  // namespace reef::tool

#include "run/bench_report.h"

#include <algorithm>

#include "inputs/chips.h"
#include "inspect/chip_text.h"
#include "outputs/csv_output.h"
#include "outputs/json_output.h"
#include "outputs/model_text.h"
#include "outputs/text_table.h"

namespace reef::tool {
namespace {

constexpr std::size_t rows_at_a_glance = 12;

std::string percent(double part) {
    return fmt::format("{:.1f} %", 100 * part);
}

/// Multiply-accumulates per second in thousands of millions.
std::string rate_text(std::int64_t macs, double seconds) {
    if (macs == 0 || seconds <= 0) return {};
    return fmt::format("{:.1f}", static_cast<double>(macs) / seconds / 1e9);
}

void print_latency(Console& console, const LatencySummary& l) {
    TextTable table({{"min", Align::right},
                     {"mean", Align::right},
                     {"median", Align::right},
                     {"p90", Align::right, 2},
                     {"p95", Align::right, 3},
                     {"p99", Align::right, 1},
                     {"max", Align::right},
                     {"deviation", Align::right, 4}});
    table.add({duration_text(l.min), duration_text(l.mean), duration_text(l.median),
               duration_text(l.p90), duration_text(l.p95), duration_text(l.p99),
               duration_text(l.max), duration_text(l.deviation)});
    table.print(console);
}

void print_types(Console& console, const Profile& profile) {
    TextTable table(
        {{"type"}, {"count", Align::right}, {"time", Align::right}, {"share", Align::right}});
    for (const TypeTime& type : profile.types) {
        table.add({type.name, std::to_string(type.count), duration_text(type.seconds),
                   percent(type.share)});
    }
    console.print("\n{}  mean of {}\n", console.heading("time by type"),
                  plural(profile.runs, "profiled run"));
    table.print(console);
}

void print_operators(Console& console, const Profile& profile, bool all) {
    std::vector<OperatorTime> rows = profile.operators;
    if (!all) std::ranges::sort(rows, std::greater{}, &OperatorTime::seconds);
    const std::size_t shown =
        all || rows.size() <= rows_at_a_glance + 2 ? rows.size() : rows_at_a_glance;
    TextTable table({{"#", Align::right},
                     {"operator"},
                     {"time", Align::right},
                     {"share", Align::right},
                     {"MACs", Align::right, 2},
                     {"GMAC/s", Align::right, 1},
                     {"output"},
                     {"kernel"}});
    for (std::size_t i = 0; i < shown; ++i) {
        const OperatorTime& op = rows[i];
        table.add({std::to_string(op.index), op.name, duration_text(op.seconds), percent(op.share),
                   op.macs == 0 ? "" : count_text(op.macs), rate_text(op.macs, op.seconds),
                   op.output, op.kernel});
    }
    console.print("\n{}\n", console.heading(all ? "operators" : "slowest operators"));
    table.print(console);
    if (shown < rows.size()) {
        console.print("  ... {} more: --all shows them\n", rows.size() - shown);
    }
}

/// Inferences per second, one after the other.
double throughput(const BenchReport& report) {
    return report.latency.mean > 0 ? 1 / report.latency.mean : 0;
}

}  // namespace

void print_bench_csv(Console& console, const BenchReport& report) {
    const LatencySummary& l = report.latency;
    print_csv(console, {"model",
                        "device",
                        "kernels",
                        "arithmetic",
                        "threads",
                        "runs",
                        "min_s",
                        "mean_s",
                        "median_s",
                        "p90_s",
                        "p95_s",
                        "p99_s",
                        "max_s",
                        "deviation_s",
                        "inferences_per_s",
                        "open_s",
                        "macs",
                        "arena_bytes",
                        "packed_weight_bytes",
                        "peak_memory_bytes"});
    std::vector<std::string> row{report.model,
                                 report.device,
                                 report.kernels,
                                 report.arithmetic,
                                 std::to_string(report.threads),
                                 std::to_string(l.runs)};
    for (const double value : {l.min, l.mean, l.median, l.p90, l.p95, l.p99, l.max, l.deviation,
                               throughput(report), report.open_seconds})
        row.push_back(fmt::format("{}", value));
    row.insert(row.end(),
               {std::to_string(report.macs), std::to_string(report.memory.arena_bytes),
                std::to_string(report.memory.packed_bytes), std::to_string(report.peak_bytes)});
    print_csv(console, row);
}

std::string threads_text(const BenchReport& report) {
    std::string text = plural(static_cast<std::size_t>(report.threads), "thread");
    // A simulated device takes as many as it is given.
    if (report.device == "cpu" && report.threads_taken < report.threads)
        text += " (in the end runs took one, as short ones may)";
    return text;
}

void print_bench_text(Console& console, const BenchReport& report, bool all) {
    const std::string rate = rate_text(report.macs, report.latency.median);
    console.print("{} on {}, {} kernels{}, {}, {}\n",
                  console.heading(printable(file_name(report.model))), report.device,
                  report.kernels,
                  report.arithmetic == "tflite"
                      ? std::string()
                      : fmt::format(", the {}'s arithmetic", chip_name(report.arithmetic)),
                  threads_text(report),
                  report.random_inputs ? fmt::format("random inputs (seed {})", report.seed)
                                       : "given inputs");
    console.print(
        "  {} after {}; opened in {}; arena {}{}\n\n", plural(report.latency.runs, "run"),
        plural(report.warmup_runs, "warm-up run"), duration_text(report.open_seconds),
        bytes_text(static_cast<std::int64_t>(report.memory.arena_bytes)),
        rate.empty() ? "" : fmt::format("; {} MACs, {} GMAC/s", count_text(report.macs), rate));
    print_latency(console, report.latency);
    console.print("\n  {:.1f} inferences/s; peak memory {}\n", throughput(report),
                  bytes_text(report.peak_bytes));
    if (!report.chip_summary.empty())
        console.print("\n{}: {}\n", report.device, report.chip_summary);
    if (report.chip)
        for (const chip::Section& section : report.chip->sections) print_section(console, section);
    print_types(console, report.profile);
    print_operators(console, report.profile, all);
}

void print_bench_json(Console& console, const BenchReport& report) {
    Json document = json_document("bench");
    document["model"] = report.model;
    document["device"] = report.device;
    document["kernels"] = report.kernels;
    document["arithmetic"] = report.arithmetic;
    document["threads"] = report.threads;
    document["threads_taken"] = report.threads_taken;
    document["random_inputs"] = report.random_inputs;
    document["seed"] = report.seed;
    document["open_s"] = report.open_seconds;
    document["warmup_runs"] = report.warmup_runs;
    document["latency"] = latency_json(report.latency);
    document["macs"] = report.macs;
    document["inferences_per_s"] = throughput(report);
    document["peak_memory_bytes"] = report.peak_bytes;
    document["arena_bytes"] = report.memory.arena_bytes;
    document["packed_weight_bytes"] = report.memory.packed_bytes;
    document["profile"] = {{"runs", report.profile.runs}, {"operators_s", report.profile.seconds}};
    document["profile"]["types"] = Json::array();
    for (const TypeTime& type : report.profile.types) {
        document["profile"]["types"].push_back({{"name", type.name},
                                                {"count", type.count},
                                                {"mean_s", type.seconds},
                                                {"share", type.share}});
    }
    document["profile"]["operators"] = Json::array();
    for (const OperatorTime& op : report.profile.operators) {
        document["profile"]["operators"].push_back({{"index", op.index},
                                                    {"name", op.name},
                                                    {"kernel", op.kernel},
                                                    {"output", op.output},
                                                    {"macs", op.macs},
                                                    {"mean_s", op.seconds},
                                                    {"share", op.share}});
    }
    if (!report.chip_counts.is_null()) document["chip"] = report.chip_counts;
    if (report.chip) document["chip_estimate"] = to_json(report.chip->document);
    print_json(console, document);
}

}  // namespace reef::tool

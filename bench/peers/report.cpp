#include "peers/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "peers/machine_speed.h"
#include "quantile.h"
#include "reef/cpu/kernel_set.h"

namespace reef::peers {

using bench::quantile;

namespace {

using Json = nlohmann::ordered_json;

std::string alike(const Column& column) {
    if (!column.alike) return {};
    const Likeness& alike = *column.alike;
    if (!alike.equal) return ", outputs not compared";
    if (alike.relative)
        return fmt::format(", outputs {:.1e} of the largest apart", *alike.relative);
    return fmt::format(", {:.1f} % of outputs equal, {:.0f} apart ({:.2f} in the mean)",
                       100 * *alike.equal, alike.farthest, alike.mean);
}

std::string remark(const Row& row, const Column& column) {
    if (column.peer == "XNNPACK")
        return fmt::format("{} of {} operators{}", row.on_xnnpack, row.operators, alike(column));
    if (!column.program)
        return column.version.empty() ? "" : fmt::format("of {}{}", column.version, alike(column));
    const ProgramFigures& program = *column.program;
    return fmt::format("{} integer and {} float convolutions, {:.3f} with the binding's {:.3f}{}",
                       program.optimised.integer_convolutions, program.optimised.float_convolutions,
                       std::ranges::min(program.network_ms), std::ranges::min(program.overhead_ms),
                       alike(column));
}

void print_row(const Row& row) {
    for (const Column& column : row.peers)
        fmt::print("{:50} {:8.3f}  {:18} {:8.3f} {:6.2f} {:>6.2f} {:>6.2f} {:>6.2f} {:>5}  {}\n",
                   row.network, std::ranges::min(row.reef), column.peer, column.least(),
                   column.ratio(), quantile(column.ratios, 0.25), quantile(column.ratios, 0.75),
                   std::ranges::min(row.reef) / column.least(),
                   row.peak_share == 0 ? "-" : fmt::format("{:.0f} %", 100 * row.peak_share),
                   remark(row, column));
    for (const LeftOut& out : row.left_out)
        fmt::print("{:50} {:8}  {:18} left out: {}\n", row.network, "", out.peer, out.reason);
}

Json likeness_json(const Likeness& alike) {
    if (!alike.equal)
        return {{"outputs_equal", nullptr},
                {"output_steps_apart", nullptr},
                {"output_mean_steps_apart", nullptr},
                {"output_relative", nullptr}};
    return {{"outputs_equal", *alike.equal},
            {"output_steps_apart", alike.farthest},
            {"output_mean_steps_apart", alike.mean},
            {"output_relative", alike.relative ? Json(*alike.relative) : Json()}};
}

Json column_json(const Row& row, const Column& column) {
    Json entry{{"name", column.peer},
               {"ms", column.least()},
               {"ratio", column.ratio()},
               {"ratio_of_least", std::ranges::min(row.reef) / column.least()},
               {"ratio_lower_quartile", quantile(column.ratios, 0.25)},
               {"ratio_upper_quartile", quantile(column.ratios, 0.75)}};
    if (column.alike) entry.update(likeness_json(*column.alike));
    if (!column.version.empty()) entry["version"] = column.version;
    if (column.program) {
        entry["ms_with_overhead"] = std::ranges::min(column.program->network_ms);
        entry["overhead_ms"] = std::ranges::min(column.program->overhead_ms);
        entry["integer_convolutions"] = column.program->optimised.integer_convolutions;
        entry["float_convolutions"] = column.program->optimised.float_convolutions;
        entry["nodes"] = column.program->optimised.nodes;
    }
    return entry;
}

Json left_out_json(const std::vector<LeftOut>& left_out) {
    Json list = Json::array();
    for (const LeftOut& out : left_out)
        list.push_back({{"name", out.peer}, {"reason", out.reason}});
    return list;
}

Json row_json(const Row& row) {
    Json entry{{"network", row.network}};
    if (!row.problem.empty()) {
        entry["problem"] = row.problem;
        return entry;
    }
    entry["reef_ms"] = std::ranges::min(row.reef);
    entry["products"] = row.products;
    entry["share_of_peak"] = row.peak_share == 0 ? Json() : Json(row.peak_share);
    entry["operators"] = row.operators;
    entry["operators_on_xnnpack"] = row.on_xnnpack;
    entry["best_peer"] = row.best().peer;
    entry["ratio_to_best"] = row.best().ratio();
    entry["left_out"] = left_out_json(row.left_out);
    for (const Column& column : row.peers) entry["peers"].push_back(column_json(row, column));
    return entry;
}

/// Of the networks that were measured.
std::vector<double> ratios_to_best(const std::vector<Row>& rows) {
    std::vector<double> ratios;
    for (const Row& row : rows)
        if (row.problem.empty()) ratios.push_back(row.best().ratio());
    return ratios;
}

}  // namespace

double Column::least() const {
    return std::ranges::min(milliseconds);
}
double Column::ratio() const {
    return quantile(ratios, 0.5);
}
const Column& Row::best() const {
    return *std::ranges::max_element(peers, {}, &Column::ratio);
}

void print_text(const std::vector<Row>& rows, const std::vector<LeftOut>& left_out,
                const Options& options) {
    fmt::print(
        "{} thread{} on {}, {} rounds; least milliseconds, ratio Reef / peer: median of "
        "rounds (quartiles), of the least times; share of the machine's products\n{:50} {:>8}  "
        "{:18} {:>8} {:>6} {:>13} {:>6} {:>5}  {}\n",
        options.threads, options.threads == 1 ? "" : "s", cpu::simd_target(), options.rounds,
        "network", "Reef", "peer", "peer", "ratio", "quartiles", "least", "peak",
        "what the peer ran");
    for (const Row& row : rows) {
        if (row.problem.empty())
            print_row(row);
        else
            fmt::print("{:50} not run: {}\n", row.network, row.problem);
    }
    const std::vector<double> best = ratios_to_best(rows);
    for (const LeftOut& out : left_out) fmt::print("without {}: {}\n", out.peer, out.reason);
    if (!best.empty())
        fmt::print("against the best peer of each network: median ratio {:.2f}, worst {:.2f}\n",
                   quantile(best, 0.5), std::ranges::max(best));
}

void print_json(const std::vector<Row>& rows, const std::vector<LeftOut>& left_out,
                const Options& options) {
    Json networks = Json::array();
    for (const Row& row : rows) networks.push_back(row_json(row));
    const MachineSpeed machine = measure_machine();
    const std::vector<double> best = ratios_to_best(rows);
    const Json document{
        {"schema_version", 5},
        {"target", cpu::simd_target()},
        {"clock_ghz", machine.clock_ghz},
        {"byte_products_ns", machine.byte_products_ns},
        {"float_products_ns", machine.float_products_ns},
        {"threads", options.threads},
        {"rounds", options.rounds},
        {"left_out", left_out_json(left_out)},
        {"median_ratio_to_best", best.empty() ? Json() : Json(quantile(best, 0.5))},
        {"worst_ratio_to_best", best.empty() ? Json() : Json(std::ranges::max(best))},
        {"networks", networks}};
    fmt::print("{}\n", document.dump(2));
}

}  // namespace reef::peers

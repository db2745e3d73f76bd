#include "inputs/traffic_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "inputs/drawn_input.h"
#include "inputs/option_values.h"
#include "reef/runtime/registry.h"

namespace reef::tool {

void add_traffic_options(CLI::App& app, TrafficOptions& options) {
    app.add_option("--input", options.inputs, "Input: .npy, .npz, picture, raw bytes")
        ->type_name("[NAME=]FILE");
    app.add_option("--seed", options.seed, "Seed of random inputs, without --input")
        ->check(whole_number())
        ->capture_default_str();
    app.add_option("--runs", options.runs, "Inferences; the first also loads parameters")
        ->capture_default_str()
        ->check(whole_number(1, 1000000));
    app.add_flag("--standard-clock", options.driver.standard_clock, "Throttle the chip's clock");
    app.add_flag("--multiple-endpoints", options.driver.multiple_endpoints,
                 "Instructions, inputs and parameters have an endpoint each, without headers");
    app.add_option("--firmware", options.driver.firmware, "Firmware for a device that has none")
        ->type_name("FILE");
}

CLI::Validator recording_name() {
    return CLI::Validator(
        [](const std::string& name) {
            return name == "-" ? std::string(
                                     "'-' is no recording: one is two files, FILE and "
                                     "FILE.bin; name the file")
                               : std::string();
        },
        "");
}

chip::TrafficRuns traffic_runs(const model::Model& model, const std::string& path,
                               const TrafficOptions& options) {
    return {.model = model,
            .place = path,
            .inputs = [&options](const model::Subgraph& graph) -> Result<InputBytes> {
                if (options.inputs.empty()) return random_inputs(graph, options.seed);
                return load_inputs(graph, options.inputs);
            },
            .runs = options.runs,
            .driver = options.driver};
}

namespace {

/// In the order in which the chips enrolled; all for an empty name. Errors: bad_argument for none.
Result<std::vector<const chip::TrafficRecorder*>> recorders_of(const std::string& family) {
    const auto all = runtime::Registry::of_process().parts<chip::TrafficRecorder>();
    std::vector<const chip::TrafficRecorder*> chosen;
    std::vector<std::string> families;
    for (const auto* each : all) {
        if (family.empty() || each->family() == family) chosen.push_back(each);
        families.emplace_back(each->family());
    }
    if (!chosen.empty()) return chosen;
    return fail(Cause::bad_argument, fmt::format("no chip '{}' whose traffic is recorded", family),
                {}, "there are " + runtime::in_a_row(families));
}

/// What is wrong, without the file that the whole error names.
std::string in_file(const Error& error, const std::string& path) {
    if (error.place == path) return error.what;
    const bool inside = error.place.starts_with(path + ": ");
    return fmt::format("{}: {}", inside ? error.place.substr(path.size() + 2) : error.place,
                       error.what);
}

}  // namespace

Result<ReadTraffic> read_traffic(const std::string& path, const std::string& family) {
    const auto recorders = REEF_TRY(recorders_of(family));
    std::vector<Error> errors;
    std::string told;
    for (const auto* recorder : recorders) {
        auto traffic = recorder->read(path);
        if (traffic) return ReadTraffic{recorder, std::move(*traffic)};
        told += fmt::format("{}: {}; ", recorder->family(), in_file(traffic.error(), path));
        errors.push_back(std::move(traffic.error()));
    }
    const Error& first = errors.front();
    if (std::ranges::all_of(errors, [&](const Error& one) {
            return one.cause == first.cause && one.what == first.what && one.place == first.place;
        }))
        return std::unexpected(first);
    return fail(Cause::bad_input, "no chip's recorder reads it", path,
                told + "--chip FAMILY asks one alone");
}

}  // namespace reef::tool

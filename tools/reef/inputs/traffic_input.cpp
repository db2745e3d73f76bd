#include "inputs/traffic_input.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "inputs/drawn_input.h"
#include "reef/runtime/registry.h"

namespace reef::tool {

void add_traffic_options(CLI::App& app, TrafficOptions& options) {
    app.add_option("--input", options.inputs, "Input: .npy, .npz, picture, raw bytes")
        ->type_name("[NAME=]FILE");
    app.add_option("--seed", options.seed, "Seed of random inputs, without --input")
        ->capture_default_str();
    app.add_option("--runs", options.runs, "Inferences; the first also loads parameters")
        ->capture_default_str()
        ->check(CLI::Range(1U, 1000000U));
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

Result<const chip::TrafficRecorder*> recorder_of(const std::string& family) {
    std::vector<std::string> families;
    for (const auto* each : runtime::Registry::of_process().parts<chip::TrafficRecorder>()) {
        if (family.empty() || each->family() == family) return each;
        families.emplace_back(each->family());
    }
    return fail(Cause::bad_argument, fmt::format("no chip '{}' whose traffic is recorded", family),
                {}, "there are " + runtime::in_a_row(families));
}

}  // namespace reef::tool

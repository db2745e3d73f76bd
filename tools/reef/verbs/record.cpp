// reef record: what a model's runs and its device say to each other, as a file for a bug report.
#include <CLI/CLI.hpp>
#include <memory>

#include "inputs/chips.h"
#include "inputs/traffic_input.h"
#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/model/tflite.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct RecordOptions {
    std::string model, out;
    std::string device;  ///< empty: the one that the chip's recorder records
    TrafficOptions traffic;
    bool json = false;
};

std::string summary(const std::string& path, const chip::Traffic& traffic) {
    return fmt::format("{}: {} items, and {} in {}.bin", path, traffic.items(),
                       bytes_text(static_cast<std::int64_t>(traffic.payload_bytes())), path);
}

Json document_of(const RecordOptions& options, const std::string& device,
                 const chip::Traffic& traffic) {
    Json document = json_document("record");
    document["model"] = options.model;
    document["device"] = device;
    document["output"] = options.out;
    document["payload"] = options.out + ".bin";
    document["items"] = traffic.items();
    document["payload_bytes"] = traffic.payload_bytes();
    return document;
}

/// What led to a failure is what a bug report needs; a device that was never reached leaves nothing
/// that is worth another recording's place.
void keep_failed(const std::string& path, const chip::Traffic& traffic) {
    const auto worth = traffic.holds_transfers();
    if (!worth || !*worth) return;
    const SignalsWait wait;
    if (const auto written = traffic.write(path); written) {
        print_diagnostic("record", "up to the failure: " + summary(path, traffic));
    } else {
        print_diagnostic("record", "not kept: " + written.error().message());
    }
}

Result<Exit> record(const RecordOptions& options, Console& console) {
    std::vector<std::string> read = options.traffic.inputs;
    read.push_back(options.model);
    REEF_CHECK(check_output_file(options.out, read));
    REEF_CHECK(check_output_file(options.out + ".bin", read));
    const auto model = REEF_TRY(model::load_tflite(options.model));
    if (!is_compiled(model))
        return fail(Cause::bad_input, fmt::format("not compiled for the {}", chip_names()),
                    options.model, "compile it first");
    const auto* recorder =
        REEF_TRY(in_place(part_for<chip::TrafficRecorder>(model, "reef record"), options.model));
    const std::string device =
        options.device.empty() ? std::string(recorder->device()) : options.device;
    auto recorded = recorder->record(device, traffic_runs(model, options.model, options.traffic));
    if (!recorded) return std::unexpected(std::move(recorded.error()));
    if (!recorded->done) {
        keep_failed(options.out, *recorded->traffic);
        return std::unexpected(std::move(recorded->done.error()));
    }
    {
        const SignalsWait wait;
        REEF_CHECK(recorded->traffic->write(options.out));
    }
    if (options.json) {
        print_json(console, document_of(options, device, *recorded->traffic));
    } else {
        console.print("{}\n", summary(options.out, *recorded->traffic));
    }
    return Exit::ok;
}

/// Of chips with a recorder.
std::string default_devices() {
    std::vector<std::string> devices;
    for (const auto* recorder : runtime::Registry::of_process().parts<chip::TrafficRecorder>())
        devices.emplace_back(recorder->device());
    return runtime::in_a_row(devices, "or");
}

std::string recorded_devices() {
    const auto& registry = runtime::Registry::of_process();
    return fmt::format("{}, with a port or name behind it where it has one (default: {})",
                       runtime::in_a_row(registry.devices_with(runtime::Capability::record), "or"),
                       default_devices());
}

}  // namespace

Action add_record(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    app.add_option("MODEL", options->model, fmt::format("Model compiled for the {}", chip_names()))
        ->required();
    app.add_option("-o,--output,--out", options->out,
                   "Recording to write; its payloads go to FILE.bin")
        ->required()
        ->type_name("FILE")
        ->check(recording_name());
    app.add_option("--device", options->device, recorded_devices())->type_name("DEVICE");
    add_traffic_options(app, options->traffic);
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(with_example_chip(
        "The recording holds the model's program and weights and the inputs. It is kept when a run "
        "fails,\ntoo, up to the failure; when no device is reached, nothing is written.\n"
        "Example:\n"
        "  reef record net_CHIP.tflite --input cat.bmp --output traffic.log"));
    return [options](Console& console) { return record(*options, console); };
}

}  // namespace reef::tool

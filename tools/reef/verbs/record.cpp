// reef record: a model's USB traffic as a file for a bug report.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "outputs/file_output.h"
#include "outputs/text_table.h"
#include "reef/edgetpu/usb/recording.h"
#include "usb/chip_runs.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct RecordOptions {
    std::string model, out;
    std::string device = "edgetpu:usb";
    ChipRunOptions runs;
};

std::string summary(const std::string& path, const edgetpu::usb::Recording& recording) {
    return fmt::format("{}: {} items, and {} in {}.bin", path,
                       std::ranges::count(recording.text, '\n'),
                       bytes_text(static_cast<std::int64_t>(recording.data.size())), path);
}

/// What led to a failure is what a bug report needs; a stick that was never reached leaves nothing
/// that is worth another recording's place.
void keep_failed(const std::string& path, const edgetpu::usb::Recording& recording) {
    const auto worth = edgetpu::usb::holds_transfers(recording);
    if (!worth || !*worth) return;
    if (const auto written = edgetpu::usb::write_recording(path, recording); written) {
        print_diagnostic("record", "up to the failure: " + summary(path, recording));
    } else {
        print_diagnostic("record", "not kept: " + written.error().message());
    }
}

Result<Exit> record(const RecordOptions& options, Console& console) {
    std::vector<std::string> read = options.runs.inputs;
    read.push_back(options.model);
    REEF_CHECK(check_output_file(options.out, read));
    REEF_CHECK(check_output_file(options.out + ".bin", read));
    ChipModel model = REEF_TRY(load_chip_model(options.model, options.runs));
    std::string port;
    const auto bus = REEF_TRY(bus_named(options.device, model, port));
    const auto recorder = std::make_shared<edgetpu::usb::RecordingBus>(bus);
    const auto done = run_on_chip(recorder, port, model, options.runs);
    const edgetpu::usb::Recording recording = recorder->recording();
    if (!done) {
        keep_failed(options.out, recording);
        return std::unexpected(done.error());
    }
    REEF_CHECK(edgetpu::usb::write_recording(options.out, recording));
    console.print("{}\n", summary(options.out, recording));
    return Exit::ok;
}

}  // namespace

Action add_record(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    app.add_option("MODEL", options->model, "Model compiled for the Edge TPU")->required();
    app.add_option("-o,--output,--out", options->out,
                   "Recording to write; its payloads go to FILE.bin")
        ->required()
        ->type_name("FILE")
        ->check(recording_name());
    app.add_option(
           "--device", options->device,
           "edgetpu:usb, edgetpu:usb:PORT, edgetpu:sim, or edgetpu:null, which computes nothing")
        ->capture_default_str();
    add_chip_run_options(app, options->runs);
    app.footer(
        "The recording holds the model's program and weights and the inputs. It is kept when a run "
        "fails,\ntoo, up to the failure; when no stick is reached, nothing is written.\n"
        "Example:\n"
        "  reef record net_edgetpu.tflite --input cat.bmp --output traffic.log");
    return [options](Console& console) { return record(*options, console); };
}

}  // namespace reef::tool

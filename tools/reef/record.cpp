// reef record: a model's USB traffic as a file for a bug report.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "chip_runs.h"
#include "reef/edgetpu/usb/recording.h"
#include "text_table.h"
#include "verb.h"

namespace reef::tool {
namespace {

struct RecordOptions {
    std::string model, out;
    std::string device = "edgetpu:usb";
    ChipRunOptions runs;
};

Result<Exit> record(const RecordOptions& options, Console& console) {
    const ChipModel model = REEF_TRY(load_chip_model(options.model, options.runs));
    std::string port;
    const auto bus = REEF_TRY(bus_named(options.device, model, port));
    const auto recorder = std::make_shared<edgetpu::usb::RecordingBus>(bus);
    const auto done = run_on_chip(recorder, port, model, options.runs);
    // What led to a failure is what a bug report needs.
    const edgetpu::usb::Recording recording = recorder->recording();
    REEF_CHECK(edgetpu::usb::write_recording(options.out, recording));
    if (!done) return std::unexpected(done.error());
    console.print("{}: {} items, and {} in {}.bin\n", options.out,
                  std::ranges::count(recording.text, '\n'),
                  bytes_text(static_cast<std::int64_t>(recording.data.size())), options.out);
    return Exit::ok;
}

}  // namespace

Action add_record(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    app.add_option("MODEL", options->model, "Model compiled for the Edge TPU")->required();
    app.add_option("--out", options->out, "Recording to write; its payloads go to FILE.bin")
        ->required()
        ->type_name("FILE");
    app.add_option("--device", options->device,
                   "edgetpu:usb, edgetpu:usb:PORT, or edgetpu:null, which computes nothing")
        ->capture_default_str();
    add_chip_run_options(app, options->runs);
    app.footer(
        "The recording holds the model's program and weights and the inputs; it is written when "
        "the\nruns fail, too.\n"
        "Example:\n"
        "  reef record net_edgetpu.tflite --input cat.bmp --out traffic.log");
    return [options](Console& console) { return record(*options, console); };
}

}  // namespace reef::tool

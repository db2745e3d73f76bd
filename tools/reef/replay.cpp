// reef replay: a recording of USB traffic as a device, as text, or against another.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "chip_runs.h"
#include "json_output.h"
#include "reef/edgetpu/usb/recording.h"
#include "verb.h"

namespace reef::tool {
namespace {

struct ReplayOptions {
    std::string recording, model, against;
    bool json = false;
    ChipRunOptions runs;
};

using Lines = std::vector<std::string>;

Result<Lines> view_of(const std::string& path) {
    const auto recording = REEF_TRY(edgetpu::usb::read_recording(path));
    return in_place(edgetpu::usb::wire_view(recording), path);
}

Exit compare(const Lines& a, const Lines& b, Console& console) {
    const std::string none;
    std::size_t different = 0;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const std::string& left = i < a.size() ? a[i] : none;
        const std::string& right = i < b.size() ? b[i] : none;
        if (left == right) continue;
        ++different;
        console.print("item {}\n  - {}\n  + {}\n", i + 1, printable(left), printable(right));
    }
    console.print("{} of {} items differ\n", different, std::max(a.size(), b.size()));
    return different == 0 ? Exit::ok : Exit::failed;
}

Result<Exit> replay(const ReplayOptions& options, Console& console) {
    if (!options.model.empty()) {
        auto recording = REEF_TRY(edgetpu::usb::read_recording(options.recording));
        const auto bus =
            REEF_TRY(in_place(edgetpu::usb::replay_bus(std::move(recording)), options.recording));
        const ChipModel model = REEF_TRY(load_chip_model(options.model, options.runs));
        REEF_CHECK(in_place(run_on_chip(bus, {}, model, options.runs), options.recording));
        console.print("{}: the driver did what was recorded\n", options.recording);
        return Exit::ok;
    }
    const Lines lines = REEF_TRY(view_of(options.recording));
    if (!options.against.empty()) {
        return compare(lines, REEF_TRY(view_of(options.against)), console);
    }
    if (options.json) {
        Json document = json_document("replay");
        document["items"] = lines;
        print_json(console, document);
    } else {
        for (const std::string& line : lines) console.print("{}\n", printable(line));
    }
    return Exit::ok;
}

}  // namespace

Action add_replay(CLI::App& app) {
    auto options = std::make_shared<ReplayOptions>();
    app.add_option("RECORDING", options->recording, "Recording, with its payloads in FILE.bin")
        ->required();
    auto* model = app.add_option("MODEL", options->model,
                                 "Run this model against the recording: the first transaction that "
                                 "differs is an error that names both");
    auto* against = app.add_option("--against", options->against, "Compare with another recording")
                        ->type_name("FILE")
                        ->excludes(model);
    app.add_flag("--json", options->json, "Print JSON")->excludes(model)->excludes(against);
    add_chip_run_options(app, options->runs);
    app.footer(
        "Without MODEL, prints or compares what was sent and received, without its timing; "
        "payloads "
        "by\ntheir SHA-256, addresses in instructions zeroed. Exit code 1 when something differs.\n"
        "Examples:\n"
        "  reef replay traffic.log\n"
        "  reef replay traffic.log --against other.log\n"
        "  reef replay traffic.log net_edgetpu.tflite --input cat.bmp");
    return [options](Console& console) { return replay(*options, console); };
}

}  // namespace reef::tool

// reef replay: a recording of USB traffic as a device, as text, or against another.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "outputs/json_output.h"
#include "reef/edgetpu/usb/recording.h"
#include "usb/chip_runs.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct ReplayOptions {
    std::string recording, model, against;
    bool registers = false;
    bool json = false;
    ChipRunOptions runs;
};

using Lines = std::vector<std::string>;

Result<Lines> view_of(const std::string& path) {
    const auto recording = REEF_TRY(edgetpu::usb::read_recording(path));
    return in_place(edgetpu::usb::wire_view(recording), path);
}

struct Difference {
    std::size_t item;  ///< from 1
    std::string left, right;
};

/// Item by item; what one recording has and the other has not is a difference to nothing.
std::vector<Difference> differences(const Lines& a, const Lines& b) {
    const std::string none;
    std::vector<Difference> all;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const std::string& left = i < a.size() ? a[i] : none;
        const std::string& right = i < b.size() ? b[i] : none;
        if (left != right) all.push_back({i + 1, left, right});
    }
    return all;
}

Exit compare(const Lines& a, const Lines& b, bool json, Console& console) {
    const auto all = differences(a, b);
    const std::size_t items = std::max(a.size(), b.size());
    if (json) {
        Json document = json_document("replay");
        document["compared"] = items;
        document["differences"] = Json::array();
        for (const Difference& each : all) {
            document["differences"].push_back(
                {{"item", each.item}, {"recording", each.left}, {"against", each.right}});
        }
        print_json(console, document);
    } else {
        for (const Difference& each : all) {
            console.print("item {}\n  - {}\n  + {}\n", each.item, printable(each.left),
                          printable(each.right));
        }
        console.print("{} of {} items differ\n", all.size(), items);
    }
    return all.empty() ? Exit::ok : Exit::failed;
}

Exit show(const Lines& lines, bool json, Console& console) {
    if (json) {
        Json document = json_document("replay");
        document["items"] = lines;
        print_json(console, document);
    } else {
        for (const std::string& line : lines) console.print("{}\n", printable(line));
    }
    return Exit::ok;
}

/// In JSON a run that differs or fails is a result, with the error; exit code 1 all the same.
Result<Exit> run(const ReplayOptions& options, Console& console) {
    auto recording = REEF_TRY(edgetpu::usb::read_recording(options.recording));
    const auto bus =
        REEF_TRY(in_place(edgetpu::usb::replay_bus(std::move(recording)), options.recording));
    ChipModel model = REEF_TRY(load_chip_model(options.model, options.runs));
    const auto done = in_place(run_on_chip(bus, {}, model, options.runs), options.recording);
    if (options.json) {
        Json document = json_document("replay");
        document["model"] = options.model;
        document["runs"] = options.runs.runs;
        document["as_recorded"] = done.has_value();
        document["error"] = done ? Json() : Json(done.error().message());
        print_json(console, document);
        return done ? Exit::ok : Exit::failed;
    }
    if (!done) return std::unexpected(done.error());
    console.print("{}: the driver did what was recorded\n", options.recording);
    return Exit::ok;
}

using Transfers = std::vector<edgetpu::usb::RegisterTransfer>;

/// How many of both are the same: in what they do, and in their values, too.
struct Agreement {
    std::size_t recorded = 0, driven = 0, same = 0, same_values = 0;
    [[nodiscard]] bool whole() const { return same_values == recorded && driven == recorded; }
};

Agreement agreement(const Transfers& recorded, const Transfers& driven) {
    Agreement out{.recorded = recorded.size(), .driven = driven.size()};
    for (std::size_t i = 0; i < std::min(recorded.size(), driven.size()); ++i) {
        const auto &a = recorded[i], &b = driven[i];
        const bool same = a.to_host == b.to_host && a.offset == b.offset && a.bits == b.bits;
        out.same += same;
        out.same_values += same && a.value == b.value;
    }
    return out;
}

/// The driver's start and stop against those of the recording.
Result<Exit> compare_registers(const ReplayOptions& options, Console& console) {
    using namespace edgetpu::usb;
    const Recording recording = without_data_transfers(REEF_TRY(read_recording(options.recording)));
    const Transfers recorded = REEF_TRY(in_place(register_transfers(recording), options.recording));
    const auto driver = std::make_shared<RecordingBus>(
        REEF_TRY(in_place(replay_bus(recording), options.recording)));
    const auto done = in_place(start_and_stop(driver, options.runs), options.recording);
    const Agreement agreed = agreement(recorded, REEF_TRY(register_transfers(driver->recording())));
    if (options.json) {
        Json document = json_document("replay");
        document["register_transfers"] = {{"recorded", agreed.recorded},
                                          {"driver", agreed.driven},
                                          {"same", agreed.same},
                                          {"same_values", agreed.same_values}};
        document["error"] = done ? Json() : Json(done.error().message());
        print_json(console, document);
    } else {
        console.print(
            "{}: {} register transfers, {} by the driver: {} the same in order, direction, address "
            "and width, {} of them in value\n",
            options.recording, agreed.recorded, agreed.driven, agreed.same, agreed.same_values);
        // A difference is an answer, whatever it does to the driver.
        if (!done) print_diagnostic("replay", done.error().message());
    }
    return done && agreed.whole() ? Exit::ok : Exit::failed;
}

Result<Exit> replay(const ReplayOptions& options, Console& console) {
    if (options.registers) return compare_registers(options, console);
    if (!options.model.empty()) return run(options, console);
    const Lines lines = REEF_TRY(view_of(options.recording));
    if (options.against.empty()) return show(lines, options.json, console);
    return compare(lines, REEF_TRY(view_of(options.against)), options.json, console);
}

}  // namespace

Action add_replay(CLI::App& app) {
    auto options = std::make_shared<ReplayOptions>();
    app.add_option("RECORDING", options->recording,
                   "Recording, with its payloads in FILE.bin; or a capture of usbmon as text")
        ->required()
        ->check(recording_name());
    auto* model = app.add_option("MODEL", options->model,
                                 "Run this model against the recording: the first transaction that "
                                 "differs is an error that names both");
    auto* against = app.add_option("--against", options->against, "Compare with another recording")
                        ->type_name("FILE")
                        ->check(recording_name())
                        ->excludes(model);
    app.add_flag("--registers", options->registers,
                 "Start and stop the driver against the recording, without its data, and count the "
                 "register transfers that are the same")
        ->excludes(model)
        ->excludes(against);
    app.add_flag("--json", options->json, "Print JSON");
    add_chip_run_options(app, options->runs);
    app.footer(
        "Without MODEL, prints or compares what was sent and received, without its timing; "
        "payloads "
        "by\ntheir SHA-256, addresses in instructions zeroed. Exit code 1 when something differs.\n"
        "Examples:\n"
        "  reef replay traffic.log\n"
        "  reef replay traffic.log --against other.log\n"
        "  reef replay traffic.log net_edgetpu.tflite --input cat.bmp\n"
        "  reef replay capture.usbmon.txt --registers");
    return [options](Console& console) { return replay(*options, console); };
}

}  // namespace reef::tool

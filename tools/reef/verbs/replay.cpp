// reef replay: a recording of a chip's traffic as a device, as text, or against another.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "inputs/chips.h"
#include "inputs/traffic_input.h"
#include "outputs/json_output.h"
#include "reef/model/tflite.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct ReplayOptions {
    std::string recording, model, against, chip;
    bool registers = false;
    bool json = false;
    TrafficOptions traffic;
};

using Items = std::vector<std::string>;

/// With the file as place of what is wrong in it, and what it may come from.
template <typename T>
Result<T> of_recording(Result<T> result, const std::string& path) {
    if (result) return result;
    Error error = std::move(result.error()).in(path);
    if (error.cause == Cause::bad_input && error.hint.empty())
        error.hint = fmt::format(
            "{} and {}.bin are not as one recording wrote them: one was cut "
            "off or is another's; record again",
            path, path);
    return std::unexpected(std::move(error));
}

Result<Items> view_of(const chip::Traffic& traffic, const std::string& path) {
    return of_recording(traffic.view(), path);
}

struct Difference {
    std::size_t item;  ///< from 1
    std::string left, right;
};

/// Item by item; what one recording has and the other has not is a difference to nothing.
std::vector<Difference> differences(const Items& a, const Items& b) {
    const std::string none;
    std::vector<Difference> all;
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const std::string& left = i < a.size() ? a[i] : none;
        const std::string& right = i < b.size() ? b[i] : none;
        if (left != right) all.push_back({i + 1, left, right});
    }
    return all;
}

Exit compare(const Items& a, const Items& b, bool json, Console& console) {
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

Exit show(const Items& lines, bool json, Console& console) {
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
    const auto model = REEF_TRY(model::load_tflite(options.model));
    const auto read = REEF_TRY(read_traffic(options.recording, options.chip));
    if (const auto family = family_of(model); !family.empty() && family != read.recorder->family())
        return fail(Cause::bad_input,
                    fmt::format("a recording of '{}', and the model is compiled for '{}'",
                                read.recorder->family(), family),
                    options.recording, "give the model that was recorded");
    // A recording may be read to its end only where its transfers are asked for.
    (void)REEF_TRY(of_recording(read.traffic->holds_transfers(), options.recording));
    const auto replayed =
        REEF_TRY(read.traffic->replay(traffic_runs(model, options.model, options.traffic)));
    const Status done = in_place(Status(replayed.as_recorded), options.recording);
    if (options.json) {
        Json document = json_document("replay");
        document["model"] = options.model;
        document["runs"] = options.traffic.runs;
        document["as_recorded"] = done.has_value();
        document["error"] = done ? Json() : Json(done.error().message());
        print_json(console, document);
        return done ? Exit::ok : Exit::failed;
    }
    if (!done) return std::unexpected(done.error());
    console.print("{}: the driver did what was recorded\n", options.recording);
    return Exit::ok;
}

/// The driver's start and stop against those of the recording.
Result<Exit> compare_registers(const ReplayOptions& options, Console& console) {
    const auto read = REEF_TRY(read_traffic(options.recording, options.chip));
    const chip::StartAgreement agreed =
        REEF_TRY(of_recording(read.traffic->start(options.traffic.driver), options.recording));
    const Status done = in_place(Status(agreed.done), options.recording);
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
    return agreed.whole() ? Exit::ok : Exit::failed;
}

Result<Exit> replay(const ReplayOptions& options, Console& console) {
    if (options.registers) return compare_registers(options, console);
    if (!options.model.empty()) return run(options, console);
    const auto read = REEF_TRY(read_traffic(options.recording, options.chip));
    const Items items = REEF_TRY(view_of(*read.traffic, options.recording));
    if (options.against.empty()) return show(items, options.json, console);
    const auto other = REEF_TRY(read.recorder->read(options.against));
    return compare(items, REEF_TRY(view_of(*other, options.against)), options.json, console);
}

}  // namespace

Action add_replay(CLI::App& app) {
    auto options = std::make_shared<ReplayOptions>();
    app.add_option("RECORDING", options->recording,
                   "Recording, with its payloads in FILE.bin; or a capture as text that "
                   "the chip's recorder reads")
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
    app.add_option("--chip", options->chip, "Whose traffic the recording holds")
        ->type_name("FAMILY");
    add_traffic_options(app, options->traffic);
    app.footer(with_example_chip(
        "Without MODEL, prints or compares what was sent and received, without its timing; "
        "payloads "
        "by\ntheir SHA-256, addresses in instructions zeroed. Exit code 1 when something differs.\n"
        "Examples:\n"
        "  reef replay traffic.log\n"
        "  reef replay traffic.log --against other.log\n"
        "  reef replay traffic.log net_CHIP.tflite --input cat.bmp\n"
        "  reef replay capture.txt --registers"));
    return [options](Console& console) { return replay(*options, console); };
}

}  // namespace reef::tool

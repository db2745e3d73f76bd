// reef inspect: what a model is made of, what it costs, whether and how the CPU device runs it.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "inputs/chips.h"
#include "inputs/file_kinds.h"
#include "inspect/file_text.h"
#include "inspect/print.h"
#include "reef/base/file.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct InspectOptions {
    std::vector<std::string> models;
    InspectDetail detail;
    bool json = false;
};

/// Prints the text, or gives the JSON.
Result<Json> inspect_one(const std::string& path, const InspectOptions& options, Console& console) {
    // Of the weights only the sizes are looked at.
    const SharedBytes file = REEF_TRY(read_file(path, FileAccess::scattered));
    if (const auto* inspector = kind_of<chip::FileInspector>(file.view())) {
        const auto detail = options.detail.all ? chip::Detail::all : chip::Detail::glance;
        const auto report = REEF_TRY(
            in_place(inspector->inspect(file, options.json ? chip::Detail::all : detail), path));
        if (!options.json) print_file_report(console, path, file.size(), inspector->kind(), report);
        return file_report_json("inspect", path, file.size(), inspector->kind(), report);
    }
    const ModelReport report = REEF_TRY(report_on(path, file));
    if (!options.json) print_inspect_text(console, report, options.detail);
    return options.json ? inspect_json(report) : Json();
}

/// With --json, several models are members of one document. A file that cannot be reported on hides
/// none of the others.
Result<Exit> inspect_several(const InspectOptions& options, Console& console) {
    Json all = json_document("inspect");
    all["models"] = Json::array();
    Exit end = Exit::ok;
    for (const std::string& path : options.models) {
        if (!options.json && &path != &options.models.front()) console.print("\n");
        auto json = inspect_one(path, options, console);
        if (!json) {
            REEF_CHECK(console.flush());
            print_diagnostic("inspect", in_flags(json.error().message()));
            end = Exit::failed;
        } else if (options.json) {
            all["models"].push_back(std::move(*json));
        }
    }
    if (options.json) print_json(console, all);
    return end;
}

Result<Exit> inspect(const InspectOptions& options, Console& console) {
    if (options.models.size() > 1) return inspect_several(options, console);
    const auto json = REEF_TRY(inspect_one(options.models.front(), options, console));
    if (options.json) print_json(console, json);
    return Exit::ok;
}

}  // namespace

Action add_inspect(CLI::App& app) {
    auto options = std::make_shared<InspectOptions>();
    app.add_option("MODEL", options->models,
                   "A .tflite file, plain or compiled, or a file of another kind that is known; - "
                   "reads standard input. Several are reported on one after the other")
        ->required();
    app.add_flag("--all", options->detail.all, "List every operator");
    app.add_flag("--tensors", options->detail.tensors, "List the tensors");
    app.add_flag("--json", options->json, "Print JSON, with all operators and tensors");
    app.footer(with_example_chip(
        "Examples:\n"
        "  reef inspect mobilenet.tflite\n"
        "  reef inspect mobilenet.tflite --all --tensors\n"
        "  reef inspect mobilenet.tflite --json | jq '.subgraphs[0].macs'\n"
        "  reef inspect net_CHIP.tflite --json | jq '.CHIP.packages[0].parameter_memory'"));
    return [options](Console& console) -> Result<Exit> { return inspect(*options, console); };
}

}  // namespace reef::tool

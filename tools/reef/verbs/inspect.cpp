// reef inspect: what a model is made of, what it costs, whether and how the CPU device runs it.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "inputs/chips.h"
#include "inspect/print.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct InspectOptions {
    std::vector<std::string> models;
    InspectDetail detail;
    bool json = false;
};

/// With --json, several models are members of one document.
Result<Exit> inspect(const InspectOptions& options, Console& console) {
    Json all = json_document("inspect");
    all["models"] = Json::array();
    for (const std::string& path : options.models) {
        const ModelReport report = REEF_TRY(report_on(path));
        if (options.json && options.models.size() == 1) {
            print_json(console, inspect_json(report));
        } else if (options.json) {
            all["models"].push_back(inspect_json(report));
        } else {
            if (&path != &options.models.front()) console.print("\n");
            print_inspect_text(console, report, options.detail);
        }
    }
    if (options.json && options.models.size() > 1) print_json(console, all);
    return Exit::ok;
}

}  // namespace

Action add_inspect(CLI::App& app) {
    auto options = std::make_shared<InspectOptions>();
    app.add_option("MODEL", options->models,
                   "A .tflite file, plain or compiled; - reads standard input. Several are "
                   "reported on one after the other")
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

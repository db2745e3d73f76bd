// reef inspect: what a model is made of, what it costs, whether and how the CPU device runs it.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "inspect/print.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct InspectOptions {
    std::string model;
    InspectDetail detail;
    bool json = false;
};

}  // namespace

Action add_inspect(CLI::App& app) {
    auto options = std::make_shared<InspectOptions>();
    app.add_option("MODEL", options->model,
                   "A .tflite file, plain or compiled; - reads standard input")
        ->required();
    app.add_flag("--all", options->detail.all, "List every operator");
    app.add_flag("--tensors", options->detail.tensors, "List the tensors");
    app.add_flag("--json", options->json, "Print JSON, with all operators and tensors");
    app.footer(
        "Examples:\n"
        "  reef inspect mobilenet.tflite\n"
        "  reef inspect mobilenet.tflite --all --tensors\n"
        "  reef inspect mobilenet.tflite --json | jq '.subgraphs[0].macs'\n"
        "  reef inspect net_edgetpu.tflite --json | jq '.edgetpu.packages[0].parameter_memory'");
    return [options](Console& console) -> Result<Exit> {
        const ModelReport report = REEF_TRY(report_on(options->model));
        if (options->json) {
            print_inspect_json(console, report);
        } else {
            print_inspect_text(console, report, options->detail);
        }
        return Exit::ok;
    };
}

}  // namespace reef::tool

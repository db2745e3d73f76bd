// reef retarget: a compiled program re-emitted for other weights, scales and zero points.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "check/program_check.h"
#include "inputs/chips.h"
#include "inputs/option_values.h"
#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/stages.h"
#include "outputs/text_table.h"
#include "reef/base/file.h"
#include "reef/chip/retargeter.h"
#include "reef/model/tflite.h"
#include "reef/runtime/program_streams.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct RetargetVerbOptions {
    std::string compiled;
    std::string target;
    std::string source;
    std::string out;
    std::optional<std::uint64_t> token;
    bool json = false;
};

/// A program that breaks a rule which the compiled one keeps is given to nobody.
Status check_written(const SharedBytes& compiled, const SharedBytes& retargeted) {
    return check_rewritten(REEF_TRY(runtime::program_streams_of(compiled)),
                           REEF_TRY(runtime::program_streams_of(retargeted)));
}

Result<Exit> retarget_verb(const RetargetVerbOptions& options, Console& console) {
    REEF_CHECK(check_output_file(options.out, {options.compiled, options.target, options.source}));
    REEF_CHECK(check_apart_from_json(options.out, options.json));
    const SharedBytes file = REEF_TRY(read_file(options.compiled));
    const auto compiled = REEF_TRY(in_place(model::read_tflite(file), options.compiled));
    const auto target = REEF_TRY(model::load_tflite(options.target));
    std::optional<model::Model> source;
    if (!options.source.empty()) source = REEF_TRY(model::load_tflite(options.source));
    const auto* retargeter =
        REEF_TRY(in_place(part_for<chip::Retargeter>(compiled, "reef retarget"), options.compiled));
    Stages stages(1);
    stages.begin("fitting the program to the model");
    auto result = retargeter->retarget({.compiled = compiled,
                                        .target = target,
                                        .source = source ? &*source : nullptr,
                                        .token = options.token,
                                        .source_name = options.source,
                                        .target_name = options.target});
    stages.end();
    if (!result) return std::unexpected(of_file(std::move(result.error())));
    const auto bytes = REEF_TRY(in_place(model::tflite_file(result->model), options.out));
    REEF_CHECK(in_place(check_written(file, bytes), options.out));
    REEF_CHECK(write_output(options.out, bytes.view()));
    if (options.json) {
        Json document = json_document("retarget");
        document["model"] = options.compiled;
        document["target"] = options.target;
        document["output"] = options.out;
        document["bytes"] = bytes.size();
        document["changed_instructions"] = result->changed_instructions;
        document["changed_parameter_bytes"] = result->changed_parameter_bytes;
        if (result->first_operator) document["first_operator"] = *result->first_operator;
        print_json(console, document);
    } else if (options.out != "-") {
        console.print("{}: {} and {} of parameters changed\n", printable(options.out),
                      plural(result->changed_instructions, "instruction"),
                      plural(result->changed_parameter_bytes, "byte"));
        if (result->first_operator)
            console.print("a segment: it computes {} from operator {} on\n",
                          printable(options.target), *result->first_operator);
    }
    return Exit::ok;
}

}  // namespace

Action add_retarget(CLI::App& app) {
    auto options = std::make_shared<RetargetVerbOptions>();
    app.add_option("COMPILED", options->compiled,
                   fmt::format("A model that the {} compiler wrote", chip_names()))
        ->required();
    app.add_option("--to", options->target,
                   "The plain model to compute: the same architecture, other numbers; of a "
                   "segment, the whole one")
        ->type_name("PLAIN")
        ->required();
    app.add_option("--like", options->source,
                   "The plain model that COMPILED was made from, where the program alone leaves "
                   "open which operator an instruction computes")
        ->type_name("PLAIN");
    app.add_option("-o,--output", options->out, "The compiled model to write")
        ->type_name("FILE")
        ->required();
    app.add_option("--token", options->token,
                   "Caching token, decimal or 0x... (default: made from the "
                   "parameters)")
        ->type_name("N")
        ->check(whole_number());
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(with_example_chip(
        "Example:\n"
        "  reef retarget red_CHIP.tflite --to green.tflite -o green_CHIP.tflite\n"
        "Refuses, with the reason, when the architectures differ or the program cannot hold what "
        "the model needs,\nand when reef disasm --check finds in the result what it does not find "
        "in COMPILED.\n"
        "Without --like, the program's data flow says which instruction computes which operator, "
        "and "
        "so\nit does with --like where operators are quantised alike; the largest programs take "
        "seconds."));
    return [options](Console& console) { return retarget_verb(*options, console); };
}

}  // namespace reef::tool

// reef weights: the parameters of a compiled model, by the names of its plain source.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "inputs/chips.h"
#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/stages.h"
#include "outputs/text_table.h"
#include "reef/base/file.h"
#include "reef/chip/parameters.h"
#include "reef/model/tflite.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct WeightsOptions {
    std::string compiled;
    std::string plain;
    std::string from;
    std::string out;
    bool json = false;
};

Result<std::unique_ptr<chip::Parameters>> open(const WeightsOptions& options) {
    Stages stages(1);
    stages.begin("finding the parameters");
    auto compiled = REEF_TRY(model::load_tflite(options.compiled));
    auto plain = REEF_TRY(model::load_tflite(options.plain));
    const auto* reader = REEF_TRY(
        in_place(part_for<chip::ParameterReader>(compiled, "reef weights"), options.compiled));
    if (is_compiled(plain))
        return fail(Cause::bad_input, "the model to compare with is compiled", options.plain,
                    "give the plain model that the compiler read");
    return in_place(of_file(reader->open(std::move(plain), std::move(compiled))), options.compiled);
}

Status check_output(const WeightsOptions& options) {
    REEF_CHECK(check_output_file(options.out, {options.compiled, options.plain, options.from}));
    return check_apart_from_json(options.out, options.json);
}

Json document_of(std::string_view verb, const WeightsOptions& options, const NamedArrays& arrays) {
    Json document = json_document(verb);
    document["model"] = options.compiled;
    document["output"] = options.out;
    document["arrays"] = Json::array();
    for (const auto& [name, array] : arrays)
        document["arrays"].push_back(
            {{"name", name}, {"type", name_of(array.type)}, {"shape", array.shape}});
    return document;
}

Result<Exit> get_verb(const WeightsOptions& options, Console& console) {
    REEF_CHECK(check_output(options));
    const auto parameters = REEF_TRY(open(options));
    const NamedArrays arrays = REEF_TRY(in_place(parameters->get(), options.compiled));
    const auto file = REEF_TRY(write_npz(arrays, Compression::deflated));
    REEF_CHECK(write_output(options.out, file));
    if (options.json) {
        print_json(console, document_of("weights get", options, arrays));
    } else if (options.out != "-") {
        console.print("{}: {}\n", printable(options.out), plural(arrays.size(), "array"));
    }
    return Exit::ok;
}

Result<Exit> set_verb(const WeightsOptions& options, Console& console) {
    REEF_CHECK(check_output(options));
    const auto parameters = REEF_TRY(open(options));
    const SharedBytes file = REEF_TRY(read_file(options.from));
    NamedArrays arrays = REEF_TRY(in_place(read_npz(file.view()), options.from));
    if (arrays.empty())
        return fail(Cause::bad_input, "it holds no arrays", options.from,
                    "reef weights get writes those that the model has");
    const std::size_t left_out = std::erase_if(
        arrays, [&](const auto& one) { return parameters->is_of_other_segment(one.first); });
    if (arrays.empty() && left_out > 0)
        return fail(Cause::bad_input,
                    "none of its arrays is of an operator of this segment, all are of others'",
                    options.from, "`reef weights get` writes those that the segment has");
    REEF_CHECK(in_place(of_file(parameters->set(arrays)), options.from));
    const model::Model changed = REEF_TRY(parameters->model());
    const auto bytes = REEF_TRY(in_place(model::tflite_file(changed), options.out));
    REEF_CHECK(write_output(options.out, bytes.view()));
    if (left_out > 0)
        print_diagnostic("weights set",
                         fmt::format("{}: {} left out, of operators of {} that other segments "
                                     "compute",
                                     options.from, plural(left_out, "array"), options.plain));
    if (options.json) {
        Json document = document_of("weights set", options, arrays);
        document["arrays_of_other_segments"] = left_out;
        print_json(console, document);
    } else if (options.out != "-") {
        console.print("{}: {} replaced\n", printable(options.out), plural(arrays.size(), "array"));
    }
    return Exit::ok;
}

using State = chip::ParameterRange::State;

std::string_view to_string(State state) {
    switch (state) {
        case State::equal:
            return "equal";
        case State::differs:
            return "differs";
        case State::unexplained:
            break;
    }
    return "unexplained";
}

struct Totals {
    std::size_t bytes = 0, equal = 0, differing = 0, unexplained = 0;
};

Totals totals_of(const chip::ParameterAccount& account) {
    Totals totals;
    for (const auto& blob : account.blobs) {
        totals.bytes += blob.size_bytes;
        for (const auto& range : blob.ranges) {
            if (range.state == State::unexplained) totals.unexplained += range.size_bytes;
            totals.differing += range.differing_bytes;
        }
    }
    totals.equal = totals.bytes - totals.differing - totals.unexplained;
    return totals;
}

void print_text(Console& console, const chip::ParameterAccount& account) {
    if (account.first_operator)
        console.print("a segment: operators are counted from operator {} of the plain model\n",
                      *account.first_operator);
    for (const auto& blob : account.blobs) {
        console.print("{}: {} bytes\n", printable(blob.name), blob.size_bytes);
        TextTable table({{"offset", Align::right},
                         {"bytes", Align::right},
                         {"state", Align::left},
                         {"operator", Align::left},
                         {"contents", Align::left}});
        for (const auto& range : blob.ranges) {
            if (range.filling) continue;
            table.add({fmt::format("{:#x}", range.offset), fmt::format("{}", range.size_bytes),
                       range.differing_bytes == 0
                           ? std::string(to_string(range.state))
                           : fmt::format("{} bytes differ", range.differing_bytes),
                       range.op, range.contents});
        }
        table.print(console);
    }
    for (const auto& missing : account.missing)
        console.print("not found: {}: {} ({} bytes)\n", printable(missing.op), missing.contents,
                      missing.size_bytes);
    const Totals totals = totals_of(account);
    console.print("{} bytes: {} as in the plain model, {} differ, {} unexplained\n", totals.bytes,
                  totals.equal, totals.differing, totals.unexplained);
}

void print_document(Console& console, const chip::ParameterAccount& account) {
    Json document = json_document("weights verify");
    document["complete"] = account.complete();
    if (account.first_operator) document["first_operator"] = *account.first_operator;
    const Totals totals = totals_of(account);
    document["bytes"] = totals.bytes;
    document["equal_bytes"] = totals.equal;
    document["differing_bytes"] = totals.differing;
    document["unexplained_bytes"] = totals.unexplained;
    document["blobs"] = Json::array();
    for (const auto& blob : account.blobs) {
        Json one{{"name", blob.name}, {"bytes", blob.size_bytes}, {"ranges", Json::array()}};
        for (const auto& range : blob.ranges)
            one["ranges"].push_back({{"offset", range.offset},
                                     {"bytes", range.size_bytes},
                                     {"state", to_string(range.state)},
                                     {"differing_bytes", range.differing_bytes},
                                     {"operator", range.op},
                                     {"contents", range.contents}});
        document["blobs"].push_back(std::move(one));
    }
    document["not_found"] = Json::array();
    for (const auto& missing : account.missing)
        document["not_found"].push_back({{"operator", missing.op},
                                         {"contents", missing.contents},
                                         {"bytes", missing.size_bytes}});
    print_json(console, document);
}

Result<Exit> verify_verb(const WeightsOptions& options, Console& console) {
    const auto account = REEF_TRY(open(options))->account();
    if (options.json) {
        print_document(console, account);
    } else {
        print_text(console, account);
    }
    return account.complete() ? Exit::ok : Exit::failed;
}

CLI::App* add_part(CLI::App& app, const std::string& name, const std::string& summary,
                   WeightsOptions& options) {
    CLI::App* part = app.add_subcommand(name, summary);
    part->add_option("COMPILED", options.compiled,
                     fmt::format("A model that the {} compiler wrote", chip_names()))
        ->required();
    part->add_option("--like", options.plain,
                     "The plain model that it was compiled from; of a segment, the whole one")
        ->type_name("PLAIN")
        ->required();
    part->add_flag("--json", options.json, "Print JSON");
    return part;
}

}  // namespace

Action add_weights(CLI::App& app) {
    auto options = std::make_shared<WeightsOptions>();
    app.require_subcommand(1);
    CLI::App* get = add_part(app, "get", "Write weights and biases to a .npz file", *options);
    get->add_option("-o,--output", options->out, "The .npz file; - for standard output")
        ->type_name("FILE")
        ->required();
    CLI::App* set = add_part(app, "set", "Replace weights and biases", *options);
    set->add_option("--from", options->from,
                    "A .npz file with some or all of the arrays that get writes; weights may be "
                    "float32 where the model has int8, up to 127 steps of their scale; of a "
                    "segment, arrays of the others may be "
                    "among them")
        ->type_name("FILE")
        ->required();
    set->add_option("-o,--output", options->out, "The compiled model to write")
        ->type_name("FILE")
        ->required();
    add_part(app, "verify", "Explain every byte of the parameters; exit code 1 if any differs",
             *options);
    app.footer(
        with_example_chip("Examples:\n"
                          "  reef weights verify net_CHIP.tflite --like net.tflite\n"
                          "  reef weights get net_CHIP.tflite --like net.tflite -o net.npz\n"
                          "  reef weights set net_CHIP.tflite --like net.tflite --from new.npz -o "
                          "new_CHIP.tflite"));
    return [options, get, set](Console& console) {
        if (get->parsed()) return get_verb(*options, console);
        if (set->parsed()) return set_verb(*options, console);
        return verify_verb(*options, console);
    };
}

}  // namespace reef::tool

// reef weights: the parameters of a compiled model, by the names of its plain source.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/base/file.h"
#include "reef/edgetpu/compiled_parameters.h"
#include "reef/model/tflite.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

using edgetpu::CompiledParameters;

struct WeightsOptions {
    std::string compiled;
    std::string plain;
    std::string from;
    std::string out;
    bool json = false;
};

Result<CompiledParameters> open(const WeightsOptions& options) {
    auto compiled = REEF_TRY(model::load_tflite(options.compiled));
    auto plain = REEF_TRY(model::load_tflite(options.plain));
    return in_place(CompiledParameters::open(std::move(plain), std::move(compiled)),
                    options.compiled);
}

Status check_output(const WeightsOptions& options) {
    return check_output_file(options.out, {options.compiled, options.plain, options.from});
}

Result<Exit> get_verb(const WeightsOptions& options, Console& console) {
    REEF_CHECK(check_output(options));
    const auto parameters = REEF_TRY(open(options));
    const NamedArrays arrays = REEF_TRY(in_place(parameters.get(), options.compiled));
    const auto file = REEF_TRY(write_npz(arrays, Compression::deflated));
    REEF_CHECK(write_output(options.out, file));
    if (options.out != "-") {
        console.print("{}: {}\n", printable(options.out), plural(arrays.size(), "array"));
    }
    return Exit::ok;
}

Result<Exit> set_verb(const WeightsOptions& options, Console& console) {
    REEF_CHECK(check_output(options));
    auto parameters = REEF_TRY(open(options));
    const SharedBytes file = REEF_TRY(read_file(options.from));
    const NamedArrays arrays = REEF_TRY(in_place(read_npz(file.view()), options.from));
    REEF_CHECK(in_place(parameters.set(arrays), options.from));
    const model::Model changed = REEF_TRY(parameters.model());
    const auto bytes = REEF_TRY(in_place(model::write_tflite(changed), options.out));
    REEF_CHECK(write_output(options.out, bytes));
    if (options.out != "-") {
        console.print("{}: {} replaced\n", printable(options.out), plural(arrays.size(), "array"));
    }
    return Exit::ok;
}

/// "multipliers, biases, weights": what lies in a part, in its order.
std::string contents_of(const edgetpu::ParameterPart& part) {
    switch (part.kind) {
        case edgetpu::PartKind::softmax_table:
            return "softmax table";
        case edgetpu::PartKind::selection:
            return "selection";
        case edgetpu::PartKind::multipliers:
            return "multipliers";
        case edgetpu::PartKind::fill:
            return "zeros";
        case edgetpu::PartKind::subtrahend:
            return "constant";
        case edgetpu::PartKind::factor:
            return "constant";
        case edgetpu::PartKind::layer:
            break;
    }
    const edgetpu::LayerVectors& vectors = part.layout.vectors;
    std::string text;
    if (vectors.multipliers) text += "multipliers, ";
    if (vectors.biases) text += "biases, ";
    if (vectors.zero_points) text += "zero points, ";
    return text + "weights";
}

struct Row {
    edgetpu::BlobRange range;
    std::string what;
    std::string contents;
    std::string state;  ///< "equal", "differs", "unexplained"
    std::size_t differing = 0;
};

/// Every byte of every blob, by blob and offset.
std::vector<Row> rows_of(const CompiledParameters& parameters) {
    std::vector<Row> rows;
    const edgetpu::Placement& placement = parameters.placement();
    for (const edgetpu::PlacedPart& placed : placement.placed) {
        const edgetpu::ParameterPart& part = parameters.parts()[placed.part];
        rows.push_back({placed.range, part.name, contents_of(part),
                        placed.differing == 0 ? "equal" : "differs", placed.differing});
    }
    for (const edgetpu::BlobRange& range : placement.alignment) {
        rows.push_back({range, "", "alignment", "equal", 0});
    }
    for (const edgetpu::BlobRange& range : placement.unexplained) {
        rows.push_back({range, "", "", "unexplained", 0});
    }
    std::ranges::sort(rows, {},
                      [](const Row& row) { return std::pair(row.range.blob, row.range.offset); });
    return rows;
}

struct Totals {
    std::size_t bytes = 0, equal = 0, differing = 0, unexplained = 0;
};

Totals totals_of(const CompiledParameters& parameters, const std::vector<Row>& rows) {
    Totals totals;
    for (const auto& blob : parameters.blobs()) totals.bytes += blob.bytes.size();
    for (const Row& row : rows) {
        if (row.state == "unexplained") totals.unexplained += row.range.size_bytes;
        totals.differing += row.differing;
    }
    totals.equal = totals.bytes - totals.differing - totals.unexplained;
    return totals;
}

void print_text(Console& console, const CompiledParameters& parameters,
                const std::vector<Row>& rows) {
    for (std::size_t blob = 0; blob < parameters.blobs().size(); ++blob) {
        console.print("{}: {} bytes\n", printable(parameters.blobs()[blob].name),
                      parameters.blobs()[blob].bytes.size());
        TextTable table({{"offset", Align::right},
                         {"bytes", Align::right},
                         {"state", Align::left},
                         {"operator", Align::left},
                         {"contents", Align::left}});
        for (const Row& row : rows) {
            if (row.range.blob != blob || row.contents == "alignment") continue;
            table.add(
                {fmt::format("{:#x}", row.range.offset), fmt::format("{}", row.range.size_bytes),
                 row.differing == 0 ? row.state : fmt::format("{} bytes differ", row.differing),
                 row.what, row.contents});
        }
        table.print(console);
    }
    for (const std::size_t missing : parameters.placement().missing) {
        const auto& part = parameters.parts()[missing];
        console.print("not found: {}: {} ({} bytes)\n", printable(part.name), contents_of(part),
                      part.size_bytes);
    }
    const Totals totals = totals_of(parameters, rows);
    console.print("{} bytes: {} as in the plain model, {} differ, {} unexplained\n", totals.bytes,
                  totals.equal, totals.differing, totals.unexplained);
}

void print_document(Console& console, const CompiledParameters& parameters,
                    const std::vector<Row>& rows) {
    Json document = json_document("weights verify");
    document["complete"] = parameters.placement().complete();
    const Totals totals = totals_of(parameters, rows);
    document["bytes"] = totals.bytes;
    document["equal_bytes"] = totals.equal;
    document["differing_bytes"] = totals.differing;
    document["unexplained_bytes"] = totals.unexplained;
    document["blobs"] = Json::array();
    for (std::size_t blob = 0; blob < parameters.blobs().size(); ++blob) {
        Json one{{"name", parameters.blobs()[blob].name},
                 {"bytes", parameters.blobs()[blob].bytes.size()},
                 {"ranges", Json::array()}};
        for (const Row& row : rows) {
            if (row.range.blob != blob) continue;
            one["ranges"].push_back({{"offset", row.range.offset},
                                     {"bytes", row.range.size_bytes},
                                     {"state", row.state},
                                     {"differing_bytes", row.differing},
                                     {"operator", row.what},
                                     {"contents", row.contents}});
        }
        document["blobs"].push_back(std::move(one));
    }
    document["not_found"] = Json::array();
    for (const std::size_t missing : parameters.placement().missing) {
        const auto& part = parameters.parts()[missing];
        document["not_found"].push_back(
            {{"operator", part.name}, {"contents", contents_of(part)}, {"bytes", part.size_bytes}});
    }
    print_json(console, document);
}

Result<Exit> verify_verb(const WeightsOptions& options, Console& console) {
    const auto parameters = REEF_TRY(open(options));
    const auto rows = rows_of(parameters);
    if (options.json) {
        print_document(console, parameters, rows);
    } else {
        print_text(console, parameters, rows);
    }
    return parameters.placement().complete() ? Exit::ok : Exit::failed;
}

CLI::App* add_part(CLI::App& app, const std::string& name, const std::string& summary,
                   WeightsOptions& options) {
    CLI::App* part = app.add_subcommand(name, summary);
    part->add_option("COMPILED", options.compiled, "A model that the Edge TPU compiler wrote")
        ->required();
    part->add_option("--like", options.plain, "The plain model that it was compiled from")
        ->type_name("PLAIN")
        ->required();
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
                    "float32 where the model has int8")
        ->type_name("FILE")
        ->required();
    set->add_option("-o,--output", options->out, "The compiled model to write")
        ->type_name("FILE")
        ->required();
    CLI::App* verify =
        add_part(app, "verify", "Explain every byte of the parameters; exit code 1 if any differs",
                 *options);
    verify->add_flag("--json", options->json, "Print JSON");
    app.footer(
        "Examples:\n"
        "  reef weights verify net_edgetpu.tflite --like net.tflite\n"
        "  reef weights get net_edgetpu.tflite --like net.tflite -o net.npz\n"
        "  reef weights set net_edgetpu.tflite --like net.tflite --from new.npz -o "
        "new_edgetpu.tflite");
    return [options, get, set](Console& console) {
        if (get->parsed()) return get_verb(*options, console);
        if (set->parsed()) return set_verb(*options, console);
        return verify_verb(*options, console);
    };
}

}  // namespace reef::tool

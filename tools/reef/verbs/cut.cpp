// reef cut: a final.mlir of TPU-MLIR truncated after named tensors.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/base/text.h"
#include "reef/sophgo/final_engine.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct CutOptions {
    std::string file;
    std::string out;
    std::string weights;
    std::string out_weights;
    sophgo::CutRequest request;
    bool json = false;
};

Status check_cut_options(const CutOptions& options) {
    if (options.weights.empty() != options.out_weights.empty())
        return fail(Cause::bad_argument, "--weights and --out-weights belong together");
    REEF_CHECK(check_apart_from_json(options.out, options.json));
    REEF_CHECK(check_apart_from_print(options.out_weights, "--out-weights"));
    REEF_CHECK(check_output_file(options.out, {options.file, options.weights}));
    return check_output_file(options.out_weights, {options.file, options.weights, options.out});
}

/// The arrays that the cut network still reads.
Result<std::vector<std::byte>> kept_weights(const CutOptions& options, const sophgo::Cut& cut) {
    const SharedBytes file = REEF_TRY(read_file(options.weights));
    NamedArrays arrays = REEF_TRY(in_place(read_npz(file.view()), options.weights));
    std::set<std::string> wanted(cut.weights.begin(), cut.weights.end());
    for (const auto& [name, array] : arrays) wanted.erase(name);
    if (!wanted.empty())
        return fail(
            Cause::not_found,
            fmt::format("the network reads the weight '{}', which is not there", *wanted.begin()),
            options.weights, "give the file that module.weight_file names");
    const std::set<std::string> kept(cut.weights.begin(), cut.weights.end());
    std::erase_if(arrays, [&](const auto& one) { return !kept.contains(one.first); });
    return write_npz(arrays, Compression::stored);
}

/// Code generation looks for the weights beside the network.
void note_missing_weights(const CutOptions& options, sophgo::Cut& cut) {
    const std::string& name = cut.program.weight_file;
    if (options.out == "-" || name.empty() || cut.weights.empty()) return;
    const auto path = std::filesystem::path(options.out).parent_path() / name;
    std::error_code error;
    if (!std::filesystem::exists(path, error))
        cut.notes.push_back(fmt::format(
            "code generation reads the weights from {}, which is not there", path.string()));
}

std::size_t operators_in(const sophgo::FinalProgram& program) {
    std::size_t count = 0;
    for (const auto& device : program.devices)
        for (const auto& function : device.functions)
            if (!function.is_main())
                for (const auto& op : function.operators)
                    count += op.kind.starts_with("tpu.") ? 1 : 0;
    return count;
}

void print_cut(Console& console, const CutOptions& options, const sophgo::Cut& cut) {
    const auto& device = cut.program.devices.front();
    console.print("{}: {}, coefficients {}\n", printable(options.out),
                  plural(operators_in(cut.program), "operator"),
                  bytes_text(static_cast<std::int64_t>(device.coefficients.size)));
    for (const sophgo::ValueIndex index : device.main()->returned) {
        const sophgo::Value& value = cut.program.at(index);
        console.print("  output  {}, {}x{} at {:#x}\n", printable(value.name),
                      fmt::join(value.shape, "x"), printable(value.element),
                      value.address.value_or(0));
    }
    for (const std::string& note : cut.notes) console.print("  {}\n", printable(note));
}

Json cut_json(const CutOptions& options, const sophgo::Cut& cut) {
    Json document = json_document("cut");
    document["file"] = options.file;
    document["at"] = options.request.at;
    document["output"] = options.out;
    document["operators"] = operators_in(cut.program);
    document["inputs"] = cut.program.inputs;
    document["outputs"] = options.request.at;
    document["coefficient_bytes"] = cut.program.devices.front().coefficients.size;
    document["weights"] = cut.weights;
    document["notes"] = cut.notes;
    return document;
}

Result<Exit> cut_verb(CutOptions options, Console& console) {
    REEF_CHECK(check_cut_options(options));
    const SharedBytes file = REEF_TRY(read_file(options.file));
    const sophgo::FinalEngine* engine = REEF_TRY(sophgo::final_engine());
    if (!options.out_weights.empty())
        options.request.weight_file =
            std::filesystem::path(options.out_weights).filename().string();
    sophgo::Cut cut =
        REEF_TRY(in_place(engine->cut(as_text(file.view()), options.request), options.file));
    std::vector<std::byte> weights;
    if (!options.out_weights.empty()) weights = REEF_TRY(kept_weights(options, cut));
    {
        const SignalsWait wait;
        std::vector<NamedContents> files = {{options.out, as_bytes(cut.text)}};
        if (!options.out_weights.empty()) files.push_back({options.out_weights, weights});
        REEF_CHECK(reef::write_files(files));
    }
    note_missing_weights(options, cut);
    if (options.out == "-") return Exit::ok;
    if (options.json)
        print_json(console, cut_json(options, cut));
    else
        print_cut(console, options, cut);
    return Exit::ok;
}

}  // namespace

Action add_cut(CLI::App& app) {
    app.description("Truncate a final.mlir after named tensors");
    auto options = std::make_shared<CutOptions>();
    app.add_option("FILE", options->file, "A final.mlir of TPU-MLIR; - reads standard input")
        ->required();
    app.add_option("--at", options->request.at,
                   "The tensors that become the outputs, in this order; groups are kept whole")
        ->required()
        ->delimiter(',')
        ->type_name("NAME[,NAME]");
    app.add_option("-o,--output", options->out, "The file to write; - is standard output")
        ->required()
        ->type_name("FILE");
    app.add_option("--weights", options->weights, "The weights that the network reads")
        ->type_name("NPZ");
    app.add_option("--out-weights", options->out_weights,
                   "Write those that it still reads, and name the file in the module")
        ->type_name("NPZ");
    app.add_flag(
        "--keep-group-results", options->request.keep_group_results,
        "Keep results of groups that nobody reads any more, with a Reshape each, instead of "
        "taking them out of their groups");
    app.add_flag("--keep-coeff-size", options->request.keep_coefficient_size,
                 "Leave module.coeff_size as it is");
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(
        "Examples:\n"
        "  reef cut net_final.mlir --at conv5_Relu -o cut.mlir\n"
        "  reef cut net_final.mlir --at a,b -o cut.mlir --weights w.npz --out-weights cut_w.npz\n"
        "What cannot be cut safely is refused by name; the result passes reef check.");
    return [options](Console& console) { return cut_verb(*options, console); };
}

}  // namespace reef::tool

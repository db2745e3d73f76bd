#include "compile/several.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compile/report.h"
#include "inspect/chip_text.h"
#include "outputs/file_output.h"
#include "outputs/stages.h"
#include "reef/chip/segments.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

/// One of several models that are written beside each other.
struct Piece {
    std::string title;
    std::string file;  ///< below the folder
    model::Model plain;
    chip::Compilation done;
    SharedBytes bytes{};
    std::optional<model::OperatorRange> operators{};  ///< of a segment
    Proof proof{};
    [[nodiscard]] bool right() const { return !proof.refutes(); }
};

std::string stem_of(const std::string& path) {
    return std::filesystem::path(path).stem().string();
}

/// Into what files models that take turns are written; segments have names of their own.
Status check_several(const CompileVerbOptions& options, const std::vector<std::string>& files) {
    for (const auto* one : {&options.against, &options.with, &options.settings.print_after,
                            &options.settings.print_before})
        if (!one->empty())
            return fail(Cause::bad_argument,
                        "--against, --with, --print-after and --print-before are of one model", {},
                        "give one model and no --segments");
    REEF_CHECK(check_report(options));
    if (options.out == "-")
        return fail(Cause::bad_argument, "standard output takes one model", "--output",
                    "name a folder");
    std::error_code ignored;
    if (options.out.ends_with(".tflite") && !std::filesystem::is_directory(options.out, ignored))
        return fail(Cause::bad_argument, "several models are written to a folder", options.out,
                    "name one with -o");
    auto sorted = files;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end())
        return fail(Cause::bad_argument, "two of the models have one file name", {},
                    "their compiled models would be one file");
    if (options.out.empty()) return {};
    REEF_CHECK(check_output_folder(options.out, "", {}));
    if (!std::filesystem::exists(options.out)) return {};
    for (const auto& file : files)
        REEF_CHECK(check_output_file((std::filesystem::path(options.out) / file).string(),
                                     options.models));
    return {};
}

/// Models that take turns on one chip.
Result<std::vector<Piece>> models_together(const CompileVerbOptions& options,
                                           const chip::Compiler& compiler) {
    std::vector<std::string> files;
    for (const auto& path : options.models)
        files.push_back(fmt::format("{}_{}.tflite", stem_of(path), compiler.family()));
    REEF_CHECK(check_several(options, files));
    std::vector<model::Model> plain;
    for (const auto& path : options.models) plain.push_back(REEF_TRY(load_plain(path)));
    Stages stages(1);
    stages.begin("compiling");
    auto compiled = compiler.compile_together(plain, options.settings);
    // What it says of a model has the model's place; without one, that it takes one at a time.
    if (!compiled && compiled.error().cause == Cause::unsupported && compiled.error().place.empty())
        return fail(Cause::bad_argument, compiled.error().what, {}, "give one model at a time");
    auto done = REEF_TRY(std::move(compiled));
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < done.size(); ++i)
        pieces.push_back({options.models[i], files[i], std::move(plain[i]), std::move(done[i])});
    return pieces;
}

/// One model's parts for a chip each.
Result<std::vector<Piece>> segments_of(const CompileVerbOptions& options,
                                       const chip::Compiler& compiler) {
    const std::string& path = options.models.front();
    std::vector<std::string> files;
    for (std::size_t i = 0; i < options.segments; ++i)
        files.push_back(fmt::format("{}_segment_{}_of_{}_{}.tflite", stem_of(path), i,
                                    options.segments, compiler.family()));
    REEF_CHECK(check_several(options, files));
    const auto plain = REEF_TRY(load_plain(path));
    Progress bar("dividing");
    const auto whole = REEF_TRY(in_place(compiler.compile(plain, options.settings), path));
    if (whole.seconds <= 0)
        return fail(Cause::bad_argument,
                    "segments are not for this chip: its compiler does not estimate a pipeline",
                    "--segments", "leave it out");
    const auto compile_part = [&](const model::Part& part) {
        return compiler.compile(part.model,
                                chip::options_of_part(options.settings, whole.operators, part));
    };
    const auto cost = [&](const model::Part& part) -> Result<double> {
        return REEF_TRY(compile_part(part)).seconds;
    };
    const auto ranges = REEF_TRY(in_place(
        chip::segments_of(plain, options.segments, cost, [&](double done) { bar.update(done); }),
        path));
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        auto part = REEF_TRY(in_place(model::part_of(plain, ranges[i]), path));
        auto done = REEF_TRY(in_place(compile_part(part), files[i]));
        pieces.push_back(
            {fmt::format("segment {}: operators {} to {}, {:.3f} ms", i, ranges[i].first,
                         ranges[i].first + ranges[i].count - 1, done.seconds * 1e3),
             files[i], std::move(part.model), std::move(done)});
        pieces.back().operators = ranges[i];
    }
    return pieces;
}

/// `right`: a program that is known to be wrong is given to nobody.
Status write_pieces(const CompileVerbOptions& options, const std::vector<Piece>& pieces,
                    const Json& document, bool right) {
    std::vector<NamedContents> files;
    std::string report;
    if (!options.report.empty()) report = REEF_TRY(compile_report(document, options.report));
    if (!report.empty())
        files.push_back({std::filesystem::absolute(options.report).string(), as_bytes(report)});
    if (!right || options.out.empty()) return write_outputs(files);
    for (const Piece& piece : pieces) files.push_back({piece.file, piece.bytes.view()});
    return write_outputs_below(options.out, files);
}

/// Where a segment lies in the network, what goes in and comes out, by name, and its estimate.
void add_segment(Json& document, const Piece& piece) {
    const auto& graph = piece.plain.subgraphs.front();
    const auto names = [&](const std::vector<model::TensorIndex>& list) {
        Json all = Json::array();
        for (const model::TensorIndex i : list)
            all.push_back(graph.tensors[static_cast<std::size_t>(i)].name);
        return all;
    };
    document["first_operator"] = piece.operators->first;
    document["operator_count"] = piece.operators->count;
    document["inputs"] = names(graph.inputs);
    document["outputs"] = names(graph.outputs);
    document["estimate_seconds"] = piece.done.seconds;
}

Json document_of(const CompileVerbOptions& options, const chip::Compiler& compiler,
                 const std::vector<Piece>& pieces, bool written) {
    Json document = json_document("compile");
    const char* key = options.segments > 1 ? "segments" : "models";
    document[key] = Json::array();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        CompileVerbOptions one = options;
        one.models = {options.models[options.segments > 1 ? 0 : i]};
        one.out = written ? (std::filesystem::path(options.out) / pieces[i].file).string() : "";
        document[key].push_back(document_of(one, compiler, pieces[i].done, pieces[i].proof, {}));
        if (pieces[i].operators) add_segment(document[key].back(), pieces[i]);
    }
    return document;
}

}  // namespace

Result<Exit> compile_several(const CompileVerbOptions& options, const chip::Compiler& compiler,
                             Console& console) {
    auto pieces = REEF_TRY(options.segments > 1 ? segments_of(options, compiler)
                                                : models_together(options, compiler));
    for (Piece& piece : pieces) {
        piece.bytes = REEF_TRY(in_place(model::tflite_file(piece.done.model), piece.file));
        piece.proof = REEF_TRY(proof_of(options, compiler, piece.plain, piece.done, piece.file));
    }
    const bool right = std::ranges::all_of(pieces, &Piece::right);
    const bool written = right && !options.out.empty();
    const Json document = document_of(options, compiler, pieces, written);
    REEF_CHECK(write_pieces(options, pieces, document, right));
    if (options.json) {
        print_json(console, document);
        return right ? Exit::ok : Exit::failed;
    }
    for (const Piece& piece : pieces) {
        console.print("{}{}\n", &piece == pieces.data() ? "" : "\n", printable(piece.title));
        print_operators(console, piece.done, options.all);
        for (const auto& section : piece.done.sections) print_section(console, section);
        print_proof(console, piece.proof);
        if (written)
            console.print("\n{}: {} bytes\n",
                          printable((std::filesystem::path(options.out) / piece.file).string()),
                          piece.bytes.size());
    }
    return right ? Exit::ok : Exit::failed;
}

}  // namespace reef::tool

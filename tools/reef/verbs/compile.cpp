// reef compile: from a plain model to one with programs for a chip.
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "compile/against.h"
#include "compile/report.h"
#include "compile/verification.h"
#include "inputs/chips.h"
#include "inputs/option_values.h"
#include "inspect/chip_text.h"
#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/stages.h"
#include "outputs/text_table.h"
#include "outputs/work_folder.h"
#include "reef/chip/compiler.h"
#include "reef/chip/segments.h"
#include "reef/model/cost.h"
#include "reef/model/tflite.h"
#include "reef/runtime/arithmetic.h"
#include "reef/runtime/registry.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct CompileVerbOptions {
    std::vector<std::string> models;
    std::string target;
    std::string out;
    std::string against;
    std::string with;
    std::string report;
    chip::CompileOptions settings;
    std::size_t segments = 1;
    bool verify = false;
    OrderSeed random_seed{};  ///< given: of a verification, which it asks for
    bool no_verify = false;
    bool json = false;
    bool all = false;
};

bool prints_pass(const CompileVerbOptions& options) {
    return !options.settings.print_after.empty() || !options.settings.print_before.empty();
}

/// Below it a verification takes a second or so.
constexpr std::int64_t small_model_macs = 20'000'000;

Result<const chip::Compiler*> compiler_for(const std::string& target) {
    const auto compilers = runtime::Registry::of_process().parts<chip::Compiler>();
    std::vector<std::string> families;
    for (const auto* compiler : compilers) {
        if (compiler->family() == target) return compiler;
        families.emplace_back(compiler->family());
    }
    if (target.empty() && compilers.size() == 1) return compilers.front();
    return fail(
        Cause::bad_argument,
        target.empty() ? "`target` is missing" : fmt::format("nothing compiles for '{}'", target),
        {}, fmt::format("targets are {}", fmt::join(families, ", ")));
}

/// Errors also: bad_input for what a compiler made, whichever.
Result<model::Model> load_plain(const std::string& path) {
    auto model = REEF_TRY(model::load_tflite(path));
    const auto drivers = runtime::Registry::of_process().drivers();
    for (const model::Subgraph& graph : model.subgraphs)
        for (std::size_t i = 0; i < graph.operators.size(); ++i)
            for (const auto* driver : drivers)
                if (driver->is_compiled(graph.operators[i]))
                    return fail(
                        Cause::bad_input,
                        fmt::format("the model is compiled already, for {}", driver->family()),
                        path + ": " + model::place_of(graph, i), "compile the plain one");
    return model;
}

bool is_small(const model::Model& model) {
    return model::cost_of(model, model.subgraphs.front()).macs <= small_model_macs;
}

/// Operators of one name and fate in one line, in the order in which they first come.
void print_operators(Console& console, const chip::Compilation& done, bool all) {
    TextTable table({{"Operator"}, {"Count", Align::right}, {"Status"}});
    std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> lines;
    for (const auto& op : done.operators) {
        const std::pair key{all ? fmt::format("{} {}", op.index, op.name) : op.name,
                            op.on_chip ? std::string("Mapped to the chip") : op.reason};
        const auto known = std::ranges::find(lines, key, [](const auto& l) { return l.first; });
        if (known == lines.end())
            lines.push_back({key, 1});
        else
            ++known->second;
    }
    for (const auto& [key, count] : lines)
        table.add({printable(key.first), std::to_string(count), printable(in_flags(key.second))});
    table.print(console);
}

void print_proof(Console& console, const Proof& proof) {
    if (!proof.missing.empty()) console.print("\nNot verified: {}\n", printable(proof.missing));
    if (!proof.verification) return;
    const Verification& v = *proof.verification;
    console.print(
        "\n{}: {} runs{}, {} of {} bytes equal to the plain model's in the chip's "
        "arithmetic, {} of the watched simulator\n",
        v.passed() ? "Verified" : "Not verified", v.runs,
        v.random_seed ? fmt::format(" in a random order (seed {})", *v.random_seed) : "",
        v.bytes - v.differing, v.bytes, plural(v.findings.size(), "finding"));
    if (!v.passed()) console.print("  {}\n", printable(v.first_difference));
    for (const auto& finding : v.findings) console.print("  {}\n", printable(finding));
}

Json operators_json(const chip::Compilation& done) {
    Json list = Json::array();
    for (const auto& op : done.operators) {
        Json one = {{"index", op.index}, {"name", op.name}, {"on_chip", op.on_chip}};
        if (!op.on_chip) one["reason"] = in_flags(op.reason);
        list.push_back(std::move(one));
    }
    return list;
}

Json document_of(const CompileVerbOptions& options, const chip::Compiler& compiler,
                 const chip::Compilation& done, const Proof& proof,
                 const std::optional<Against>& against) {
    Json document = json_document("compile");
    document["model"] = options.models.front();
    document["target"] = std::string(compiler.family());
    document["output"] = options.out;
    document["operators"] = operators_json(done);
    document.update(to_json(chip::Value(done.document)));
    if (const auto& v = proof.verification) {
        document["verification"] = {{"passed", v->passed()},
                                    {"runs", v->runs},
                                    {"bytes", v->bytes},
                                    {"differing", v->differing},
                                    {"findings", v->findings}};
        if (v->random_seed) document["verification"]["random_seed"] = *v->random_seed;
    }
    if (!proof.missing.empty()) document["not_verified"] = proof.missing;
    if (against) document["against"] = against_json(*against);
    if (prints_pass(options)) document["listing"] = done.listing;
    return document;
}

Result<std::optional<Against>> other_compiler(const CompileVerbOptions& options,
                                              const chip::Compiler& compiler,
                                              const model::Model& plain,
                                              const chip::Compilation& done, std::size_t bytes) {
    if (options.with.empty() && options.against.empty()) return std::optional<Against>{};
    if (options.with.empty())
        return REEF_TRY(compare_against(plain, done, bytes, options.against, compiler.family()));
    const auto folder = REEF_TRY(WorkFolder::make("compile"));
    const auto made =
        REEF_TRY(compile_with_vendor(compiler, options.models.front(), folder.path()));
    auto against = REEF_TRY(compare_against(plain, done, bytes, made, compiler.family()));
    against.path = std::filesystem::path(made).filename().string();
    return against;
}

/// Whose option that is, and what may serve in its place.
std::string owners_of(const std::string& setting) {
    std::vector<std::string_view> families;
    std::string elsewhere;
    for (const auto* compiler : runtime::Registry::of_process().parts<chip::Compiler>())
        for (const chip::CompilerSetting& one : compiler->settings()) {
            if (one.name != setting) continue;
            families.push_back(compiler->family());
            if (!one.elsewhere.empty()) elsewhere = "; " + one.elsewhere;
        }
    return fmt::format("it is an option for {}{}", fmt::join(families, ", "), elsewhere);
}

/// Errors: a setting that the compiler has not; a verification that no simulated chip watches.
Status check_settings(const chip::Compiler& compiler, const CompileVerbOptions& options) {
    const auto known = compiler.settings();
    for (const auto& [name, value] : options.settings.settings)
        if (std::ranges::find(known, name, &chip::CompilerSetting::name) == known.end())
            return fail(
                Cause::bad_argument,
                fmt::format("the compiler for '{}' has no option --{}", compiler.family(), name),
                {}, owners_of(name));
    if (!options.verify && !options.random_seed) return {};
    const std::string family(compiler.family());
    for (const auto& device :
         runtime::Registry::of_process().devices_with(runtime::Capability::strict))
        if (device.starts_with(family + ":")) return {};
    return fail(Cause::bad_argument, fmt::format("no simulated {} watches programs", family),
                options.verify ? "--verify" : "--random-seed", "leave it out");
}

/// A report's name says its form. Errors: as those of compile_report().
Status check_report(const CompileVerbOptions& options) {
    if (options.report.empty()) return {};
    auto read = options.models;
    read.push_back(options.against);
    REEF_CHECK(check_output_file(options.report, read));
    REEF_CHECK(compile_report(Json{{"operators", Json::array()}}, options.report));
    return {};
}

/// Errors: those of verifying; unasked, there is none where the CPU cannot run the plain model.
Result<Proof> proof_of(const CompileVerbOptions& options, const chip::Compiler& compiler,
                       const model::Model& plain, const chip::Compilation& done,
                       const std::string& name) {
    const auto family = compiler.family();
    if (options.verify || options.random_seed)
        return Proof{.verification = REEF_TRY(in_place(
                         verify_compiled(plain, done.model, family, options.random_seed), name))};
    const bool can =
        runtime::Registry::of_process().part<runtime::ChipArithmetic>(family) != nullptr;
    if (options.no_verify || !can || !is_small(plain)) return Proof{};
    return in_place(verify_if_it_runs(plain, done.model, family), name);
}

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

/// Several models, or one in segments, into a folder.
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

/// A network's parameters are copied from form to form. Memory of the last copy serves the next:
/// given back to the system, every page of it would be cleared anew.
void keep_freed_memory() {
#if defined(__GLIBC__)
    constexpr int largest_block = 32 << 20;  // the most that glibc takes here
    mallopt(M_MMAP_THRESHOLD, largest_block);
    mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

Result<Exit> compile_verb(const CompileVerbOptions& options, Console& console) {
    keep_freed_memory();
    if (options.models.size() > 1 && options.segments > 1)
        return fail(Cause::bad_argument, "one model is divided into segments, not several",
                    "--segments", "give one model");
    if (options.models.size() > 1 || options.segments > 1) {
        const chip::Compiler* compiler = REEF_TRY(compiler_for(options.target));
        REEF_CHECK(check_settings(*compiler, options));
        return compile_several(options, *compiler, console);
    }
    REEF_CHECK(check_output_file(options.out, {options.models.front(), options.against}));
    REEF_CHECK(check_apart_from_json(options.out, options.json));
    REEF_CHECK(check_report(options));
    REEF_CHECK(check_apart(options.report, options.out));
    if (prints_pass(options) && options.out == "-")
        return fail(Cause::bad_argument,
                    "standard output cannot hold the model and what a pass leaves", {},
                    "give --output a name");
    const chip::Compiler* compiler = REEF_TRY(compiler_for(options.target));
    REEF_CHECK(check_settings(*compiler, options));
    const auto plain = REEF_TRY(load_plain(options.models.front()));
    Stages stages(2);
    stages.begin("compiling");
    auto done =
        REEF_TRY(in_place(compiler->compile(plain, options.settings), options.models.front()));
    const auto bytes = REEF_TRY(in_place(model::tflite_file(done.model), options.out));
    stages.begin("verifying");
    const Proof proof = REEF_TRY(proof_of(options, *compiler, plain, done, options.models.front()));
    stages.end();
    const auto against = REEF_TRY(other_compiler(options, *compiler, plain, done, bytes.size()));
    const bool right = !proof.refutes();
    const Json document = document_of(options, *compiler, done, proof, against);
    std::string report;
    if (!options.report.empty()) report = REEF_TRY(compile_report(document, options.report));
    std::vector<NamedContents> files = {{options.report, as_bytes(report)}};
    // A program that is known to be wrong is given to nobody.
    if (right) files.push_back({options.out, bytes.view()});
    REEF_CHECK(write_outputs(files));
    if (options.json) {
        print_json(console, document);
    } else if (prints_pass(options)) {
        console.write(done.listing);
        for (const auto& section : done.sections)
            if (section.asked_for) print_section(console, section);
    } else if (options.out != "-") {
        print_operators(console, done, options.all);
        for (const auto& section : done.sections) print_section(console, section);
        print_proof(console, proof);
        if (against) print_against(console, *against);
        if (right && !options.out.empty())
            console.print("\n{}: {} bytes\n", printable(options.out), bytes.size());
    }
    return right ? Exit::ok : Exit::failed;
}

/// What single compilers can beyond the others, as options of the verb.
void add_settings(CLI::App& app, const std::shared_ptr<CompileVerbOptions>& options) {
    for (const auto* compiler : runtime::Registry::of_process().parts<chip::Compiler>())
        for (const chip::CompilerSetting& setting : compiler->settings()) {
            std::string flag = "--" + setting.name;
            if (std::string dashed = flag; dashed.contains('_')) {
                std::ranges::replace(dashed, '_', '-');
                flag = dashed + "," + flag;
            }
            const std::string text =
                fmt::format("{} ({} only)", in_flags(setting.sentence), compiler->family());
            const auto keep = [options, name = setting.name](const std::string& value) {
                auto& held = options->settings.settings[name];
                held += (held.empty() ? "" : ",") + value;
            };
            if (setting.choices.empty())
                app.add_flag_function(
                    flag, [keep](std::int64_t) { keep("true"); }, text);
            else
                app.add_option_function<std::vector<std::string>>(
                       flag,
                       [keep](const std::vector<std::string>& values) {
                           for (const auto& value : values) keep(value);
                       },
                       text)
                    ->delimiter(',')
                    ->expected(1, setting.several ? static_cast<int>(setting.choices.size()) : 1)
                    ->check(CLI::IsMember(setting.choices));
        }
}

}  // namespace

Action add_compile(CLI::App& app) {
    auto options = std::make_shared<CompileVerbOptions>();
    app.add_option("MODEL", options->models,
                   "Plain quantised .tflite files; several are compiled to take turns on one chip, "
                   "the parameters of all beside one another")
        ->required();
    app.add_option("--target", options->target,
                   "The chip's family; may be left out where only one has a compiler")
        ->type_name("FAMILY");
    app.add_option("-o,--output", options->out,
                   "The compiled model to write; of several and of segments, the folder")
        ->type_name("FILE");
    app.add_option("--max-programs,--max-subgraphs", options->settings.most_programs,
                   "At most so many programs on the chip with the CPU's operators between them, "
                   "those left out that the CPU would compute sooner; 1: as the vendor's compiler")
        ->check(whole_number(1, 1000))
        ->type_name("N");
    app.add_flag("--keep-islands", options->settings.keep_islands,
                 "Leave none of them out: transfers may cost more than they save");
    app.add_option("--segments", options->segments,
                   "Divide the model into so many parts for a chip each, the slowest as fast as "
                   "the estimate finds; a part may read tensors of any before it, by name")
        ->check(whole_number(1, 1000))
        ->type_name("N");
    app.add_flag("--stream-parameters", options->settings.stream_parameters,
                 "Send parameters with every inference instead of keeping them on the chip");
    const auto schedule = [options](const std::string& how) {
        options->settings.schedule = how == "plain"    ? chip::Schedule::plain
                                     : how == "vendor" ? chip::Schedule::vendor
                                                       : chip::Schedule::overlapped;
    };
    app.add_option_function<std::string>(
           "--schedule", schedule,
           "overlapped: what the next operator needs is on its way while one computes; "
           "plain: one thing after the other; vendor: byte for byte the program of the "
           "vendor's compiler, for the few networks of which that is known")
        ->check(CLI::IsMember(std::vector<std::string>{"overlapped", "plain", "vendor"}))
        ->type_name("HOW");
    app.add_flag("--forms", options->settings.list_forms,
                 "Count instructions of forms that no known program of the chip's vendor has");
    app.add_flag(
        "--conservative", options->settings.known_forms_only,
        "Write no such instructions: slower, and operators that need one stay with the CPU");
    app.add_option("--print-after", options->settings.print_after,
                   "Print what the compiler has behind that pass instead of the summary")
        ->type_name("PASS");
    app.add_option("--print-before", options->settings.print_before,
                   "Print what it has in front of that pass")
        ->type_name("PASS");
    auto* against = app.add_option("--against", options->against,
                                   "Compare with the same model as another compiler made it: "
                                   "estimate, bytes, placements")
                        ->type_name("FILE");
    app.add_option("--with", options->with,
                   "vendor: ask the vendor's compiler, where it is installed, and compare with it")
        ->check(CLI::IsMember({"vendor"}))
        ->excludes(against)
        ->type_name("WHOM");
    app.add_option("--report", options->report,
                   "Write what --json prints as a page (.html), the operators as a table (.csv), "
                   "or as it is (.json)")
        ->type_name("FILE");
    add_settings(app, options);
    app.add_flag("--all", options->all, "List every operator");
    auto* verify = app.add_flag(
        "--verify", options->verify,
        "Run both models, the compiled one on the watched simulator, and compare every byte; small "
        "models are verified unasked");
    auto* seed =
        app.add_option("--random-seed", options->random_seed,
                       "Verify with the simulated chip's engines advancing in a random order from "
                       "this seed: the bytes must be the same, and no engine may wait for ever")
            ->check(whole_number(0, std::numeric_limits<std::uint32_t>::max()))
            ->type_name("N");
    app.add_flag("--no-verify", options->no_verify, "Never")->excludes(verify)->excludes(seed);
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(with_example_chip(
        "Examples:\n"
        "  reef compile net.tflite --target CHIP -o net_CHIP.tflite\n"
        "  reef compile net.tflite --target CHIP -o net_CHIP.tflite --verify --all\n"
        "  reef compile net.tflite --target CHIP --print-after place\n"
        "  reef compile one.tflite another.tflite --target CHIP -o FOLDER\n"
        "  reef compile net.tflite --target CHIP --segments 2 -o FOLDER\n"
        "  reef compile net.tflite --target CHIP --against net_of_the_vendor.tflite --report "
        "r.html\n"
        "Operators that the chip does not take stay in the model, with the reason. Exit code 1 "
        "when "
        "a verification finds a difference; nothing is written then."));
    return [options](Console& console) { return compile_verb(*options, console); };
}

}  // namespace reef::tool

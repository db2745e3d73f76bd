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
#include "compile/compilation.h"
#include "compile/report.h"
#include "compile/several.h"
#include "compile/verification.h"
#include "inputs/chips.h"
#include "inputs/option_values.h"
#include "inspect/chip_text.h"
#include "outputs/file_output.h"
#include "outputs/json_output.h"
#include "outputs/stages.h"
#include "outputs/work_folder.h"
#include "reef/chip/compiler.h"
#include "reef/model/tflite.h"
#include "reef/runtime/registry.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

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

/// Errors: a setting that the compiler has not; a verification that the family cannot have.
Status check_settings(const chip::Compiler& compiler, const CompileVerbOptions& options) {
    const auto known = compiler.settings();
    for (const auto& [name, value] : options.settings.settings)
        if (std::ranges::find(known, name, &chip::CompilerSetting::name) == known.end())
            return fail(
                Cause::bad_argument,
                fmt::format("the compiler for '{}' has no option --{}", compiler.family(), name),
                {}, owners_of(name));
    if (!options.verify && !options.random_seed) return {};
    const std::string why = why_not_verifiable(compiler.family());
    if (why.empty()) return {};
    return fail(Cause::bad_argument, why, options.verify ? "--verify" : "--random-seed",
                "leave it out");
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

void print_compilation(Console& console, const CompileVerbOptions& options,
                       const chip::Compilation& done, const Proof& proof,
                       const std::optional<Against>& against) {
    print_operators(console, done, options.all);
    for (const auto& section : done.sections) print_section(console, section);
    print_proof(console, proof);
    if (against) print_against(console, *against);
}

/// Where standard output holds the model or a listing.
void tell_apart(const CompileVerbOptions& options, const Proof& proof) {
    const bool is_written = !options.out.empty();
    if (proof.refutes())
        print_diagnostic("compile", fmt::format("not verified{}: {}",
                                                is_written ? ", so that no model is written" : "",
                                                proof.verification->first_difference));
    else if (!proof.verification && is_written && !options.no_verify)
        print_diagnostic("compile", "not verified: " + in_flags(proof.missing));
}

void print_listing(Console& console, const chip::Compilation& done) {
    console.write(done.listing);
    for (const auto& section : done.sections)
        if (section.asked_for) print_section(console, section);
}

Result<Exit> compile_one(const CompileVerbOptions& options, Console& console) {
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
    const bool apart = prints_pass(options) || options.out == "-";
    if (options.json) {
        print_json(console, document);
    } else if (apart) {
        tell_apart(options, proof);
        if (prints_pass(options)) print_listing(console, done);
    } else {
        print_compilation(console, options, done, proof, against);
        if (right && !options.out.empty())
            console.print("\n{}: {} bytes\n", printable(options.out), bytes.size());
    }
    return right ? Exit::ok : Exit::failed;
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
    return compile_one(options, console);
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

/// What is compiled, for what, and to where.
void add_places(CLI::App& app, const std::shared_ptr<CompileVerbOptions>& options) {
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
}

/// How every compiler goes about it.
void add_ways(CLI::App& app, const std::shared_ptr<CompileVerbOptions>& options) {
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
}

/// What is shown of it beside the summary.
void add_views(CLI::App& app, const std::shared_ptr<CompileVerbOptions>& options) {
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
}

void add_verification(CLI::App& app, const std::shared_ptr<CompileVerbOptions>& options) {
    auto* verify = app.add_flag(
        "--verify", options->verify,
        "Run both models, the compiled one on the watched simulator, and compare every byte; small "
        "models are verified unasked, and what is not verified says why");
    auto* seed =
        app.add_option("--random-seed", options->random_seed,
                       "Verify with the simulated chip's engines advancing in a random order from "
                       "this seed: the bytes must be the same, and no engine may wait for ever")
            ->check(whole_number(0, std::numeric_limits<std::uint32_t>::max()))
            ->type_name("N");
    app.add_flag("--no-verify", options->no_verify, "Never")->excludes(verify)->excludes(seed);
}

}  // namespace

Action add_compile(CLI::App& app) {
    auto options = std::make_shared<CompileVerbOptions>();
    add_places(app, options);
    add_ways(app, options);
    add_views(app, options);
    add_settings(app, options);
    app.add_flag("--all", options->all, "List every operator");
    add_verification(app, options);
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

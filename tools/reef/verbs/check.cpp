// reef check: rules that show without running anything, for every kind of file and every chip.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "check/program_check.h"
#include "inputs/chips.h"
#include "inputs/file_kinds.h"
#include "inspect/chip_text.h"
#include "outputs/json_output.h"
#include "outputs/model_text.h"
#include "reef/base/file.h"
#include "reef/chip/checker.h"
#include "reef/model/tflite.h"
#include "reef/runtime/registry.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct CheckOptions {
    std::string file;
    std::string target;
    bool json = false;
};

Json check_json(const CheckOptions& options, std::string_view kind,
                const chip::CheckReport& report) {
    Json document = json_document("check");
    document["file"] = options.file;
    document["kind"] = kind;
    document["passed"] = report.passed();
    document["findings"] = Json::array();
    for (const chip::Finding& one : report.findings)
        document["findings"].push_back(
            {{"rule", one.rule}, {"fault", one.fault}, {"place", one.place}, {"what", one.what}});
    document.update(tool::to_json(chip::Value(report.document)));
    return document;
}

void print_findings(Console& console, const std::vector<chip::Finding>& findings, bool faults) {
    for (const chip::Finding& one : findings) {
        if (one.fault != faults) continue;
        console.print("  {}: {}{}{}\n", one.rule, printable(one.place),
                      one.place.empty() ? "" : ": ", printable(in_flags(one.what)));
    }
}

Exit print_report(Console& console, const CheckOptions& options, std::string_view kind,
                  const chip::CheckReport& report) {
    if (options.json) {
        print_json(console, check_json(options, kind, report));
        return report.passed() ? Exit::ok : Exit::failed;
    }
    const auto faults = static_cast<std::size_t>(
        std::ranges::count_if(report.findings, [](const auto& one) { return one.fault; }));
    const std::size_t notes = report.findings.size() - faults;
    console.print("{}  {}: {}{}\n", console.heading(printable(file_name(options.file))), kind,
                  faults == 0 ? "no fault" : plural(faults, "fault"),
                  notes == 0 ? "" : ", " + plural(notes, "note"));
    print_findings(console, report.findings, true);
    if (notes > 0) console.print("\n{}\n", console.heading("Notes"));
    print_findings(console, report.findings, false);
    for (const chip::Section& section : report.sections) print_section(console, section);
    return faults == 0 ? Exit::ok : Exit::failed;
}

std::string targets_text() {
    std::vector<std::string> families;
    for (const auto* each : runtime::Registry::of_process().parts<chip::TargetChecker>())
        families.emplace_back(each->family());
    return families.empty() ? "no chip of this build says what it takes without compiling"
                            : "targets are " + runtime::in_a_row(families);
}

Result<const chip::TargetChecker*> checker_of(const std::string& target) {
    if (target.empty())
        return fail(Cause::bad_argument,
                    "a plain model has no rules of its own: `target` names the chip that it is "
                    "checked against",
                    {}, targets_text());
    const auto* checker = runtime::Registry::of_process().part<chip::TargetChecker>(target);
    if (checker == nullptr)
        return fail(Cause::bad_argument,
                    fmt::format("no plain model is checked against '{}'", target), {},
                    targets_text());
    return checker;
}

Result<Exit> check_model(const SharedBytes& file, const CheckOptions& options, Console& console) {
    const auto model = REEF_TRY(in_place(model::read_tflite(file), options.file));
    const std::string_view family = family_of(model);
    if (family.empty()) {
        const auto* checker = REEF_TRY(in_place(checker_of(options.target), options.file));
        const auto report = REEF_TRY(in_place(checker->check(model), options.file));
        return print_report(console, options,
                            fmt::format("plain model for the {}", checker->name()), report);
    }
    if (!options.target.empty() && options.target != family)
        return fail(
            Cause::bad_argument,
            fmt::format("the model is compiled for '{}', not for '{}'", family, options.target),
            options.file, "leave `target` out");
    const auto programs = REEF_TRY(in_place(runtime::program_streams_of(file), options.file));
    return check_programs(console, "check", programs, options.file, options.json);
}

Result<Exit> check_verb(const CheckOptions& options, Console& console) {
    const SharedBytes file = REEF_TRY(read_file(options.file));
    if (const auto* checker = kind_of<chip::FileChecker>(file.view())) {
        if (!options.target.empty() && options.target != checker->family())
            return fail(Cause::bad_argument,
                        fmt::format("this {} is not for '{}'", checker->kind(), options.target),
                        options.file, "leave `target` out");
        const auto report = REEF_TRY(in_place(checker->check(file), options.file));
        return print_report(console, options, checker->kind(), report);
    }
    if (is_tflite(file.view())) return check_model(file, options, console);
    if (options.target.empty())
        REEF_CHECK(in_place(refuse_unknown_kind<chip::FileChecker>(file.view()), options.file));
    REEF_CHECK(in_place(refuse_empty(file.view()), options.file));
    // A raw stream of instructions does not say whose it is.
    const auto programs =
        REEF_TRY(in_place(runtime::program_streams_of(file, options.target), options.file));
    return check_programs(console, "check", programs, options.file, options.json);
}

}  // namespace

Action add_check(CLI::App& app) {
    auto options = std::make_shared<CheckOptions>();
    app.add_option("FILE", options->file,
                   "A compiled model, a plain one with --target, or a file of another kind that "
                   "is known; - reads standard input")
        ->required();
    app.add_option("--target", options->target,
                   "The chip that a plain model is checked against, or whose instructions a raw "
                   "stream holds")
        ->type_name("FAMILY");
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(with_example_chip(
        "Examples:\n"
        "  reef check net_CHIP.tflite\n"
        "  reef check net.tflite --target CHIP\n"
        "  reef check stream.bin --target CHIP\n"
        "What the file is decides what is checked. Exit code 1 when a rule is broken."));
    return [options](Console& console) { return check_verb(*options, console); };
}

}  // namespace reef::tool

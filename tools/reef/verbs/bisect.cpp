// reef bisect: the operator of a final.mlir where the tensors first go wrong.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "final_mlir/bisection_run.h"
#include "inputs/option_values.h"
#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/sophgo/final_engine.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

using sophgo::Verdict;

struct BisectOptions {
    std::string file;
    std::string reference;
    std::string actual;
    std::string command;
    std::vector<double> tolerance = {0.99, 0.90};
    bool all = false;
    bool json = false;
};

std::string_view verdict_name(Verdict verdict) {
    switch (verdict) {
        case Verdict::right:
            return "right";
        case Verdict::wrong:
            return "wrong";
        case Verdict::unknown:
            return "not in the files";
        case Verdict::constant:
            return "a weight";
    }
    return "unknown";
}

Result<NamedArrays> load_arrays(const std::string& path) {
    const SharedBytes file = REEF_TRY(read_file(path));
    return in_place(read_npz(file.view()), path);
}

Json judged_json(const sophgo::FinalProgram& program, const sophgo::Judged& one) {
    Json out = {{"name", program.at(one.value).name},
                {"operator", one.op->kind},
                {"verdict", verdict_name(one.verdict)}};
    if (one.verdict == Verdict::unknown) return out;
    out["cosine"] = one.numbers.cosine;
    out["euclid"] = one.numbers.euclid;
    out["only_one_finite"] = one.numbers.nan_only_one;
    if (!one.problem.empty()) out["problem"] = one.problem;
    return out;
}

void print_judged(Console& console, const sophgo::FinalProgram& program,
                  const sophgo::Bisection& found, bool all) {
    TextTable table({{"operator"},
                     {"tensor"},
                     {"cos", Align::right},
                     {"euclid", Align::right},
                     {"only one finite", Align::right},
                     {"verdict"}});
    for (const sophgo::Judged& one : found.tensors) {
        if (one.verdict == Verdict::unknown ? !all : one.verdict == Verdict::right && !all)
            continue;
        const bool numbers = one.verdict != Verdict::unknown && one.problem.empty();
        table.add({one.op->kind, program.at(one.value).name,
                   numbers ? fmt::format("{:.6f}", one.numbers.cosine) : "",
                   numbers ? fmt::format("{:.6f}", one.numbers.euclid) : "",
                   numbers ? std::to_string(one.numbers.nan_only_one) : "",
                   one.problem.empty() ? std::string(verdict_name(one.verdict)) : one.problem});
    }
    if (!table.empty()) table.print(console);
}

/// Names of tensors that were not compared, where one of them may be the first that is wrong.
std::vector<std::string> unseen_names(const sophgo::FinalProgram& program,
                                      const sophgo::Bisection& found) {
    std::vector<std::string> names;
    for (const std::size_t i : sophgo::not_compared_before(program, found, *found.first_wrong))
        names.push_back(program.at(found.tensors[i].value).name);
    return names;
}

void print_unseen(Console& console, const std::vector<std::string>& names) {
    constexpr std::size_t shown = 8;
    if (names.empty()) return;
    std::vector<std::string> some(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), shown)));
    if (names.size() > shown) some.push_back(fmt::format("{} more", names.size() - shown));
    console.print("  or one before it that was not compared: {}\n",
                  printable(fmt::format("{}", fmt::join(some, ", "))));
}

/// Where the operators are not to blame.
void print_wrong_inputs(Console& console, const sophgo::FinalProgram& program,
                        const std::vector<sophgo::Judged>& inputs) {
    for (const sophgo::Judged& one : inputs)
        if (one.verdict == Verdict::wrong)
            console.print("The input {} differs already{}{}\n",
                          printable(program.at(one.value).name), one.problem.empty() ? "" : ": ",
                          one.problem);
}

/// Prints the first wrong operator, or gives what JSON says of it.
Json first_wrong(const BisectOptions& options, const sophgo::FinalProgram& program,
                 const sophgo::Bisection& found, Console& console) {
    const auto& first = found.tensors[*found.first_wrong];
    const std::string cut = cut_command(options.file, sophgo::units_of(program)[first.unit].names);
    const auto unseen = unseen_names(program, found);
    Json inputs = Json::object();
    if (!options.json)
        console.print("\nThe first wrong operator is {} {}\n", first.op->kind,
                      printable(program.at(first.value).name));
    for (const auto& [name, verdict] : sophgo::inputs_of(program, found, *found.first_wrong)) {
        inputs[name] = verdict_name(verdict);
        if (!options.json)
            console.print("  reads {}: {}\n", printable(name), verdict_name(verdict));
    }
    if (!options.json) {
        print_unseen(console, unseen);
        console.print("  cut   {}\n", printable(cut));
    }
    return {{"name", program.at(first.value).name},
            {"operator", first.op->kind},
            {"inputs", inputs},
            {"not_compared_before", unseen},
            {"cut", cut}};
}

Result<Exit> bisect_files(const BisectOptions& options, const sophgo::FinalProgram& program,
                          Console& console) {
    const sophgo::Tolerance tolerance{options.tolerance[0], options.tolerance[1]};
    const auto found =
        REEF_TRY(in_place(sophgo::bisect(program, REEF_TRY(load_arrays(options.reference)),
                                         REEF_TRY(load_arrays(options.actual)), tolerance),
                          options.file));
    const bool inputs_differ = std::ranges::any_of(
        found.inputs, [](const auto& one) { return one.verdict == Verdict::wrong; });
    Json document = json_document("bisect");
    document["file"] = options.file;
    document["compared"] = found.compared;
    document["inputs"] = Json::array();
    for (const auto& one : found.inputs) document["inputs"].push_back(judged_json(program, one));
    document["tensors"] = Json::array();
    for (const auto& one : found.tensors) document["tensors"].push_back(judged_json(program, one));
    document["first_wrong"] = nullptr;
    if (!options.json) {
        console.print("{} of {} tensors compared, every element\n", found.compared,
                      found.tensors.size());
        print_judged(console, program, found, options.all);
        print_wrong_inputs(console, program, found.inputs);
    }
    if (found.first_wrong)
        document["first_wrong"] = first_wrong(options, program, found, console);
    else if (!options.json)
        console.print("{}\n", inputs_differ ? "all that is computed is right" : "all are right");
    if (options.json) print_json(console, document);
    return found.first_wrong || inputs_differ ? Exit::failed : Exit::ok;
}

std::string first_name(const sophgo::FinalProgram& program, const sophgo::Operator& op) {
    return op.results.empty() ? std::string() : program.at(op.results.front()).name;
}

Json wrong_unit_json(const sophgo::FinalProgram& program, const WrongUnit& found,
                     const std::string& cut) {
    Json suspects = Json::array();
    for (const sophgo::Operator* op : found.suspects)
        suspects.push_back({{"name", first_name(program, *op)}, {"operator", op->kind}});
    return {{"name", found.unit.names.front()},
            {"operator", found.unit.op->kind},
            {"suspects", suspects},
            {"cut", cut}};
}

/// One suspect is the operator; of several the group is told, and then they.
void print_wrong_unit(Console& console, const sophgo::FinalProgram& program, const WrongUnit& found,
                      const std::string& cut) {
    const bool known = found.suspects.size() == 1;
    const sophgo::Operator& op = known ? *found.suspects.front() : *found.unit.op;
    console.print("\nThe first wrong operator is {} {}\n", op.kind,
                  printable(first_name(program, op)));
    if (!known) {
        console.print("  one of its {} operators is at fault:\n", found.suspects.size());
        for (const sophgo::Operator* suspect : found.suspects)
            console.print("    {} {}\n", suspect->kind, printable(first_name(program, *suspect)));
    }
    console.print("  cut   {}\n", printable(cut));
}

Result<Exit> bisect_runs(const BisectOptions& options, const sophgo::FinalProgram& program,
                         const SharedBytes& file, Console& console) {
    BisectionRun run{.file = options.file,
                     .text = as_text(file.view()),
                     .command = options.command,
                     .reference = {},
                     .tolerance = {options.tolerance[0], options.tolerance[1]},
                     .program = program,
                     .steps = {}};
    if (!options.reference.empty()) run.reference = REEF_TRY(load_arrays(options.reference));
    const auto found = REEF_TRY(in_place(run.narrow_down(), options.file));
    Json document = json_document("bisect");
    document["file"] = options.file;
    document["runs"] = Json::array();
    for (const auto& [names, wrong] : run.steps) {
        document["runs"].push_back({{"at", names}, {"verdict", wrong ? "wrong" : "right"}});
        if (!options.json)
            console.print("{}  {}\n", wrong ? "wrong" : "right",
                          printable(fmt::format("{}", fmt::join(names, ","))));
    }
    document["first_wrong"] = nullptr;
    if (found) {
        const std::string cut = cut_command(options.file, found->unit.names);
        document["first_wrong"] = wrong_unit_json(program, *found, cut);
        if (!options.json) print_wrong_unit(console, program, *found, cut);
    } else if (!options.json) {
        console.print("all are right\n");
    }
    if (options.json) print_json(console, document);
    return found ? Exit::failed : Exit::ok;
}

Result<Exit> bisect_verb(const BisectOptions& options, Console& console) {
    if (options.command.empty() && (options.reference.empty() || options.actual.empty()))
        return fail(Cause::bad_argument, "--reference and --actual, or --run, are missing");
    if (!options.command.empty() && !options.actual.empty())
        return fail(Cause::bad_argument, "--run finds out itself what --actual says");
    if (options.reference.empty() && options.command.find("{npz}") != std::string::npos)
        return fail(Cause::bad_argument, "--reference is missing: what {npz} is compared with");
    if (!options.command.empty() && options.command.find("{mlir}") == std::string::npos)
        return fail(Cause::bad_argument,
                    "--run has no {mlir}: the command would judge every cut alike", {},
                    "write {mlir} where it reads the cut file");
    const SharedBytes file = REEF_TRY(read_file(options.file));
    const sophgo::FinalEngine* engine = REEF_TRY(sophgo::final_engine());
    const auto program = REEF_TRY(in_place(engine->read(as_text(file.view())), options.file));
    return options.command.empty() ? bisect_files(options, program, console)
                                   : bisect_runs(options, program, file, console);
}

}  // namespace

Action add_bisect(CLI::App& app) {
    app.description("Find the operator of a final.mlir where tensors go wrong");
    auto options = std::make_shared<BisectOptions>();
    app.add_option("FILE", options->file, "A final.mlir of TPU-MLIR")->required();
    app.add_option("--reference", options->reference, "Tensors by name, as they should be")
        ->type_name("NPZ");
    app.add_option("--actual", options->actual, "Tensors by name, as they are")->type_name("NPZ");
    app.add_option("--tolerance", options->tolerance,
                   "Cosine and Euclidean similarity that both must be reached (default 0.99,0.90)")
        ->delimiter(',')
        ->expected(2)
        ->check(real_number(-1, 1))
        ->type_name("COS,EUCLID");
    app.add_option("--run", options->command,
                   "Cut, run this command and narrow down: {mlir} is the cut file, {npz} where the "
                   "command writes its outputs; without {npz} exit code 0 says right, 1 wrong")
        ->type_name("CMD");
    app.add_flag("--all", options->all, "List every tensor, not only the wrong ones");
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(
        "Examples:\n"
        "  reef bisect net_final.mlir --reference ref.npz --actual act.npz\n"
        "  reef bisect net_final.mlir --reference ref.npz --run './build_and_run.sh {mlir} {npz}'\n"
        "Exit code 1 when an operator is wrong.");
    return [options](Console& console) { return bisect_verb(*options, console); };
}

}  // namespace reef::tool

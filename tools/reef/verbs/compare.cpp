// reef compare: two files, two folders, one model on two devices, or a compiled model and its plain
// one, tensor by tensor.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compare/comparison.h"
#include "compare/layer_comparison.h"
#include "inputs/chips.h"
#include "inputs/drawn_input.h"
#include "inputs/option_values.h"
#include "inputs/tensor_set.h"
#include "outputs/model_text.h"
#include "reef/base/file.h"
#include "reef/model/part.h"
#include "reef/model/tflite.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct CompareOptions {
    std::string a;
    std::string b;
    std::vector<std::string> on;
    std::vector<std::string> inputs;
    std::uint64_t seed = 1;
    ComparisonRules rules;
    bool rules_given = false;
    bool layers = false;
    bool all = false;
    bool json = false;
    bool csv = false;
};

/// A model whose name or contents say so; what cannot be read is no model.
bool is_model(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return false;
    const auto file = read_file(path, FileAccess::scattered);
    return file && model::is_tflite(file->view());
}

bool two_models(const CompareOptions& options) {
    return options.on.empty() && is_model(options.a) && is_model(options.b);
}

/// One of the forms, completely.
Status check_form(const CompareOptions& options) {
    if (options.layers) {
        if (!options.on.empty() || options.b.empty())
            return fail(Cause::bad_argument, "--layers takes a compiled model and its plain one");
        return {};
    }
    if (options.on.empty()) {
        if (options.b.empty()) {
            return fail(Cause::bad_argument, "one thing to compare", {},
                        "give two files or folders, or a model with --on twice");
        }
        if (!options.inputs.empty() && !two_models(options)) {
            return fail(Cause::bad_argument, "--input belongs to models", {},
                        "give two models, or one with --on or --layers");
        }
        return {};
    }
    if (options.on.size() != 2) {
        return fail(Cause::bad_argument,
                    fmt::format("--on given {} times, not twice", options.on.size()));
    }
    if (!options.b.empty()) {
        return fail(Cause::bad_argument, "two things to compare and --on", {},
                    "--on takes one model");
    }
    return {};
}

/// A run on what --input gives, on `drawn` where that is not empty, or else on random values.
Status run_with_inputs(const CompareOptions& options, OpenModel& opened, const std::string& name,
                       const InputBytes& drawn = {}) {
    const auto& graph = opened.session.graph();
    set_inputs(opened.session, drawn.empty()
                                   ? REEF_TRY(inputs_or_random(graph, options.inputs, options.seed))
                                   : drawn);
    if (auto ran = opened.session.run(); !ran)
        return std::unexpected((options.inputs.empty() && drawn.empty()
                                    ? of_random_inputs(std::move(ran.error()), graph)
                                    : std::move(ran.error()))
                                   .in(name));
    return {};
}

Result<NamedArrays> run_on(const CompareOptions& options, const std::string& on) {
    const DeviceOptions device = REEF_TRY(in_place(parse_device_options(on), "--on " + on));
    OpenModel opened = REEF_TRY(open_model(options.a, device, Kept::all_tensors));
    REEF_CHECK(run_with_inputs(options, opened, options.a));
    return computed_tensors(opened.session);
}

/// What a model gives, and where it ran.
struct ModelRun {
    NamedArrays outputs;
    std::string device;
};

Result<ModelRun> run_model(const CompareOptions& options, NamedModel of, const InputBytes& drawn) {
    ModelRun run;
    run.device = device_for(of.model);
    OpenModel opened =
        REEF_TRY(open_model(std::move(of.model), of.name, session_options({.device = run.device})));
    REEF_CHECK(run_with_inputs(options, opened, of.name, drawn));
    run.outputs = graph_outputs(opened.session);
    return run;
}

std::string text_of(const model::Subgraph& graph, std::size_t input) {
    return shape_and_type(graph.tensors[static_cast<std::size_t>(graph.inputs[input])]);
}

/// The same random bytes are the same inputs only where these are alike.
Status check_random_inputs(const NamedModel& a, const NamedModel& b) {
    const auto &of_a = a.model.subgraphs.front(), &of_b = b.model.subgraphs.front();
    constexpr std::string_view hint =
        "random inputs cannot be the same for both; name pictures or arrays with --input";
    if (of_a.inputs.size() != of_b.inputs.size())
        return fail(
            Cause::bad_input,
            fmt::format("{} inputs, and {} of {}", of_b.inputs.size(), of_a.inputs.size(), a.name),
            b.name, std::string(hint));
    for (std::size_t i = 0; i < of_a.inputs.size(); ++i)
        if (const auto mine = text_of(of_b, i), other = text_of(of_a, i); mine != other)
            return fail(Cause::bad_input,
                        fmt::format("input {} is {}, and {} of {}", i, mine, other, a.name), b.name,
                        std::string(hint));
    return {};
}

/// Where the plain model's part that a segment of it computes begins and ends; nothing for other
/// models.
std::optional<model::PartEnds> part_in(const NamedModel& plain, const NamedModel& compiled) {
    if (is_compiled(plain.model) || !is_compiled(compiled.model)) return std::nullopt;
    return model::ends_in(plain.model, compiled.model);
}

/// Without --input, what a segment is given when the whole network runs on random inputs: nothing
/// for other models.
Result<InputBytes> drawn_for_segment(const CompareOptions& options, const NamedModel& plain,
                                     const NamedModel& compiled) {
    const auto ends = part_in(plain, compiled);
    if (!options.inputs.empty() || !ends) return InputBytes{};
    return in_place(random_inputs_of_part(plain.model, *ends, options.seed), plain.name);
}

/// Of a plain model, what a segment of it computes; all else as it is.
Status take_part(NamedModel& plain, const NamedModel& compiled) {
    const auto ends = part_in(plain, compiled);
    if (!ends) return {};
    const std::string name = REEF_TRY(in_place(name_of_part(plain, compiled.model), plain.name));
    plain.model = REEF_TRY(in_place(model::part_between(plain.model, *ends), plain.name));
    plain.name = name;
    return {};
}

/// Two models with the same inputs, by their outputs.
Result<ComparedSets> compare_models(const CompareOptions& options) {
    NamedModel a{options.a, REEF_TRY(model::load_tflite(options.a))};
    NamedModel b{options.b, REEF_TRY(model::load_tflite(options.b))};
    InputBytes drawn = REEF_TRY(drawn_for_segment(options, a, b));
    if (drawn.empty()) drawn = REEF_TRY(drawn_for_segment(options, b, a));
    REEF_CHECK(take_part(a, b));
    REEF_CHECK(take_part(b, a));
    if (options.inputs.empty()) REEF_CHECK(check_random_inputs(a, b));
    const std::array names{a.name, b.name};
    const ModelRun of_a = REEF_TRY(run_model(options, std::move(a), drawn));
    const ModelRun of_b = REEF_TRY(run_model(options, std::move(b), drawn));
    ComparedSets sets = REEF_TRY(compare_sets(of_a.outputs, of_b.outputs, options.rules));
    sets.a = fmt::format("{} on {}", names[0], of_a.device);
    sets.b = fmt::format("{} on {}", names[1], of_b.device);
    return sets;
}

/// Errors also: those of reading the other side, which may be missing.
Status check_both_arrays(const CompareOptions& options) {
    for (const auto& [one, other] : {std::pair(&options.a, &options.b), {&options.b, &options.a}})
        if (is_model(*one)) {
            (void)REEF_TRY(load_tensor_set(*other));
            return fail(
                Cause::bad_input,
                fmt::format("a model cannot be compared with arrays, as those of {}", *other), *one,
                "reef run MODEL --output DIR writes its outputs as arrays");
        }
    return {};
}

Result<ComparedSets> compare_sides(const CompareOptions& options) {
    if (options.on.empty()) {
        REEF_CHECK(check_both_arrays(options));
        const NamedArrays a = REEF_TRY(load_tensor_set(options.a));
        const NamedArrays b = REEF_TRY(load_tensor_set(options.b));
        return compare_sets(a, b, options.rules);
    }
    const NamedArrays a = REEF_TRY(run_on(options, options.on[0]));
    const NamedArrays b = REEF_TRY(run_on(options, options.on[1]));
    return compare_sets(a, b, options.rules);
}

Result<Exit> compare_layers_verb(const CompareOptions& options, Console& console) {
    LayersToCompare what{.compiled = {options.a, REEF_TRY(model::load_tflite(options.a))},
                         .plain = {options.b, REEF_TRY(model::load_tflite(options.b))},
                         .inputs = {},
                         .rules = options.rules,
                         .rules_given = options.rules_given};
    const auto& graph = what.compiled.model.subgraphs.front();
    what.inputs = REEF_TRY(drawn_for_segment(options, what.plain, what.compiled));
    if (what.inputs.empty())
        what.inputs = REEF_TRY(inputs_or_random(graph, options.inputs, options.seed));
    const LayerComparison result = REEF_TRY(compare_layers(std::move(what)));
    if (options.csv) {
        print_comparison_csv(console, result.sets);
    } else if (options.json) {
        print_json(console, layer_comparison_json(result));
    } else {
        print_layer_comparison_text(console, result, options.all);
    }
    return result.sets.same() ? Exit::ok : Exit::failed;
}

Result<Exit> compare_verb(const CompareOptions& options, Console& console) {
    REEF_CHECK(check_form(options));
    if (options.layers) return compare_layers_verb(options, console);
    const bool models = two_models(options);
    ComparedSets sets = REEF_TRY(models ? compare_models(options) : compare_sides(options));
    if (!models) {
        sets.a = options.on.empty() ? options.a : options.a + " on " + options.on[0];
        sets.b = options.on.empty() ? options.b : options.a + " on " + options.on[1];
    }
    if (options.csv) {
        print_comparison_csv(console, sets);
    } else if (options.json) {
        print_json(console, comparison_json(sets));
    } else {
        print_comparison_text(console, sets, options.all);
    }
    return sets.same() ? Exit::ok : Exit::failed;
}

/// What is compared, and on what inputs.
void add_sides(CLI::App& app, const std::shared_ptr<CompareOptions>& options) {
    app.add_option("A", options->a,
                   "A .npy or .npz file, a folder of .npy files; a model; one model with --on; a "
                   "compiled model with --layers")
        ->required();
    app.add_option("B", options->b,
                   "What to compare A with; two models run with the same inputs, compiled ones on "
                   "a simulated chip; of a segment of a pipeline, the plain model of the whole");
    app.add_option(
           "--on", options->on,
           "Twice: run the model A there and compare every tensor; a device, then "
           "kernels=fast|reference, arithmetic=RULES, placed-as=COMPILED or threads=N after "
           "commas")
        ->type_name("DEVICE[,OPTION=VALUE...]")
        ->allow_extra_args(false);
    app.add_flag("--layers", options->layers,
                 "Run the compiled model A on a simulated chip and the plain model B on the CPU "
                 "in the chip's arithmetic, or operator by operator on what the chip gave, and "
                 "compare the tensor of each layer");
    app.add_option(
           "--input", options->inputs,
           "Of models: an input as for reef run (default: random values; of a segment with the "
           "whole plain model, what that computes of random values)")
        ->type_name("X")
        ->allow_extra_args(false);
    app.add_option("--seed", options->seed, "Seed of the random inputs")
        ->check(whole_number())
        ->type_name("N")
        ->capture_default_str();
}

/// What counts as equal. Returns the options of tensors, which may be given or not.
std::array<CLI::Option*, 3> add_rules(CLI::App& app,
                                      const std::shared_ptr<CompareOptions>& options) {
    auto* absolute = app.add_option("--tolerance,--atol", options->rules.tolerance.absolute,
                                    "Largest |a - b| that counts as equal")
                         ->check(real_number(0))
                         ->type_name("X")
                         ->capture_default_str();
    auto* relative =
        app.add_option("--relative-tolerance,--rtol", options->rules.tolerance.relative,
                       "So many times |b| is added to the tolerance")
            ->check(real_number(0))
            ->type_name("X")
            ->capture_default_str();
    auto* cosine =
        app.add_option("--cosine", options->rules.least_cosine,
                       "A tensor is equal when its cosine is no smaller, however far elements are "
                       "apart; with a tolerance it must keep both")
            ->check(real_number(-1, 1))
            ->type_name("X");
    app.add_flag("--common", options->rules.only_common,
                 "Leave out names that only one side has (otherwise they are differences)");
    return {absolute, relative, cosine};
}

}  // namespace

Action add_compare(CLI::App& app) {
    auto options = std::make_shared<CompareOptions>();
    add_sides(app, options);
    const auto rules = add_rules(app, options);
    app.add_flag("--all", options->all, "List equal tensors too, however many");
    auto* json = app.add_flag("--json", options->json, "Print JSON");
    app.add_flag("--csv", options->csv, "Print comma-separated values, a line for each tensor")
        ->excludes(json);
    app.footer(with_example_chip(
        "Examples:\n"
        "  reef compare out0.npy expected.npy --tolerance 1e-5\n"
        "  reef compare tensors golden.npz --common\n"
        "  reef compare out0.npy expected.npy --atol 1e-5 --rtol 1e-3 --cosine 0.999\n"
        "  reef compare old.tflite new.tflite --input cat.jpg\n"
        "  reef compare net.tflite --on cpu --on cpu,kernels=reference --input cat.jpg\n"
        "  reef compare net.tflite --on cpu --on cpu,arithmetic=CHIP --input cat.jpg\n"
        "  reef compare net_CHIP.tflite net.tflite --layers --input cat.jpg\n"
        "  reef run net_CHIP.tflite --device CHIP:sim --dump-layers chip --like net.tflite\n"
        "Exit code 1 when something differs."));
    return [=](Console& console) {
        options->rules_given =
            std::ranges::any_of(rules, [](const CLI::Option* rule) { return rule->count() > 0; });
        return compare_verb(*options, console);
    };
}

}  // namespace reef::tool

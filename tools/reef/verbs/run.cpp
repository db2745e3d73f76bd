// reef run: one inference, what came out, where every operator ran, how long it took.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compare/layer_dump.h"
#include "inputs/chips.h"
#include "inputs/model_session.h"
#include "inputs/option_values.h"
#include "inputs/tensor_set.h"
#include "outputs/array_output.h"
#include "outputs/file_output.h"
#include "outputs/stages.h"
#include "reef/model/tflite.h"
#include "run/result.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct RunOptions {
    std::string model;
    DeviceOptions device;
    std::vector<std::string> inputs, inputs_behind;
    PictureRules pictures;
    std::string labels;
    std::optional<std::size_t> top;
    std::string out;
    std::string dump_all;
    std::string dump_layers;
    std::string like;
    std::optional<std::size_t> runs;
    bool placements = false;
    bool json = false;
};

/// Tells the bar how many operators are done.
class OperatorProgress final : public graph::RunObserver {
  public:
    explicit OperatorProgress(std::size_t count) : count_(count), bar_("running") {}
    void on_operator(std::size_t index, Clock::time_point, Clock::time_point) override {
        bar_.update(static_cast<double>(index + 1) / static_cast<double>(count_));
    }

  private:
    std::size_t count_;
    Progress bar_;
};

/// Without --runs: as many more as fit into a tenth of a second, at least one and at most 50.
Result<LatencySummary> time_more_runs(runtime::Session& session, const InputBytes& inputs,
                                      double first, std::optional<std::size_t> wanted) {
    constexpr double budget_seconds = 0.1;
    constexpr std::size_t at_most = 50;
    std::vector<double> seconds;
    double total = first;
    const auto more = [&]() {
        if (wanted) return seconds.size() + 1 < *wanted;
        return seconds.size() < at_most && total < budget_seconds;
    };
    while (more()) {
        session.reset_state();
        set_inputs(session, inputs);
        seconds.push_back(REEF_TRY(timed_run(session)));
        total += seconds.back();
    }
    if (seconds.empty()) seconds.push_back(first);
    return summarize(std::move(seconds));
}

Status check_layer_options(const RunOptions& options) {
    if (!options.like.empty() && options.dump_layers.empty())
        return fail(Cause::bad_argument, "--like belongs to --dump-layers");
    if (!options.dump_layers.empty() &&
        !any_device_has(options.device, runtime::Capability::layers))
        return fail(
            Cause::bad_argument,
            fmt::format("--dump-layers looks into a simulated chip, not into {}",
                        device_text(options.device)),
            {},
            with_example_chip("add --device CHIP:sim; --dump-all writes what the CPU computes"));
    return {};
}

Result<std::optional<LayerDump>> layers_of(const RunOptions& options, const OpenModel& opened) {
    if (options.dump_layers.empty()) return std::nullopt;
    Stages stages(1);
    stages.begin("gathering the layers' tensors");
    if (options.like.empty())
        return REEF_TRY(
            in_place(runtime::dump_layers(opened.model, opened.session, nullptr), options.model));
    const model::Model plain = REEF_TRY(
        in_place(runtime::plain_model_of(opened.model, REEF_TRY(model::load_tflite(options.like))),
                 options.like));
    LayerDump dump = REEF_TRY(
        in_place(runtime::dump_layers(opened.model, opened.session, &plain), options.model));
    if (std::ranges::none_of(dump.layers,
                             [](const auto& layer) { return layer.match.has_value(); }))
        return fail(Cause::bad_input, "none of the program's layers is a tensor of it",
                    options.like, "give the plain model that it was compiled from");
    return dump;
}

void add_picture_options(CLI::App& app, PictureRules& rules) {
    const auto numbers = [&](const char* name, std::vector<double>& values, const char* what) {
        app.add_option(name, values, what)
            ->delimiter(',')
            ->allow_extra_args(false)
            ->type_name("X[,X,X]");
    };
    numbers("--mean", rules.mean,
            "Of pictures: what is taken from each pixel (0 to 255), for all channels or each");
    numbers("--std", rules.deviation, "Of pictures: what the rest is divided by");
    app.add_option("--resize", rules.resize,
                   "Scale pictures to so many pixels at the shorter side, then cut the middle out")
        ->check(whole_number(1, 65536))
        ->type_name("N");
    app.add_flag("--crop", rules.crop,
                 "Cut the middle out of pictures instead of changing their proportions");
    app.add_flag("--bgr", rules.bgr, "The network takes blue first");
}

Result<Exit> run(const RunOptions& options, Console& console) {
    REEF_CHECK(check_layer_options(options));
    REEF_CHECK(check_output_folder(options.out, "out", options.inputs));
    REEF_CHECK(check_output_folder(options.dump_all, "t", options.inputs));
    REEF_CHECK(check_output_folder(options.dump_layers, options.like.empty() ? "layer_" : "t",
                                   options.inputs));
    RunReport report{.model = options.model,
                     .device = device_text(options.device),
                     .arithmetic = arithmetic_of(options.device),
                     .threads = options.device.threads,
                     .top = options.top.value_or(RunReport{}.top),
                     .top_asked = options.top.has_value(),
                     .list_placements = options.placements};
    const bool looks_inside = !options.dump_all.empty() || !options.dump_layers.empty();
    OpenModel opened = REEF_TRY(
        open_model(options.model, options.device, looks_inside ? Kept::all_tensors : Kept::ends));
    runtime::Session& session = opened.session;
    if (!options.labels.empty()) {
        report.labels = REEF_TRY(read_labels(options.labels));
        REEF_CHECK(in_place(check_labels(session.graph(), report.labels), options.labels));
    }
    const InputBytes inputs =
        REEF_TRY(load_inputs(session.graph(), options.inputs, options.pictures));

    set_inputs(session, inputs);
    {
        OperatorProgress progress(session.placements().size());
        report.first_seconds = REEF_TRY(in_place(timed_run(session, &progress), options.model));
    }
    if (options.device.strict) report.findings = session.findings();
    const NamedArrays outputs = options.out.empty() ? NamedArrays{} : graph_outputs(session);
    const NamedArrays computed =
        options.dump_all.empty() ? NamedArrays{} : computed_tensors(session);
    const auto layers = REEF_TRY(layers_of(options, opened));
    if (layers) report.layers = &*layers;
    report.latency = REEF_TRY(time_more_runs(session, inputs, report.first_seconds, options.runs));
    if (options.json) {
        print_run_json(console, session, report);
    } else {
        print_run_text(console, session, report);
        if (layers) print_layers_text(console, *layers, options.dump_layers);
    }
    if (!options.out.empty()) REEF_CHECK(write_arrays(options.out, outputs));
    if (!options.dump_all.empty()) REEF_CHECK(write_arrays(options.dump_all, computed));
    if (layers) REEF_CHECK(write_arrays(options.dump_layers, arrays_of(*layers)));
    return options.device.strict && !report.findings->empty() ? Exit::failed : Exit::ok;
}

}  // namespace

Action add_run(CLI::App& app) {
    auto options = std::make_shared<RunOptions>();
    app.add_option("MODEL", options->model, "A .tflite file")->required();
    app.add_option("--input", options->inputs,
                   "An input: .npy, .npz, BMP, PNG, JPEG, SHAPExTYPE=@FILE, each also as NAME=...; "
                   "- reads .npy or .npz from standard input. Once per graph input")
        ->type_name("X")
        ->allow_extra_args(false);
    app.add_option("INPUT", options->inputs_behind, "The same; behind those of --input");
    add_picture_options(app, options->pictures);
    app.add_option("--labels", options->labels, "Names of the classes, one per line")
        ->type_name("FILE");
    app.add_option("--top", options->top,
                   "How many classes, detections or poses to print; by itself 5. Given, it makes "
                   "scores of classes out of outputs that only look like them")
        ->check(whole_number(1, 1000000))
        ->type_name("N");
    app.add_option("-o,--output,--out", options->out,
                   "Write out0.npy, out1.npy, ... into this folder")
        ->type_name("DIR");
    app.add_option("--dump-all", options->dump_all,
                   "Write every computed tensor as tNNNN.npy, by its TFLite tensor index")
        ->type_name("DIR");
    app.add_option("--dump-layers", options->dump_layers,
                   "Write the tensors inside compiled operators, found from what a simulated chip "
                   "stores, as layer_NNN.npy: height x width x channels, in the chip's type")
        ->type_name("DIR");
    app.add_option("--like", options->like,
                   "With --dump-layers: the plain model, of a segment the whole one; layers that "
                   "are its tensors are written as tNNNN.npy, with their shapes and types")
        ->type_name("MODEL");
    add_device_options(app, options->device);
    app.add_option("--runs", options->runs,
                   "Runs to time, the first included (default: what fits into 0.1 s)")
        ->check(whole_number(1, 1000000))
        ->type_name("N");
    app.add_flag("--placements", options->placements, "List where every operator ran");
    app.add_flag(
        "--strict", options->device.strict,
        "On a simulated chip: watch what the program does and report reads of what nothing "
        "wrote, hazards, rows never read, left-overs; exit 1 when there are any");
    app.add_flag("--json", options->json, "Print JSON");
    app.footer(with_example_chip(
        "Examples:\n"
        "  reef run mobilenet.tflite cat.jpg --labels imagenet_labels.txt\n"
        "  reef run net.tflite --input 1x224x224x3xu8=@frame.rgb --output results\n"
        "  reef run net.tflite --input left=a.npy --input right=b.npy --dump-all tensors\n"
        "  reef run net.tflite --input cat.jpg --arithmetic CHIP --placements\n"
        "  reef run net.tflite --input cat.jpg --arithmetic CHIP --placed-as net_CHIP.tflite\n"
        "  reef run net_CHIP.tflite --input cat.jpg --device CHIP:sim --strict\n"
        "  reef run net_CHIP.tflite --input cat.jpg --device 'CHIP:sim?random_seed=7'\n"
        "  reef run net_CHIP.tflite --device CHIP:sim --input cat.jpg --dump-layers chip \\\n"
        "      --like net.tflite\n"
        "Pictures are stretched to the input's size (bilinear, half-pixel centres); int8\n"
        "inputs get pixel - 128, float32 inputs (pixel - 127.5) / 127.5."));
    return [options](Console& console) {
        std::ranges::move(options->inputs_behind, std::back_inserter(options->inputs));
        return run(*options, console);
    };
}

}  // namespace reef::tool

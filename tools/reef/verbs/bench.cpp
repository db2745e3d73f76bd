// reef bench: how long a model takes, and which operators take it.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inputs/drawn_input.h"
#include "inputs/model_session.h"
#include "inputs/option_values.h"
#include "outputs/file_output.h"
#include "reef/base/file.h"
#include "reef/model/cost.h"
#include "reef/runtime/registry.h"
#include "run/bench_report.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct BenchOptions {
    std::string model;
    DeviceOptions device;
    std::vector<std::string> inputs;
    std::uint64_t seed = 1;
    std::size_t warmup = 3;
    std::optional<std::size_t> runs;
    std::optional<double> seconds;
    std::string trace;
    bool all = false;
    bool json = false;
    bool csv = false;
};

/// The most memory that the process has had; the kernel counts it in KiB.
std::int64_t peak_memory() {
    rusage usage{};
    return ::getrusage(RUSAGE_SELF, &usage) == 0 ? std::int64_t{usage.ru_maxrss} * 1024 : 0;
}

/// One run on the given inputs, from the same state.
Result<double> fresh_run(runtime::Session& session, const InputBytes& inputs,
                         graph::RunObserver* observer) {
    session.reset_state();
    set_inputs(session, inputs);
    return timed_run(session, observer);
}

/// Runs until both the count and the seconds are reached, where they are given; at least one run.
Result<std::vector<double>> measure(runtime::Session& session, const InputBytes& inputs,
                                    std::optional<std::size_t> runs, std::optional<double> seconds,
                                    graph::RunObserver* observer, const std::string& label) {
    constexpr double most_runs = 1000000;
    Progress progress(label);
    std::vector<double> times;
    double total = 0;
    const auto done = [&]() {
        const auto count = static_cast<double>(times.size());
        const double by_count = runs ? count / static_cast<double>(*runs) : 1;
        const double by_time = seconds ? std::max(total / *seconds, count / most_runs) : 1;
        return std::min(by_count, by_time);
    };
    do {
        times.push_back(REEF_TRY(fresh_run(session, inputs, observer)));
        total += times.back();
        progress.update(done());
    } while (done() < 1);
    return times;
}

/// As many profiled runs as timed ones, up to a number that a trace viewer still shows well.
Result<std::vector<Recorder::Event>> record(runtime::Session& session, const InputBytes& inputs,
                                            std::size_t runs) {
    Recorder recorder(runs * session.placements().size());
    REEF_TRY(measure(session, inputs, runs, std::nullopt, &recorder, "profiling"));
    return recorder.events();
}

/// The times without those of warming up.
Result<std::vector<double>> warm_up_and_measure(runtime::Session& session, const InputBytes& inputs,
                                                const BenchOptions& options) {
    for (std::size_t i = 0; i < options.warmup; ++i) REEF_TRY(fresh_run(session, inputs, nullptr));
    const auto seconds = options.runs || options.seconds ? options.seconds : 1.0;
    return measure(session, inputs, options.runs, seconds, nullptr, "measuring");
}

Result<Exit> bench(const BenchOptions& options, Console& console) {
    constexpr std::size_t most_profiled_runs = 50;
    if (options.model.empty()) return fail(Cause::bad_argument, "MODEL is required");
    std::vector<std::string> read = options.inputs;
    read.push_back(options.model);
    read.push_back(options.device.placed_as);
    REEF_CHECK(check_output_file(options.trace, read));
    REEF_CHECK(check_apart_from_print(options.trace, "--trace"));
    OpenModel opened = REEF_TRY(open_model(options.model, options.device));
    runtime::Session& session = opened.session;
    const InputBytes inputs =
        REEF_TRY(inputs_or_random(session.graph(), options.inputs, options.seed));

    auto measured = warm_up_and_measure(session, inputs, options);
    if (!measured && options.inputs.empty())
        measured = std::unexpected(of_random_inputs(measured.error(), session.graph()));
    const std::vector<double> times = REEF_TRY(in_place(std::move(measured), options.model));
    const int threads_taken = session.threads_taken();
    const std::size_t profiled = std::min(times.size(), most_profiled_runs);
    const auto events = REEF_TRY(record(session, inputs, profiled));

    BenchReport report{.model = options.model,
                       .device = device_text(options.device),
                       .kernels = options.device.kernels,
                       .arithmetic = arithmetic_of(options.device),
                       .threads = options.device.threads,
                       .threads_taken = threads_taken,
                       .random_inputs = options.inputs.empty(),
                       .seed = options.seed,
                       .open_seconds = opened.seconds,
                       .warmup_runs = options.warmup,
                       .latency = summarize(times),
                       .macs = model::cost_of(opened.model, session.graph()).macs,
                       .memory = session.memory(),
                       .peak_bytes = peak_memory(),
                       .profile = profile_of(opened.model, session, events, profiled)};
    report.chip_summary = chip_summary(session);
    report.chip_counts = chip_json(session);
    if (const auto* estimator =
            runtime::Registry::of_process().part<chip::Estimator>(family_of_device(options.device)))
        report.chip = REEF_TRY(in_place(estimator->estimate(opened.model), options.model));
    if (!options.trace.empty()) {
        const std::string trace =
            chrome_trace(report.profile, "reef " + options.model, events,
                         report.chip ? report.chip->picture : chip::WorkPicture());
        REEF_CHECK(write_output(options.trace, as_bytes(trace)));
    }
    if (options.csv) {
        print_bench_csv(console, report);
    } else if (options.json) {
        print_bench_json(console, report);
    } else {
        print_bench_text(console, report, options.all);
    }
    return Exit::ok;
}

struct ForeignOption {
    std::string_view name, instead;
};

/// Options of TFLite's benchmark_model that reef bench does not have under that name. Those that it
/// has are --graph, --num_threads, --num_runs, --min_secs and --warmup_runs.
constexpr auto foreign_options = std::to_array<ForeignOption>({
    {"--alloc_type_display_length", "reef inspect MODEL --tensors shows whole names"},
    {"--allow_dynamic_profiling_buffer_increase", "up to 50 runs are profiled"},
    {"--allow_fp16", "results have the model's own precision"},
    {"--benchmark_name", "use --json or --csv, which name the model"},
    {"--cpu_mask", "taskset chooses the cores"},
    {"--disable_delegate_clustering", "use --device DEVICE"},
    {"--disable_nnapi_cpu", "use --device DEVICE"},
    {"--dry_run", "use reef inspect MODEL"},
    {"--enable_builtin_cast_constant_cache", "constants are always converted once"},
    {"--enable_op_profiling", "operators are always profiled"},
    {"--enable_platform_tracing", "use --trace FILE"},
    {"--export_model_runtime_info", "use reef inspect MODEL --json"},
    {"--external_delegate_options", "use --device DEVICE"},
    {"--external_delegate_path", "use --device DEVICE"},
    {"--first_delegate_node_index", "use --device DEVICE"},
    {"--input_layer", "inputs are named in --input NAME=FILE"},
    {"--input_layer_shape", "shapes are the model's"},
    {"--input_layer_value_files", "use --input NAME=FILE"},
    {"--input_layer_value_range", "random inputs use the type's range; --input gives others"},
    {"--last_delegate_node_index", "use --device DEVICE"},
    {"--list_signatures", "use reef inspect MODEL"},
    {"--max_delegated_partitions", "use --device DEVICE"},
    {"--max_profiling_buffer_entries", "up to 50 runs are profiled"},
    {"--max_secs", "use --runs N or --seconds S"},
    {"--memory_footprint_check_interval_ms", "peak memory is always reported"},
    {"--min_nodes_per_partition", "use --device DEVICE"},
    {"--op_profiling_output_file", "use --json"},
    {"--op_profiling_output_mode", "use --json"},
    {"--optimize_memory_for_large_tensors",
     "memory is always planned; reef inspect MODEL shows how"},
    {"--output_filepath", "use reef run MODEL --output DIR"},
    {"--output_prefix", "use --json or --csv, which name the model"},
    {"--output_proto_filepath", "use reef run MODEL --output DIR"},
    {"--print_postinvoke_state", "use reef inspect MODEL --tensors"},
    {"--print_preinvoke_state", "use reef inspect MODEL --tensors"},
    {"--profiling_output_csv_file", "use --json for operators, --csv for the whole"},
    {"--release_dynamic_tensors", "memory is always planned; reef inspect MODEL shows how"},
    {"--report_peak_memory_footprint", "peak memory is always reported"},
    {"--require_full_delegation", "use --require-npu"},
    {"--run_delay", "runs follow each other at once"},
    {"--run_frequency", "runs follow each other at once"},
    {"--signature_to_run_for", "the first subgraph is run"},
    {"--tensor_name_display_length", "reef inspect MODEL --tensors shows whole names"},
    {"--tensor_type_display_length", "reef inspect MODEL --tensors shows whole names"},
    {"--use_caching", "weights are always laid out once, when the model is opened"},
    {"--use_coreml", "use --device DEVICE"},
    {"--use_gpu", "use --device DEVICE"},
    {"--use_hexagon", "use --device DEVICE"},
    {"--use_nnapi", "use --device DEVICE"},
    {"--use_xnnpack", "use --kernels fast or --kernels reference"},
    {"--verbose", "use --all"},
    {"--warmup_min_secs", "use --warmup N"},
});

/// What its delegates' options begin with.
constexpr auto foreign_beginnings =
    std::to_array<std::string_view>({"--coreml_", "--delegate_", "--external_delegate_", "--gpu_",
                                     "--hexagon_", "--nnapi_", "--stable_delegate_", "--xnnpack_"});

}  // namespace

std::string_view instead_of_benchmark_model(std::string_view option) {
    const auto found = std::ranges::find(foreign_options, option, &ForeignOption::name);
    if (found != foreign_options.end()) return found->instead;
    const bool of_delegate = std::ranges::any_of(
        foreign_beginnings, [&](std::string_view begin) { return option.starts_with(begin); });
    return of_delegate ? "use --device DEVICE" : std::string_view{};
}

Action add_bench(CLI::App& app) {
    auto options = std::make_shared<BenchOptions>();
    app.add_option("MODEL,--graph", options->model, "A .tflite file");
    app.add_option("--input", options->inputs,
                   "An input as for reef run (default: random values; 0 for what indices are made "
                   "from)")
        ->type_name("X")
        ->allow_extra_args(false);
    app.add_option("--seed", options->seed, "Seed of the random inputs")
        ->check(whole_number())
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--warmup,--warmup_runs", options->warmup, "Runs before measuring")
        ->check(whole_number(0, 1000000))
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--runs,--num_runs", options->runs,
                   "Runs to measure; with --seconds, at least so many")
        ->check(whole_number(1, 1000000))
        ->type_name("N");
    app.add_option("--seconds,--min_secs", options->seconds,
                   "Measure for so long (default, without --runs: 1)")
        ->check(real_number(0.001, 86400))
        ->type_name("S");
    add_device_options(app, options->device);
    app.add_option(
           "--trace", options->trace,
           "Write the profiled runs in Chrome's trace format (opens in Perfetto); on a "
           "chip also the estimate: a process for each program, a lane for each of its engines")
        ->type_name("FILE");
    app.add_flag("--all", options->all, "List every operator, in execution order");
    auto* json = app.add_flag("--json", options->json, "Print JSON");
    app.add_flag("--csv", options->csv, "Print comma-separated values: titles, and one line")
        ->excludes(json);
    app.footer(
        "Examples:\n"
        "  reef bench mobilenet.tflite\n"
        "  reef bench mobilenet.tflite --runs 200 --threads 2 --json\n"
        "  reef bench mobilenet.tflite --trace mobilenet.json");
    return [options](Console& console) { return bench(*options, console); };
}

}  // namespace reef::tool

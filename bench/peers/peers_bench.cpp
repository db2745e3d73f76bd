// Reef's CPU floor against the field, network by network: each round runs it once on each side, one
// behind the other, so that a slow second of the machine meets all. On its turn a side warms up,
// to find its data in the caches, and the least of the next runs counts.
//
// XNNPACK runs what it has an operator for, inside Reef's executor and in the same memory plan; the
// rest runs on Reef's kernels there, too. ONNX Runtime runs in a program of its own, on command,
// the network that onnx_model.h makes of the same file. LiteRT's program times itself, started anew
// in each round; the LiteRT that Chromium has inside runs on command. TensorFlow Lite's library
// runs twice, with its own kernels and with its XNNPACK. A decoder of a custom operator at a
// network's end is left out on all sides.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "peers/known_shapes.h"
#include "peers/litert_peer.h"
#include "peers/litert_web_peer.h"
#include "peers/machine_speed.h"
#include "peers/memory_use.h"
#include "peers/networks.h"
#include "peers/onnx_check.h"
#include "peers/operator_times.h"
#include "peers/ort_peer.h"
#include "peers/random_input.h"
#include "peers/report.h"
#include "peers/tflite_peer.h"
#include "peers/xnnpack_placer.h"
#include "reef/base/file.h"
#include "reef/cpu/kernel_set.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef/model/graph.h"
#include "reef/model/part.h"

namespace reef::peers {
namespace {

using graph::Executor;

constexpr const char* ort_name = "ONNX Runtime";
constexpr const char* litert_name = "LiteRT";
constexpr const char* litert_web_name = "LiteRT in Chromium";
constexpr const char* builtin_name = "TFLite";
constexpr const char* tflite_xnnpack_name = "TFLite XNNPACK";
constexpr int runs_of_turn = 3;
/// One run, or with several threads as long as the system may take to give each a core of its own.
double warm_up_ms(const Options& options) {
    return options.threads == 1 ? 0 : 60;
}

/// NAME.onnx, for ONNX Runtime's own programs.
Status write_onnx(const std::string& path, const std::string& folder) {
    const auto [name, model] = REEF_TRY(load_network(path));
    const Executor executor =
        REEF_TRY(Executor::create(model, {.placers = {cpu::placer()}, .threads = 1}));
    const std::string file = REEF_TRY(onnx_of(model, executor.graph()));
    return write_file((std::filesystem::path(folder) / (name_of_network(path) + ".onnx")).string(),
                      as_bytes(file));
}

/// Milliseconds of wall time, or of the process's CPU time.
double now(bool cpu_time) {
    timespec time{};
    ::clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

/// Waits until the threads of a library that looks for work after a run have stopped doing so: on
/// few cores they would slow the next side.
void rest(const Options& options) {
    if (options.threads == 1) return;
    constexpr double step_ms = 2;
    for (double before = now(true), used = step_ms; used > step_ms / 4;) {
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(step_ms));
        used = now(true) - before;
        before += used;
    }
}

template <class Side>
Result<double> least_of_turn(Side& side, const Options& options) {
    const double start = now(false);
    do {
        REEF_CHECK(side.run());
    } while (now(false) - start < warm_up_ms(options));
    double least = std::numeric_limits<double>::max();
    for (int i = 0; i < runs_of_turn; ++i) {
        const double begin = now(options.cpu_time);
        REEF_CHECK(side.run());
        least = std::min(least, now(options.cpu_time) - begin);
    }
    rest(options);
    return least;
}

/// What runs one network.
struct Sides {
    Executor ours, theirs;
    std::optional<OrtPeer> ort{};
    std::optional<LitertWebPeer> litert_web{};
    std::optional<LitertPeer> litert{};
    std::optional<TflitePeer> tflite{}, tflite_xnnpack{};
};

Column* column_of(Row& row, std::string_view peer) {
    const auto found = std::ranges::find(row.peers, peer, &Column::peer);
    return found == row.peers.end() ? nullptr : &*found;
}

void note(Row& row, std::string_view peer, double milliseconds) {
    Column& column = *column_of(row, peer);
    column.milliseconds.push_back(milliseconds);
    column.ratios.push_back(row.reef.back() / milliseconds);
}

/// A peer that had a column.
void leave_out(Row& row, std::string_view peer, std::string reason) {
    std::erase_if(row.peers, [&](const Column& column) { return column.peer == peer; });
    row.left_out.push_back({std::string(peer), std::move(reason)});
}

/// LiteRT's turn. It is left out once its program fails.
void measure_litert(Sides& sides, Row& row) {
    const auto time = sides.litert->turn(runs_of_turn);
    if (time) {
        note(row, litert_name, *time);
        return;
    }
    leave_out(row, litert_name, time.error().message());
    sides.litert.reset();
}

/// TensorFlow Lite's turn with one set of kernels. It is left out once it fails.
void measure_tflite(std::optional<TflitePeer>& side, const char* name, const Options& options,
                    Row& row) {
    if (!side) return;
    if (const auto time = least_of_turn(*side, options)) {
        note(row, name, *time);
        return;
    } else {
        leave_out(row, name, time.error().message());
    }
    side.reset();
}

/// The turn of what node runs. It is left out once it fails.
template <class Peer>
void measure_program(std::optional<Peer>& side, const char* name, const Options& options,
                     Row& row) {
    if (!side) return;
    if (const auto time = side->turn(runs_of_turn, warm_up_ms(options))) {
        ProgramFigures& figures = *column_of(row, name)->program;
        figures.network_ms.push_back(time->network_ms);
        figures.overhead_ms.push_back(time->overhead_ms);
        return;
    } else {
        leave_out(row, name, time.error().message());
    }
    side.reset();
}

/// One measurement of each side.
Status measure_round(Sides& sides, const Options& options, Row& row) {
    row.reef.push_back(REEF_TRY(least_of_turn(sides.ours, options)));
    note(row, "XNNPACK", REEF_TRY(least_of_turn(sides.theirs, options)));
    measure_program(sides.ort, ort_name, options, row);
    measure_program(sides.litert_web, litert_web_name, options, row);
    if (sides.litert) measure_litert(sides, row);
    // Its own kernels take up to a second, and are nobody's best peer.
    constexpr std::size_t most_rounds = 5;
    if (row.reef.size() <= most_rounds) measure_tflite(sides.tflite, builtin_name, options, row);
    measure_tflite(sides.tflite_xnnpack, tflite_xnnpack_name, options, row);
    return {};
}

/// The binding's least time is taken from every run: a disturbed one of its own would flatter.
void subtract_overhead(Row& row) {
    for (Column& column : row.peers) {
        if (!column.program) continue;
        const double overhead = std::ranges::min(column.program->overhead_ms);
        for (std::size_t i = 0; i < row.reef.size(); ++i) {
            column.milliseconds.push_back(column.program->network_ms[i] - overhead);
            column.ratios.push_back(row.reef[i] / column.milliseconds[i]);
        }
    }
}

bool multiplies_floats(const model::Subgraph& graph) {
    return std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
        return op.code.builtin == model::Op::conv_2d &&
               graph.tensors[static_cast<std::size_t>(op.inputs[1])].type == ElementType::float32;
    });
}

/// How many of the products that the machine can do in that time there are.
/// `cores`: whose time was measured side by side. CPU time is that of one.
double peak_share(const Row& row, const model::Subgraph& graph, const MachineSpeed& machine,
                  int cores) {
    const double most =
        multiplies_floats(graph) ? machine.float_products_ns : machine.byte_products_ns;
    if (most == 0) return 0;
    return static_cast<double>(row.products) / (std::ranges::min(row.reef) * 1e6 * most * cores);
}

/// How alike a network's outputs are to Reef's.
struct Alike {
    Likeness peer, xnnpack;
};

/// Of what an ARG_MAX at the end chooses from: of noise it chooses one index everywhere, so that
/// its own output hides another network. Nothing for other networks.
template <class Peer>
Result<std::optional<Alike>> alike_before_choice(const model::Model& model) {
    const std::size_t before = model.subgraphs[0].operators.size() - 1;
    if (before == 0 || model.subgraphs[0].operators[before].code.builtin != model::Op::arg_max)
        return std::nullopt;
    const model::Model scores =
        REEF_TRY(model::part_of(model, {.first = 0, .count = before})).model;
    Executor ours = REEF_TRY(Executor::create(scores, {.placers = {cpu::placer()}, .threads = 1}));
    Executor theirs = REEF_TRY(Executor::create(
        scores, {.placers = {xnnpack_placer(nullptr), cpu::placer()}, .threads = 1}));
    for (Executor* executor : {&ours, &theirs}) {
        fill(*executor);
        REEF_CHECK(executor->run());
    }
    return Alike{.peer = REEF_TRY(Peer::start(scores, ours, 1)).alike(),
                 .xnnpack = likeness(ours, outputs_of(theirs))};
}

/// Why it is not the same network, of quantised ones in integers; "" where it is.
std::string objection(const OptimisedGraph& optimised, const Alike& both, bool quantised) {
    const auto& [alike, xnnpack] = both;
    if (alike.relative.value_or(0) > most_relative)
        return fmt::format("its outputs are {:.1e} of the largest from Reef's", *alike.relative);
    // Another rounding leads away from Reef's outputs; how far in this network, XNNPACK's shows.
    // Another network's outputs are elsewhere.
    const double most = 8 + 3 * xnnpack.farthest, most_in_the_mean = 2 + 2 * xnnpack.mean;
    if (const std::size_t floats = optimised.float_convolutions; quantised && floats > 0)
        return fmt::format("{} of its convolutions stay float32", floats);
    if (alike.mean > most_in_the_mean || alike.farthest > most)
        return fmt::format("its outputs are {:.0f} steps from Reef's, {:.2f} in the mean",
                           alike.farthest, alike.mean);
    return {};
}

/// What node runs, if it gives the same outputs.
template <class Peer>
Status add_program(const model::Model& model, const char* name, const Options& options,
                   Executor& ours, std::optional<Peer>& side, Row& row) {
    Peer peer = REEF_TRY(Peer::start(model, ours, options.threads));
    const Alike alike = REEF_TRY(alike_before_choice<Peer>(model))
                            .value_or(Alike{peer.alike(), *row.peers.front().alike});
    const bool quantised = !multiplies_floats(ours.graph());
    if (std::string reason = objection(peer.optimised(), alike, quantised); !reason.empty())
        return fail(Cause::unsupported, std::move(reason));
    row.peers.push_back({.peer = name,
                         .alike = alike.peer,
                         .program = ProgramFigures{.optimised = peer.optimised()},
                         .version = peer.version()});
    side = std::move(peer);
    return {};
}

/// They time themselves, by the wall.
void add_programs(const model::Model& model, const Options& options, Sides& sides, Row& row) {
    if (options.cpu_time) return;
    const auto add = [&](const std::string& absent, const char* name, auto& side) {
        if (!absent.empty()) return;
        if (const auto added = add_program(model, name, options, sides.ours, side, row); !added)
            row.left_out.push_back({name, added.error().message()});
    };
    add(why_no_ort(), ort_name, sides.ort);
    add(why_no_litert_web(options.threads), litert_web_name, sides.litert_web);
    if (!why_no_litert().empty()) return;
    if (auto litert = LitertPeer::create(model, options.threads)) {
        sides.litert = std::move(*litert);
        row.peers.push_back({.peer = litert_name});
    } else {
        row.left_out.push_back({litert_name, litert.error().message()});
    }
}

/// TensorFlow Lite on the network, with Reef's inputs.
Result<TflitePeer> add_tflite(const model::Model& model, const Options& options, Executor& ours,
                              TfliteKernels kernels, const char* name, Row& row) {
    TflitePeer peer = REEF_TRY(TflitePeer::create(model, kernels, options.threads));
    for (std::size_t i = 0; i < peer.input_count(); ++i)
        std::ranges::copy(ours.input(i), peer.input(i).begin());
    REEF_CHECK(peer.run());
    const Likeness alike = likeness(ours, peer.outputs());
    if (alike.relative.value_or(0) > most_relative)
        return fail(Cause::unsupported, fmt::format("its outputs are {:.1e} of the largest from "
                                                    "Reef's",
                                                    *alike.relative));
    row.peers.push_back({.peer = name, .alike = alike, .version = tflite_version()});
    return peer;
}

void add_tflites(const model::Model& model, const Options& options, Sides& sides, Row& row) {
    if (!why_no_tflite().empty()) return;
    const auto add = [&](TfliteKernels kernels, const char* name, std::optional<TflitePeer>& side) {
        if (auto peer = add_tflite(model, options, sides.ours, kernels, name, row))
            side = std::move(*peer);
        else
            row.left_out.push_back({name, peer.error().message()});
    };
    add(TfliteKernels::builtin, builtin_name, sides.tflite);
    add(TfliteKernels::xnnpack, tflite_xnnpack_name, sides.tflite_xnnpack);
}

Status measure(const std::string& path, const Options& options, Row& row) {
    auto [name, model] = REEF_TRY(load_network(path));
    row.network = std::move(name);
    const ThreadPool pool(options.threads == 1
                              ? nullptr
                              : pthreadpool_create(static_cast<std::size_t>(options.threads)));
    Sides sides{.ours = REEF_TRY(Executor::create(
                    model, {.placers = {cpu::placer()}, .threads = options.threads})),
                .theirs = REEF_TRY(
                    Executor::create(model, {.placers = {xnnpack_placer(pool.get()), cpu::placer()},
                                             .threads = options.threads}))};
    for (const graph::Placement& placement : sides.theirs.placements())
        row.on_xnnpack += placement.placer == 0 ? 1 : 0;
    row.operators = sides.theirs.placements().size();
    fill(sides.ours);
    fill(sides.theirs);
    REEF_TRY(sides.ours.run());
    REEF_TRY(sides.theirs.run());
    row.peers.push_back(
        {.peer = "XNNPACK", .alike = likeness(sides.ours, outputs_of(sides.theirs))});
    if (const auto apart = row.peers.front().alike->relative; apart.value_or(0) > most_relative)
        return fail(Cause::unsupported,
                    fmt::format("XNNPACK's outputs are {:.1e} of the largest from Reef's", *apart));
    add_programs(model, options, sides, row);
    add_tflites(model, options, sides, row);
    for (int round = 0; round < options.rounds; ++round)
        REEF_TRY(measure_round(sides, options, row));
    subtract_overhead(row);
    row.products = products_of(sides.ours.graph());
    row.peak_share = peak_share(row, sides.ours.graph(), measure_machine(),
                                options.cpu_time ? 1 : options.threads);
    return {};
}

std::vector<LeftOut> absent_peers(const Options& options) {
    std::vector<LeftOut> absent;
    const auto note = [&](const char* peer, const std::string& reason) {
        if (!reason.empty()) absent.push_back({peer, reason});
    };
    const std::string by_the_wall = "it times itself, by the wall";
    note(ort_name, options.cpu_time ? by_the_wall : why_no_ort());
    note(litert_web_name, options.cpu_time ? by_the_wall : why_no_litert_web(options.threads));
    note(litert_name, options.cpu_time ? by_the_wall : why_no_litert());
    note(builtin_name, why_no_tflite());
    return absent;
}

/// Flags that are no matter of the networks.
struct Once {
    bool smoke = false;
    bool checks_onnx = false;
};

void add_options(CLI::App& app, Options& options, Once& once) {
    app.add_option("MODEL", options.models,
                   fmt::format("plain models, or {}NETWORK with NETWORK one of {}; default: those "
                               "of REEF_SHARED, or a few of the latter",
                               shape_prefix, fmt::join(known_shapes(), ", ")));
    app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000));
    app.add_option("--threads", options.threads)->check(CLI::Range(1, 256));
    app.add_flag("--json", options.json);
    app.add_flag("--cpu-time", options.cpu_time,
                 "CPU time of all threads, for a machine that others use; without other programs");
    app.add_flag("--operators", options.operators,
                 "the least time of every operator instead; not of TensorFlow Lite and LiteRT, "
                 "where none can be asked for");
    app.add_flag("--memory", options.memory,
                 "the memory of Reef, XNNPACK and TensorFlow Lite instead")
        ->excludes("--operators");
    // For --memory alone.
    app.add_option("--memory-of", options.memory_of)->group("");
    app.add_option("--write-onnx", options.onnx_folder,
                   "write the networks that ONNX Runtime gets to this folder instead");
    app.add_flag("--check-onnx", once.checks_onnx,
                 "compare the ONNX form of samples of all operators with Reef's kernels instead");
    app.add_flag("--smoke", once.smoke, "one round");
}

/// In place of a comparison.
using Instead = Status (*)(const Options&);

Status memory_of_one(const Options& options) {
    return print_memory_of(options.memory_of, options.models.front(), options);
}

Status write_all_onnx(const Options& options) {
    for (const std::string& path : options.models)
        REEF_CHECK(in_place(write_onnx(path, options.onnx_folder), path));
    return {};
}

/// Null for a comparison.
Instead instead_of_comparison(const Options& options) {
    if (!options.memory_of.empty()) return memory_of_one;
    if (options.memory) return print_memory;
    if (options.operators) return print_operators;
    return options.onnx_folder.empty() ? nullptr : write_all_onnx;
}

int compare_all(const Options& options) {
    std::vector<Row> rows;
    bool failed = false;
    for (const std::string& path : options.models) {
        Row& row = rows.emplace_back(Row{.network = name_of_network(path)});
        if (const auto status = measure(path, options, row); !status) {
            row.problem = status.error().message();
            failed = true;
        }
    }
    const std::vector<LeftOut> left_out = absent_peers(options);
    (options.json ? print_json : print_text)(rows, left_out, options);
    return failed ? 1 : 0;
}

int main_of(int argc, char** argv) {
    Options options;
    Once once;
    CLI::App app(
        "Reef's CPU floor against XNNPACK, and ONNX Runtime, LiteRT and TensorFlow Lite where they "
        "are");
    add_options(app, options, once);
    CLI11_PARSE(app, argc, argv);
    if (once.checks_onnx) return check_onnx() ? 0 : 1;
    if (once.smoke) options.rounds = 1;
    if (options.models.empty()) options.models = known_models();
    if (options.models.empty()) options.models = few_shapes();
    if (!start_xnnpack()) {
        std::cerr << "XNNPACK does not start on this machine\n";
        return 1;
    }
    const Instead instead = instead_of_comparison(options);
    if (instead == nullptr) return compare_all(options);
    const auto status = instead(options);
    if (!status) std::cerr << status.error().message() << "\n";
    return status ? 0 : 1;
}

}  // namespace
}  // namespace reef::peers

int main(int argc, char** argv) {
    return reef::peers::main_of(argc, argv);
}

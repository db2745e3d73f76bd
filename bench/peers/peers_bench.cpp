// Reef's CPU floor against the field, network by network: each round runs it once on each side, one
// behind the other in one process, so that a slow second of the machine meets both.
//
// XNNPACK runs what it has an operator for, inside Reef's executor and in the same memory plan; the
// rest runs on Reef's kernels there, too. Programs of other projects time themselves, in turn.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "peers/known_shapes.h"
#include "peers/machine_speed.h"
#include "peers/tool.h"
#include "peers/xnnpack_placer.h"
#include "reef/cpu/kernel_set.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef/model/tflite.h"

namespace reef::peers {
namespace {

using graph::Executor;

struct Options {
    std::vector<std::string> models;
    int rounds = 41;
    int threads = 1;
    bool json = false;
    bool cpu_time = false;
    bool operators = false;
};

double quantile(std::vector<double> values, double part) {
    const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, values.begin() + at);
    return values[static_cast<std::size_t>(at)];
}

/// One peer on one network.
struct Column {
    std::string peer;
    std::vector<double> milliseconds{};  ///< by round
    std::vector<double> ratios{};        ///< Reef's time of the same round over the peer's

    [[nodiscard]] double least() const { return std::ranges::min(milliseconds); }
    [[nodiscard]] double ratio() const { return quantile(ratios, 0.5); }
};

struct Row {
    std::string network;
    std::vector<double> reef{};  ///< milliseconds by round
    std::vector<Column> peers{};
    std::size_t operators = 0, on_xnnpack = 0;
    std::uint64_t products = 0;
    double peak_share = 0;          ///< of all threads' products of the element type; 0: not known
    std::optional<double> equal{};  ///< share of output bytes; nothing without outputs of bytes
    int farthest = 0;               ///< steps between outputs
    std::string problem{};          ///< why there is nothing else
};

constexpr std::string_view shape_prefix = "shape:";

void fill(Executor& executor) {
    std::mt19937 random(1);
    for (std::size_t i = 0; i < executor.input_count(); ++i) {
        const auto input = executor.input(i);
        const auto& graph = executor.graph();
        const auto type = graph.tensors[static_cast<std::size_t>(graph.inputs[i])].type;
        if (type == ElementType::float32) {
            std::uniform_real_distribution<float> value(-1, 1);
            auto* values = reinterpret_cast<float*>(input.data());
            std::generate_n(values, input.size() / sizeof(float), [&] { return value(random); });
        } else {
            std::ranges::generate(input, [&] { return static_cast<std::byte>(random() & 0xFF); });
        }
    }
}

/// How alike the outputs of bytes are; XNNPACK rounds in another way, and steps add up.
void compare(const Executor& ours, const Executor& theirs, Row& row) {
    std::size_t bytes = 0, equal = 0;
    for (std::size_t i = 0; i < ours.output_count(); ++i) {
        const auto& graph = ours.graph();
        const auto type = graph.tensors[static_cast<std::size_t>(graph.outputs[i])].type;
        if (type != ElementType::uint8 && type != ElementType::int8) continue;
        const Bytes a = ours.output(i), b = theirs.output(i);
        for (std::size_t k = 0; k < a.size(); ++k) {
            const auto value = [type](std::byte byte) {
                const auto raw = std::to_integer<std::uint8_t>(byte);
                return type == ElementType::int8 ? static_cast<std::int8_t>(raw) : int{raw};
            };
            row.farthest = std::max(row.farthest, std::abs(value(a[k]) - value(b[k])));
            equal += a[k] == b[k] ? 1 : 0;
        }
        bytes += a.size();
    }
    if (bytes > 0) row.equal = static_cast<double>(equal) / static_cast<double>(bytes);
}

/// Milliseconds of wall time, or of the process's CPU time.
double now(bool cpu_time) {
    timespec time{};
    ::clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

Result<double> timed_run(Executor& executor, bool cpu_time) {
    const double begin = now(cpu_time);
    REEF_TRY(executor.run());
    return now(cpu_time) - begin;
}

/// One measurement of each side; none of a tool that fails.
Status measure_round(Executor& ours, Executor& theirs, std::vector<Tool>& tools, bool cpu_time,
                     Row& row) {
    const double reef = REEF_TRY(timed_run(ours, cpu_time));
    const auto note = [&](Column& column, double milliseconds) {
        column.milliseconds.push_back(milliseconds);
        column.ratios.push_back(reef / milliseconds);
    };
    row.reef.push_back(reef);
    note(row.peers[0], REEF_TRY(timed_run(theirs, cpu_time)));
    // They start anew and warm up in every round: a tenth of the rounds is enough for an average.
    if (row.reef.size() % 10 != 1) return {};
    for (std::size_t i = 0; i < tools.size(); ++i)
        if (const auto average = average_of(tools[i])) note(row.peers[i + 1], *average);
    return {};
}

/// A file, or "shape:" and one of known_shapes().
Result<model::Model> load(const std::string& path) {
    if (path.starts_with(shape_prefix)) return network_of_shape(path.substr(shape_prefix.size()));
    return model::load_tflite(path);
}

/// How many of the products that the machine can do in that time there are.
/// `cores`: whose time was measured side by side. CPU time is that of one.
double peak_share(const Row& row, const model::Subgraph& graph, const MachineSpeed& machine,
                  int cores) {
    const bool floats = std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
        return op.code.builtin == model::Op::conv_2d &&
               graph.tensors[static_cast<std::size_t>(op.inputs[1])].type == ElementType::float32;
    });
    const double most = floats ? machine.float_products_ns : machine.byte_products_ns;
    if (most == 0) return 0;
    return static_cast<double>(row.products) / (std::ranges::min(row.reef) * 1e6 * most * cores);
}

Status measure(const std::string& path, const Options& options, Row& row) {
    const model::Model model = REEF_TRY(load(path));
    const ThreadPool pool(options.threads == 1
                              ? nullptr
                              : pthreadpool_create(static_cast<std::size_t>(options.threads)));
    Executor ours =
        REEF_TRY(Executor::create(model, {.placers = {cpu::placer()}, .threads = options.threads}));
    Executor theirs =
        REEF_TRY(Executor::create(model, {.placers = {xnnpack_placer(pool.get()), cpu::placer()},
                                          .threads = options.threads}));
    for (const graph::Placement& placement : theirs.placements())
        row.on_xnnpack += placement.placer == 0 ? 1 : 0;
    row.operators = theirs.placements().size();
    // Programs time themselves, by the wall.
    std::vector<Tool> tools =
        options.cpu_time ? std::vector<Tool>{} : installed_tools(path, options.threads);
    row.peers.push_back({.peer = "XNNPACK"});
    for (const Tool& tool : tools) row.peers.push_back({.peer = tool.name});
    fill(ours);
    fill(theirs);
    REEF_TRY(ours.run());
    REEF_TRY(theirs.run());
    compare(ours, theirs, row);
    for (int round = 0; round < options.rounds; ++round)
        REEF_TRY(measure_round(ours, theirs, tools, options.cpu_time, row));
    row.products = products_of(ours.graph());
    row.peak_share =
        peak_share(row, ours.graph(), measure_machine(), options.cpu_time ? 1 : options.threads);
    for (const Column& column : row.peers)
        if (column.milliseconds.empty())
            std::cerr << row.network << ": " << column.peer
                      << "'s program failed or said no average; it is left out\n";
    std::erase_if(row.peers, [](const Column& column) { return column.milliseconds.empty(); });
    return {};
}

std::string alike(const Row& row) {
    if (!row.equal) return "outputs of other types than bytes are not compared";
    return fmt::format("{:.1f} % of output bytes equal, {} apart", 100 * *row.equal, row.farthest);
}

void print_text(const std::vector<Row>& rows, const Options& options) {
    fmt::print(
        "{} thread{} on {}, {} rounds; least milliseconds, ratio Reef / peer: median of "
        "rounds (quartiles), share of the machine's products\n{:50} {:>8}  {:14} {:>8} {:>6} "
        "{:>13} {:>5}  {}\n",
        options.threads, options.threads == 1 ? "" : "s", cpu::simd_target(), options.rounds,
        "network", "Reef", "peer", "peer", "ratio", "quartiles", "peak", "XNNPACK's operators");
    std::vector<double> best;
    for (const Row& row : rows) {
        if (!row.problem.empty()) {
            fmt::print("{:50} not run: {}\n", row.network, row.problem);
            continue;
        }
        for (const Column& column : row.peers)
            fmt::print(
                "{:50} {:8.3f}  {:14} {:8.3f} {:6.2f} {:>6.2f} {:>6.2f} {:>5}  {} of {}, {}\n",
                row.network, std::ranges::min(row.reef), column.peer, column.least(),
                column.ratio(), quantile(column.ratios, 0.25), quantile(column.ratios, 0.75),
                row.peak_share == 0 ? "-" : fmt::format("{:.0f} %", 100 * row.peak_share),
                row.on_xnnpack, row.operators, alike(row));
        best.push_back(std::ranges::max(row.peers, {}, &Column::ratio).ratio());
    }
    if (!best.empty())
        fmt::print("against the best peer of each network: median ratio {:.2f}, worst {:.2f}\n",
                   quantile(best, 0.5), std::ranges::max(best));
}

/// The least time of every operator.
class LeastTimes final : public graph::RunObserver {
  public:
    explicit LeastTimes(std::size_t operators) : microseconds(operators, 1e18) {}
    void on_operator(std::size_t i, Clock::time_point begin, Clock::time_point end) override {
        const std::chrono::duration<double, std::micro> taken = end - begin;
        microseconds[i] = std::min(microseconds[i], taken.count());
    }
    std::vector<double> microseconds;
};

/// Every operator of a network on both sides.
Status print_operators(const std::string& path, const Options& options) {
    const model::Model model = REEF_TRY(load(path));
    const ThreadPool pool(options.threads == 1
                              ? nullptr
                              : pthreadpool_create(static_cast<std::size_t>(options.threads)));
    Executor ours =
        REEF_TRY(Executor::create(model, {.placers = {cpu::placer()}, .threads = options.threads}));
    Executor theirs =
        REEF_TRY(Executor::create(model, {.placers = {xnnpack_placer(pool.get()), cpu::placer()},
                                          .threads = options.threads}));
    fill(ours);
    fill(theirs);
    const model::Subgraph& graph = ours.graph();
    LeastTimes reef(graph.operators.size()), peer(graph.operators.size());
    for (int round = 0; round < options.rounds; ++round) {
        REEF_TRY(ours.run(&reef));
        REEF_TRY(theirs.run(&peer));
    }
    fmt::print("{}\n  op  {:44} {:>18} {:>18} {:>18} {:>8} {:>8} {:>6}\n", path, "kernel", "input",
               "weights", "output", "Reef us", "peer us", "ratio");
    const auto shape = [&](const std::vector<model::TensorIndex>& list, std::size_t i) {
        return i < list.size() && list[i] >= 0
                   ? model::shape_text(graph.tensors[static_cast<std::size_t>(list[i])].shape)
                   : std::string();
    };
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const model::Operator& op = graph.operators[i];
        fmt::print("{:4}  {:44} {:>18} {:>18} {:>18} {:8.1f} {:8.1f} {:6.2f}{}\n", i,
                   ours.placements()[i].kernel, shape(op.inputs, 0), shape(op.inputs, 1),
                   shape(op.outputs, 0), reef.microseconds[i], peer.microseconds[i],
                   reef.microseconds[i] / peer.microseconds[i],
                   theirs.placements()[i].placer == 0 ? "" : "  both on Reef's");
    }
    return {};
}

void print_json(const std::vector<Row>& rows, const Options& options) {
    nlohmann::ordered_json networks = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
        nlohmann::ordered_json entry{{"network", row.network}};
        if (!row.problem.empty()) {
            entry["problem"] = row.problem;
        } else {
            entry["reef_ms"] = std::ranges::min(row.reef);
            entry["products"] = row.products;
            entry["share_of_peak"] = row.peak_share == 0 ? nlohmann::ordered_json()
                                                         : nlohmann::ordered_json(row.peak_share);
            entry["operators"] = row.operators;
            entry["operators_on_xnnpack"] = row.on_xnnpack;
            entry["output_bytes_equal"] =
                row.equal ? nlohmann::ordered_json(*row.equal) : nlohmann::ordered_json();
            entry["output_steps_apart"] =
                row.equal ? nlohmann::ordered_json(row.farthest) : nlohmann::ordered_json();
            for (const Column& column : row.peers)
                entry["peers"].push_back({{"name", column.peer},
                                          {"ms", column.least()},
                                          {"ratio", column.ratio()},
                                          {"ratio_lower_quartile", quantile(column.ratios, 0.25)},
                                          {"ratio_upper_quartile", quantile(column.ratios, 0.75)}});
        }
        networks.push_back(std::move(entry));
    }
    const MachineSpeed machine = measure_machine();
    const nlohmann::ordered_json document{{"schema_version", 2},
                                          {"target", cpu::simd_target()},
                                          {"clock_ghz", machine.clock_ghz},
                                          {"byte_products_ns", machine.byte_products_ns},
                                          {"float_products_ns", machine.float_products_ns},
                                          {"threads", options.threads},
                                          {"rounds", options.rounds},
                                          {"networks", networks}};
    fmt::print("{}\n", document.dump(2));
}

/// The plain quantised models of the reference data.
std::vector<std::string> known_models() {
    std::vector<std::string> found;
    const char* folder = std::getenv("REEF_SHARED");
    if (folder == nullptr) return found;
    for (const char* name :
         {"models/mobilenet_v1_0.25_128_quant", "models/mobilenet_v1_0.5_160_quant",
          "edgetpu/wild/rt10__mobilenet_v1_1.0_224_quant_embedding_extractor",
          "models/tf2_mobilenet_v2_1.0_224_ptq", "models/movenet_single_pose_lightning_ptq",
          "models/deeplabv3_mnv2_dm05_pascal_quant",
          "models/posenet_mobilenet_v1_075_353_481_16_quant_decoder",
          "edgetpu/wild/facemesh__face_landmark_192_full_integer_quant",
          "edgetpu/wild/mot__yolov8n_full_integer_quant",
          "edgetpu/wild/mot__yolov5nu_full_integer_quant"})
        found.push_back(fmt::format("{}/data/{}.tflite", folder, name));
    return found;
}

int main_of(int argc, char** argv) {
    Options options;
    bool smoke = false;
    CLI::App app("Reef's CPU floor against XNNPACK, and LiteRT and ONNX Runtime when installed");
    app.add_option("MODEL", options.models,
                   fmt::format("plain models, or {}NETWORK with NETWORK one of {}; default: those "
                               "of REEF_SHARED",
                               shape_prefix, fmt::join(known_shapes(), ", ")));
    app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000));
    app.add_option("--threads", options.threads)->check(CLI::Range(1, 256));
    app.add_flag("--json", options.json);
    app.add_flag("--cpu-time", options.cpu_time,
                 "CPU time of all threads, for a machine that others use; without other programs");
    app.add_flag("--operators", options.operators, "the least time of every operator instead")
        ->excludes("--json");
    app.add_flag("--smoke", smoke, "one round");
    CLI11_PARSE(app, argc, argv);
    if (smoke) options.rounds = 1;
    if (options.models.empty()) options.models = known_models();
    if (options.models.empty()) {
        std::cerr << "no models: name some, or set REEF_SHARED to the folder of reference data\n";
        return 2;
    }
    if (!start_xnnpack()) {
        std::cerr << "XNNPACK does not start on this machine\n";
        return 1;
    }
    if (options.operators) {
        for (const std::string& path : options.models) {
            if (const auto status = print_operators(path, options); !status) {
                std::cerr << path << ": " << status.error().message() << "\n";
                return 1;
            }
        }
        return 0;
    }
    std::vector<Row> rows;
    bool failed = false;
    for (const std::string& path : options.models) {
        Row& row =
            rows.emplace_back(Row{.network = path.starts_with(shape_prefix)
                                                 ? path
                                                 : std::filesystem::path(path).stem().string()});
        if (const auto status = measure(path, options, row); !status) {
            row.problem = status.error().message();
            failed = true;
        }
    }
    if (options.json)
        print_json(rows, options);
    else
        print_text(rows, options);
    return failed ? 1 : 0;
}

}  // namespace
}  // namespace reef::peers

int main(int argc, char** argv) {
    return reef::peers::main_of(argc, argv);
}

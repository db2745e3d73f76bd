// What one inference on the simulated Edge TPU costs, alone and behind a simulated stick: in
// processor time of one thread, next to the plain model's on the CPU floor in the same run, on its
// fast and on its reference kernels; and the wall time of two threads. The least of some rounds, in
// which all take turns: on its turn a side warms up, to find its data in the caches, and the least
// of the next runs counts. What takes up to seconds runs once in a turn, and in few rounds.
//
// Bounds: of TFLite's builtin kernels, which run in the same rounds where REEF_TFLITE_LIBRARY names
// TensorFlow Lite's C library; else the times that another machine took stand here; and two threads
// are 1.7 times as fast as one, or such a part of what both cores gain without memory, measured
// between both (peers/two_threads.h). 1 is the exit code where one is not kept. The reference
// kernels are what TFLite's bytes cost in plain loops: they say how fast this machine is, and bound
// nothing, for TFLite's builtin kernels are vectors.
//
// --json, schema_version 4:
//   target, least_threads  the vectors; the bound of `threads`
//   tflite                 its version; null where there is none
//   models[]  name, simulator_ms, driver_ms, cpu_floor_ms, reference_kernels_ms, plain_engine_ms,
//             prepare_ms: processor time of one thread; the plain model's without a decoder at
//             its end
//             builtin_ms (null without), builtin_there_ms (another machine's)
//             ratio_to_builtin, most_ratio   to the first that there is, and its bound
//             ratio_to_reference, ratio_to_cpu_floor           without bounds
//             threads   how many times as fast two threads are as one
//             machine_times, of_machine   how many times as much both cores multiply without
//                       memory as one, and threads to that, medians of the rounds'; null where not
//                       known (peers/two_threads.h)
//             kept      whether both bounds are
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peers/machine_speed.h"
#include "peers/networks.h"
#include "peers/tflite_peer.h"
#include "peers/two_threads.h"
#include "reef/cpu/kernel_set.h"
#include "reef/cpu/placer.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/simulator.h"
#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/graph/executor.h"
#include "reef/model/tflite.h"

namespace reef::edgetpu {
namespace {

struct Case {
    const char* model;
    /// What TFLite 2.9's builtin kernels take for the plain model on a quiet machine, Zen 4 with
    /// AVX-512 and VNNI, in ms.
    double builtin_there;
    double most_ratio;  ///< to it
    int rounds;
};
constexpr Case cases[] = {
    {"mobilenet_v1_0.25_128_quant", 2.8, 1.5, 31},
    {"mobilenet_v1_0.5_160_quant", 9.5, 1.5, 21},
    {"movenet_single_pose_lightning_ptq", 52, 1.5, 21},
    {"deeplabv3_mnv2_dm05_pascal_quant", 162, 1.5, 15},
    {"posenet_mobilenet_v1_075_353_481_16_quant_decoder", 135, 1.0, 15},
};
constexpr double least_threads = 1.7;

struct Options {
    bool json = false;
    bool smoke = false;
    std::vector<std::string> models{};

    [[nodiscard]] bool names(const Case& tested) const {
        const auto is_part = [&](const std::string& part) {
            return std::string_view(tested.model).contains(part);
        };
        return models.empty() || std::ranges::any_of(models, is_part);
    }
};

/// Least milliseconds.
struct Figures {
    double simulator, driver, cpu_floor, reference, plain_engine, prepare;
    std::optional<double> builtin{};  ///< TFLite's
    peers::TwoThreads threads{};      ///< wall time

    [[nodiscard]] double ratio(const Case& tested) const {
        return simulator / builtin.value_or(tested.builtin_there);
    }
    /// "kept", or which bound is not.
    [[nodiscard]] const char* verdict(const Case& tested) const {
        if (ratio(tested) > tested.most_ratio) return "TIME NOT KEPT";
        return threads.keep(least_threads) ? "kept" : "THREADS NOT KEPT";
    }
    [[nodiscard]] bool kept(const Case& tested) const {
        return ratio(tested) <= tested.most_ratio && threads.keep(least_threads);
    }
};

double processor_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double wall_ms() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

/// Of every input on all sides.
constexpr std::byte input_byte{77};

/// A package with its tensors on a chip.
struct Chip {
    Simulator simulator;
    SimulatedPackage package;
    std::vector<std::vector<std::byte>> in;
    std::vector<std::vector<std::byte>> out;
    double prepare_ms = 0;

    Status run() {
        std::vector<Bytes> inputs(in.begin(), in.end());
        std::vector<MutableBytes> outputs(out.begin(), out.end());
        return package.run(simulator, inputs, outputs);
    }
};

Result<Chip> load_chip(const std::filesystem::path& path, const SimulatorOptions& options) {
    const double start = processor_ms();
    const auto model = REEF_TRY(model::load_tflite(path.string()));
    const auto packages = REEF_TRY(packages_of(model));
    auto package = REEF_TRY(SimulatedPackage::prepare(packages.at(0).package));
    const double prepare_ms = processor_ms() - start;
    Chip chip{Simulator(options), std::move(package), {}, {}, prepare_ms};
    for (const Layer& layer : chip.package.executable().inputs) {
        const auto bytes = REEF_TRY(tensor_bytes(layer));
        chip.in.emplace_back(bytes, input_byte);
    }
    for (const Layer& layer : chip.package.executable().outputs) {
        const auto bytes = REEF_TRY(tensor_bytes(layer));
        chip.out.emplace_back(bytes);
    }
    return chip;
}

/// The same chip behind a simulated stick, driven as a real one.
struct Driven {
    std::unique_ptr<usb::Device> device;
    std::shared_ptr<const usb::Program> program;

    Status run(Chip& tensors) {
        const std::vector<Bytes> inputs(tensors.in.begin(), tensors.in.end());
        const std::vector<MutableBytes> outputs(tensors.out.begin(), tensors.out.end());
        return device->run(program, inputs, outputs);
    }
};

Result<Driven> load_driven(const std::filesystem::path& path) {
    const auto model = REEF_TRY(model::load_tflite(path.string()));
    const auto packages = REEF_TRY(packages_of(model));
    auto program = REEF_TRY(usb::Program::prepare(packages.at(0).package));
    auto bus = std::make_shared<usb::SimulatedBus>();
    bus->plug({.port = "1-1", .has_firmware = true, .faults = {}},
              std::make_unique<usb::SimulatorCore>());
    auto device = REEF_TRY(usb::Device::open(bus, {}));
    return Driven{std::move(device), std::move(program)};
}

/// Everything that runs one network.
struct Sides {
    Chip chip, pair, slow;
    Driven driven;
    graph::Executor cpu, reference;
    std::optional<peers::TflitePeer> builtin{};
};

Result<graph::Executor> executor_of(const model::Model& plain, cpu::KernelSet kernels) {
    auto executor =
        REEF_TRY(graph::Executor::create(plain, {.placers = {cpu::placer({.kernels = kernels})}}));
    for (std::size_t i = 0; i < executor.input_count(); ++i)
        std::ranges::fill(executor.input(i), input_byte);
    return executor;
}

Result<peers::TflitePeer> builtin_of(const model::Model& plain) {
    auto builtin = REEF_TRY(peers::TflitePeer::create(plain, peers::TfliteKernels::builtin, 1));
    for (std::size_t i = 0; i < builtin.input_count(); ++i)
        std::ranges::fill(builtin.input(i), input_byte);
    return builtin;
}

Result<Sides> load(const std::filesystem::path& models, const std::string& name) {
    const std::filesystem::path compiled = models / (name + "_edgetpu.tflite");
    const auto plain = REEF_TRY(peers::load_network((models / (name + ".tflite")).string())).model;
    std::optional<peers::TflitePeer> builtin;
    if (peers::why_no_tflite().empty()) builtin = REEF_TRY(builtin_of(plain));
    return Sides{.chip = REEF_TRY(load_chip(compiled, {})),
                 .pair = REEF_TRY(load_chip(compiled, {.threads = 2})),
                 .slow = REEF_TRY(load_chip(compiled, {.engine = EngineKind::plain})),
                 .driven = REEF_TRY(load_driven(compiled)),
                 .cpu = REEF_TRY(executor_of(plain, cpu::KernelSet::fast)),
                 .reference = REEF_TRY(executor_of(plain, cpu::KernelSet::reference)),
                 .builtin = std::move(builtin)};
}

Result<Figures> measure(const std::filesystem::path& models, const Case& tested, int rounds) {
    Sides sides = REEF_TRY(load(models, tested.model));
    // The first inference loads the parameters.
    REEF_CHECK(sides.chip.run());
    REEF_CHECK(sides.pair.run());
    REEF_CHECK(sides.driven.run(sides.chip));
    REEF_CHECK(sides.cpu.run());
    constexpr double never = std::numeric_limits<double>::max();
    Figures least{never, never, never, never, never, sides.chip.prepare_ms};
    if (sides.builtin) least.builtin = never;
    Status status;
    const auto note_once = [&](double& figure, auto clock, auto&& work) {
        if (!status) return;
        const double start = clock();
        status = work();
        figure = std::min(figure, clock() - start);
    };
    const auto note = [&](double& figure, auto clock, auto&& work) {
        constexpr int runs_of_turn = 3;
        if (status) status = work();
        for (int run = 0; run < runs_of_turn; ++run) note_once(figure, clock, work);
    };
    for (int round = 0; round < rounds && status; ++round) {
        note(least.simulator, processor_ms, [&] { return sides.chip.run(); });
        note(least.driver, processor_ms, [&] { return sides.driven.run(sides.chip); });
        double one = never, two = never;
        note(one, wall_ms, [&] { return sides.chip.run(); });
        const auto gain = peers::gain_of_two_threads();
        note(two, wall_ms, [&] { return sides.pair.run(); });
        least.threads.note(one, two, gain);
        note(least.cpu_floor, processor_ms, [&] { return sides.cpu.run(); });
        if (sides.builtin) note(*least.builtin, processor_ms, [&] { return sides.builtin->run(); });
        if (round > 2) continue;
        note_once(least.reference, processor_ms, [&] { return sides.reference.run(); });
    }
    note_once(least.plain_engine, processor_ms, [&] { return sides.slow.run(); });
    REEF_CHECK(status);
    return least;
}

void print_head(bool tflites) {
    fmt::print(
        "{:50} {:>9} {:>8} {:>9} {:>9} {:>9} {:>8} {:>9} {:>14} {:>8} {:>8} {:>8} {:>9}   vectors: "
        "{}\n",
        "least processor ms, ratios", "simulator", "driver", "CPU floor", "plain eng", "reference",
        "to that", tflites ? "TFLite's" : "TFLite *", "to that", "threads", "machine", "of that",
        "prepare", reef::cpu::simd_target());
}

void print(const Case& tested, const Figures& f, const Options& options) {
    const auto text = [](std::optional<double> value) {
        return value ? fmt::format("{:.2f}", *value) : "-";
    };
    fmt::print(
        "{:50} {:9.2f} {:8.2f} {:9.2f} {:9.1f} {:9.1f} {:8.3f} {:9.2f} {:8.2f} ({:.1f}) {:8.2f} "
        "{:>8} {:>8} {:9.2f}   {}\n",
        tested.model, f.simulator, f.driver, f.cpu_floor, f.plain_engine, f.reference,
        f.simulator / f.reference, f.builtin.value_or(tested.builtin_there), f.ratio(tested),
        tested.most_ratio, f.threads.times(), text(f.threads.machine()),
        text(f.threads.of_machine()), f.prepare, options.smoke ? "" : f.verdict(tested));
}

nlohmann::ordered_json json_of(std::optional<double> value) {
    return value ? nlohmann::ordered_json(*value) : nullptr;
}

nlohmann::ordered_json json_of(const Case& tested, const Figures& f) {
    return {{"name", tested.model},
            {"simulator_ms", f.simulator},
            {"driver_ms", f.driver},
            {"cpu_floor_ms", f.cpu_floor},
            {"reference_kernels_ms", f.reference},
            {"plain_engine_ms", f.plain_engine},
            {"prepare_ms", f.prepare},
            {"builtin_ms", json_of(f.builtin)},
            {"builtin_there_ms", tested.builtin_there},
            {"ratio_to_builtin", f.ratio(tested)},
            {"most_ratio", tested.most_ratio},
            {"ratio_to_reference", f.simulator / f.reference},
            {"ratio_to_cpu_floor", f.simulator / f.cpu_floor},
            {"threads", f.threads.times()},
            {"machine_times", json_of(f.threads.machine())},
            {"of_machine", json_of(f.threads.of_machine())},
            {"kept", f.kept(tested)}};
}

int run(const std::filesystem::path& models, const Options& options) {
    auto list = nlohmann::ordered_json::array();
    bool kept = true;
    const std::string absent = peers::why_no_tflite();
    if (!options.json) print_head(absent.empty());
    for (const Case& tested : cases) {
        if (!options.names(tested)) continue;
        const auto figures = measure(models, tested, options.smoke ? 1 : tested.rounds);
        if (!figures) {
            fmt::print(stderr, "{}: {}\n", tested.model, figures.error().message());
            return 1;
        }
        kept = kept && figures->kept(tested);
        list.push_back(json_of(tested, *figures));
        if (!options.json) print(tested, *figures, options);
        if (options.smoke) break;
    }
    if (!options.json && !absent.empty()) fmt::print("* on another machine: {}\n", absent);
    const auto tflite = absent.empty() ? nlohmann::ordered_json(peers::tflite_version()) : nullptr;
    const nlohmann::ordered_json document{{"schema_version", 4},
                                          {"target", cpu::simd_target()},
                                          {"tflite", tflite},
                                          {"least_threads", least_threads},
                                          {"models", list}};
    if (options.json) fmt::print("{}\n", document.dump(2));
    return kept || options.smoke ? 0 : 1;
}

}  // namespace
}  // namespace reef::edgetpu

int main(int argc, char** argv) {
    reef::edgetpu::Options options;
    CLI::App app("What an inference on the simulated Edge TPU costs; 1 where a bound is not kept");
    app.add_flag("--json", options.json);
    app.add_flag("--smoke", options.smoke, "one round of one model, without bounds");
    app.add_option("MODEL", options.models, "what its name contains; default: all")
        ->check([](const std::string& part) {
            const bool known = std::ranges::any_of(reef::edgetpu::cases, [&](const auto& tested) {
                return std::string_view(tested.model).contains(part);
            });
            return known ? std::string() : part + " is none of the models";
        });
    CLI11_PARSE(app, argc, argv);
    const char* shared = std::getenv("REEF_SHARED");
    if (shared == nullptr) {
        fmt::print(stderr, "no reference data: set REEF_SHARED to its folder\n");
        return 2;
    }
    return reef::edgetpu::run(std::filesystem::path(shared) / "data/models", options);
}
